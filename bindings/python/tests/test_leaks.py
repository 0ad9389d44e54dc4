"""Thousands of failing calls leak neither memory nor descriptors. `LEAK_CALLS` sets how many."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from harness import call, envelope, faults, serving

pytestmark = pytest.mark.anyio

CALLS = int(os.environ.get("LEAK_CALLS", "2000"))
#: So much may grow once: caches, pages of the allocator.
MOST_KIB = 12 * 1024


async def test_failing_calls_leak_nothing(tmp_path: Path) -> None:
    async with serving("high.py", "standard", tmp_path, {"with": []}) as session:
        pid = int((await call(session, "pid"))["content"][0]["text"])
        ways = [("boom", {}), ("enoent", {}), ("fail", {"code": "conflict"}), ("typed", {}), ("nothing", {})]

        async def fail(count: int) -> None:
            for number in range(count):
                tool, arguments = ways[number % len(ways)]
                assert envelope(await call(session, tool, **arguments))

        await fail(400)
        before, open_before = memory_kib(pid), descriptors(pid)
        await fail(CALLS)
        after, open_after = memory_kib(pid), descriptors(pid)
    assert open_after == open_before
    assert after - before < MOST_KIB, f"{(after - before) * 1024 / CALLS:.0f} bytes a call"
    # The log begins a new file when one is full.
    assert len(faults(tmp_path)) <= CALLS + 400


def memory_kib(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))


def descriptors(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))
