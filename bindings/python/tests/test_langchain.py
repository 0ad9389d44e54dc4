"""What a model of LangChain reads when a tool fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from harness import serving
from langchain_mcp_adapters.tools import load_mcp_tools

from faultwire.langchain import FollowContract

pytestmark = pytest.mark.anyio


async def message(tools: Any, name: str, **arguments: Any) -> tuple[str, str]:
    """The status and the text of the message for the model."""
    tool = next(tool for tool in tools if tool.name == name)
    answer = await tool.ainvoke({"type": "tool_call", "id": "1", "name": name, "args": arguments})
    texts = [block if isinstance(block, str) else block["text"] for block in answer.content]
    return answer.status, "\n".join(texts)


async def test_the_model_reads_what_failed_and_what_to_do(tmp_path: Path) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    async with serving("flaky.py", "standard", tmp_path) as session:
        follow = FollowContract(read_only={"twice", "never"}, retries=1, sleep=sleep)
        tools = await load_mcp_tools(session, tool_interceptors=[follow])
        assert await message(tools, "gone") == (
            "error",
            "not_found: There is no note of this day\nCheck the name or path, and list what exists if in doubt.",
        )
        assert await message(tools, "never") == (
            "error",
            "unavailable: never\nThe tool may have run: check its effect before you call it again, in 1 second at the earliest.",
        )
        assert slept == [1.0]
        assert await message(tools, "fine") == ("success", "fine")


async def test_without_the_interceptor_it_reads_the_envelope(tmp_path: Path) -> None:
    async with serving("flaky.py", "standard", tmp_path) as session:
        status, text = await message(await load_mcp_tools(session), "gone")
    assert status == "error"
    assert text.startswith('{"error":{"code":"not_found","message":"There is no note of this day","next":')
