"""The quick start, as it is pasted from the README."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from harness import call, envelope, faults
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

pytestmark = pytest.mark.anyio
README = (Path(__file__).parents[1] / "README.md").read_text()


def block(language: str, having: str) -> str:
    """The block of code with these words in it."""
    found = [text for text in re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL) if having in text]
    assert len(found) == 1, having
    return str(found[0])


async def test_the_quick_start_works_when_pasted(tmp_path: Path) -> None:
    (tmp_path / "notes.py").write_text(block("python", 'MCPServer("notes")'))
    (tmp_path / "tuesday.md").write_text("A note")
    parameters = StdioServerParameters(command=sys.executable, args=["notes.py"], cwd=tmp_path)
    async with stdio_client(parameters) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        assert (await call(session, "read", day="tuesday"))["structuredContent"] == {"result": "A note"}
        told = envelope(await call(session, "read", day="monday"))
        promised = re.escape(block("json", "incident_id").strip()).replace("…", "[0-9a-f_]+")
        assert re.fullmatch(promised, told), told
        told = envelope(await call(session, "read", day="sunday"))
        assert '"code":"failed_precondition","message":"There are no notes on sundays"' in told
    assert [record["fault"]["code"] for record in faults(tmp_path / "audit")] == ["not_found", "failed_precondition"]
    assert "notes.py" in faults(tmp_path / "audit")[0]["private"]["stack"]


def test_the_other_blocks_are_python() -> None:
    for text in re.findall(r"```python\n(.*?)```", README, re.DOTALL):
        compile(text, "README.md", "exec", flags=0x2000)  # Awaits are allowed outside of functions.
