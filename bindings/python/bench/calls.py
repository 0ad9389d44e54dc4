"""A tool call over stdio, a process on each side, with the boundary and without: `calls.py [ROUNDS]`.

Both servers run at once, and the calls alternate, so that what else the machine does hits both.
"""

from __future__ import annotations

import asyncio
import contextlib
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

SERVER = str(Path(__file__).parent / "server.py")
CALLS = 200


@contextlib.asynccontextmanager
async def serving(*arguments: str) -> Any:
    parameters = StdioServerParameters(command=sys.executable, args=[SERVER, *arguments])
    async with stdio_client(parameters) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        await session.list_tools()
        yield session


async def timed(session: ClientSession, tool: str) -> float:
    """The median of some calls, in microseconds."""
    took = []
    for _ in range(CALLS):
        before = time.perf_counter()
        await session.call_tool(tool, {"text": "It is sunny in Berlin, with 21 degrees and a light wind"})
        took.append(time.perf_counter() - before)
    return statistics.median(took) * 1e6


def sync_us(directory: str) -> float:
    """One write and fdatasync on this disk."""
    import os

    took = []
    with open(Path(directory) / "probe", "wb") as file:
        for _ in range(300):
            before = time.perf_counter()
            file.write(b"x" * 900 + b"\n")
            file.flush()
            os.fdatasync(file.fileno())
            took.append(time.perf_counter() - before)
    return statistics.median(took) * 1e6


async def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    with tempfile.TemporaryDirectory() as directory:
        print(f"write and fdatasync: {sync_us(directory):.0f} µs")
        async with serving() as plain, serving(f"{directory}/audit") as ours:
            for tool in ("fine", "broken"):
                for session in (plain, ours):
                    await timed(session, tool)
                pairs = []
                for number in range(rounds):
                    order = (plain, ours) if number % 2 else (ours, plain)
                    took = {id(session): await timed(session, tool) for session in order}
                    pairs.append((took[id(plain)], took[id(ours)]))
                without, with_it = (statistics.median(side) for side in zip(*pairs))
                ratio = statistics.median(ours_us / plain_us for plain_us, ours_us in pairs)
                print(f"{tool}: {without:.0f} µs without, {with_it:.0f} µs with, {ratio:.3f} ×, +{with_it - without:.0f} µs")


asyncio.run(main())
