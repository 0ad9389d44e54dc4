"""The engine itself: rendering against `json.dumps`, importing, and how long the loop stands still
while failures are recorded.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
import timeit

from faultwire import AuditLog, Contract


def render() -> None:
    report = {"code": "not_found", "tool": "read", "message": "There is no note of this day", "details": {"day": "monday"}}
    for name in ("standard", "kaiza", "owlclaw"):
        contract = Contract.builtin(name)
        fault = contract.fault({**report, "code": next(iter(contract.codes))})
        told = json.loads(fault.render())
        ours = best(lambda: fault.render())
        theirs = best(lambda: json.dumps(told))
        made = best(lambda: contract.fault({**report, "code": next(iter(contract.codes))}).render())
        print(f"render {name}: {ours:.2f} µs, json.dumps {theirs:.2f} µs, {ours / theirs:.2f} ×; made and rendered {made:.1f} µs")


def best(work: object) -> float:
    return min(timeit.repeat(work, number=2000, repeat=9)) / 2000 * 1e6  # type: ignore[arg-type]


def importing() -> None:
    def took(code: str) -> float:
        command = [sys.executable, "-I", "-c", code]
        times = []
        for _ in range(25):
            before = time.perf_counter()
            subprocess.run(command, check=True)
            times.append(time.perf_counter() - before)
        return statistics.median(times) * 1e3

    empty, ours = took("pass"), took("import faultwire")
    used = took("import faultwire; faultwire.Contract.builtin('standard')")
    print(f"import: {ours - empty:.1f} ms beyond an empty process ({empty:.1f} ms), with a contract {used - empty:.1f} ms")


async def stall() -> None:
    fault = Contract.builtin("standard").fault({"code": "internal", "tool": "read", "message": "broken"})
    worst = []
    with tempfile.TemporaryDirectory() as directory:
        async with AuditLog.open(directory) as log:
            for _ in range(20):
                longest, stop = 0.0, False

                async def tick() -> None:
                    nonlocal longest
                    before = time.perf_counter()
                    while not stop:
                        await asyncio.sleep(0)
                        now = time.perf_counter()
                        longest, before = max(longest, now - before), now

                ticking = asyncio.ensure_future(tick())
                await asyncio.gather(*[asyncio.ensure_future(log.append(fault)) for _ in range(64)])
                stop = True
                await ticking
                worst.append(longest)
    print(f"loop stall while 64 failures are recorded: median {statistics.median(worst) * 1e3:.2f} ms, worst {max(worst) * 1e3:.2f} ms")


render()
importing()
asyncio.run(stall())
