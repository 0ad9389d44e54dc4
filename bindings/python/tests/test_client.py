"""Calls that follow the answer, over the official clients."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness import MAJOR, call, serving

from faultwire import CallFailed, call_tool, verdict

pytestmark = pytest.mark.anyio


class Sleeps:
    """Remembers the waits instead of waiting."""

    def __init__(self) -> None:
        self.all: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.all.append(seconds)


async def test_a7_a_call_is_sent_again_as_the_answer_says(tmp_path: Path) -> None:
    async with serving("flaky.py", "standard", tmp_path) as session:
        slept = Sleeps()
        result = await call_tool(session, "twice", {"key": "a"}, read_only=True, sleep=slept)
        assert "third time" in result.content[0].text
        assert slept.all == [1.0, 1.0]


async def test_a7_a_call_that_may_have_run_is_not_sent_again(tmp_path: Path) -> None:
    async with serving("flaky.py", "standard", tmp_path) as session:
        with pytest.raises(CallFailed) as raised:
            await call_tool(session, "twice", {"key": "b"}, sleep=Sleeps())
        assert (raised.value.code, raised.value.attempts) == ("unavailable", 1)
        assert raised.value.verdict.reason == "maybe_executed" or raised.value.verdict.reason
        assert "twice failed with unavailable" in str(raised.value)
        # What the server says of its tools is believed only if it is asked for.
        result = await call_tool(session, "twice", {"key": "c"}, trust_annotations=True, sleep=Sleeps())
        assert "third time" in result.content[0].text


async def test_it_gives_up_with_the_reason(tmp_path: Path) -> None:
    async with serving("flaky.py", "standard", tmp_path) as session:
        slept = Sleeps()
        with pytest.raises(CallFailed) as raised:
            await call_tool(session, "never", {}, read_only=True, retries=2, sleep=slept)
        assert (raised.value.attempts, len(slept.all)) == (3, 2)
        assert "after 3 attempts" in str(raised.value)
        with pytest.raises(CallFailed) as stopped:
            await call_tool(session, "gone", {}, read_only=True, sleep=slept)
        assert (stopped.value.code, stopped.value.attempts) == ("not_found", 1)


async def test_a_success_is_the_sdks_own(tmp_path: Path) -> None:
    async with serving("flaky.py", "standard", tmp_path) as session:
        result = await call_tool(session, "fine", {})
        assert result == await session.call_tool("fine", {})
        assert verdict(result) is None


async def test_errors_of_the_protocol_are_read_too(tmp_path: Path) -> None:
    async with serving("flaky.py", "standard", tmp_path) as session:
        with pytest.raises(Exception) as raised:
            await session.read_resource("note://never")
        told = verdict(raised.value)
        assert told is not None and told.code == "quota_exceeded" and not told.retry


async def test_servers_without_a_contract_are_not_called_again(tmp_path: Path) -> None:
    async with serving("plain.py", "standard", tmp_path) as session:
        with pytest.raises(CallFailed) as raised:
            await call_tool(session, "ok", {"text": 1} if MAJOR == 2 else {}, read_only=True)
        assert raised.value.code is None
        assert (await call(session, "ok", text="a"))["isError"] is False
