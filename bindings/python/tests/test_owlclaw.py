"""The nine rows of OwlClaw's matrix, each by a real condition, on both surfaces."""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest
from harness_audit import faults, verify
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client

from faultwire import Contract, verdict

pytestmark = pytest.mark.anyio
EXAMPLE = Path(__file__).parents[1] / "examples" / "owlclaw.py"
OWLCLAW = Contract.builtin("owlclaw")

RICH = {"version": "v1", "capabilities": ["quote"], "per_minute": 6000, "budget": 1000}
CLIENTS = {
    "rich": RICH,
    "guest": {**RICH, "capabilities": []},
    "poor": {**RICH, "budget": 2},
    "hasty": {**RICH, "per_minute": 2},
}


WRITERS: list[asyncio.StreamWriter] = []


async def supplier(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Prices: 7 tons take too long, 8 have no price, 9 break it."""
    WRITERS.append(writer)
    line = (await reader.readline()).decode()
    tons = int(line.split()[1].strip("/"))
    while (await reader.readline()).strip():
        pass
    if tons == 7:
        await asyncio.sleep(5)
    status, body = ("500 Broken", "x") if tons == 9 else ("200 OK", "ask Bob" if tons == 8 else str(tons * 12.5))
    writer.write(f"HTTP/1.1 {status}\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n{body}".encode())
    with contextlib.suppress(ConnectionError):
        await writer.drain()
    writer.close()


@contextlib.asynccontextmanager
async def running(audit: Path) -> AsyncIterator[str]:
    clients = audit.parent / "clients.json"
    clients.write_text(json.dumps(CLIENTS))
    prices = await asyncio.start_server(supplier, "127.0.0.1", 0)
    at = f"http://127.0.0.1:{prices.sockets[0].getsockname()[1]}"
    command = [sys.executable, str(EXAMPLE), "0", str(clients), at, str(audit)]
    process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        url = (await asyncio.wait_for(process.stdout.readline(), 20)).decode().strip()
        assert url.startswith("http://127.0.0.1:")
        yield url
    finally:
        process.terminate()
        await process.wait()
        prices.close()
        for writer in WRITERS:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()
        WRITERS.clear()


async def over_http(url: str, token: str, body: dict[str, Any], **headers: str) -> tuple[int, dict[str, Any]]:
    async with httpx.AsyncClient() as http:
        answer = await http.post(
            f"{url}/v1/quote", json=body, headers={"authorization": f"Bearer {token}", **headers}, timeout=20
        )
    return answer.status_code, answer.json()


async def over_mcp(url: str, token: str, body: dict[str, Any]) -> Any:
    """The failing result, or the error if there is no session."""
    headers = {"authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(headers=headers, timeout=20) as http:
        async with streamable_http_client(f"{url}/mcp", http_client=http) as streams:
            async with ClientSession(streams[0], streams[1]) as session:
                try:
                    await session.initialize()
                except Exception as error:
                    return error
                return await session.call_tool("quote", body)


#: How it is provoked, and its row: token, body, code, status, category, retryable.
ROWS: list[tuple[str, dict[str, Any], str, int, str, bool]] = [
    ("rich", {"tons": 3, "version": "v9"}, "protocol.unsupported_version", 400, "compatibility", False),
    ("rich", {"tons": 3, "version": "v2"}, "protocol.version_conflict", 400, "validation", False),
    ("hasty", {"tons": 3}, "governance.rate_limited", 429, "governance", True),
    ("poor", {"tons": 3}, "governance.budget_exceeded", 403, "governance", False),
    ("nobody", {"tons": 3}, "auth.unauthorized", 401, "auth", False),
    ("guest", {"tons": 3}, "auth.forbidden", 403, "auth", False),
    ("rich", {"tons": 7}, "runtime.timeout", 504, "runtime", True),
    ("rich", {"tons": 9}, "dependency.unavailable", 503, "dependency", True),
    ("rich", {"tons": 8}, "internal.unexpected", 500, "internal", False),
]


async def test_o4_the_nine_rows_on_both_surfaces(tmp_path: Path) -> None:
    audit = tmp_path / "audit"
    async with running(audit) as url:
        assert await over_http(url, "rich", {"tons": 4}) == (200, {"tons": 4, "price": 50.0})
        quote = await over_mcp(url, "rich", {"tons": 4})
        assert quote.structured_content == {"tons": 4, "price": 50.0}
        for _ in range(2):
            # What the two may do is used up.
            for token in ("poor", "hasty"):
                assert (await over_http(url, token, {"tons": 1}))[0] == 200
        count = 0
        for token, body, code, status, category, retryable in ROWS:
            answered, problem = await over_http(url, token, body)
            assert (answered, problem["code"], problem["category"], problem["retryable"]) == (status, code, category, retryable)
            result = await over_mcp(url, token, body)
            told = verdict(result)
            assert told is not None and (told.code, told.category) == (code, category), result
            records = faults(audit)
            count += 2
            assert len(records) == count
            assert [record["fault"]["code"] for record in records[-2:]] == [code, code]
            assert [record["fault"]["incident"] for record in records[-2:]] == [problem["incident_id"], told.incident]
        answered, problem = await over_http(url, "rich", {"tons": 1}, **{"mcp-protocol-version": "1999-01-01"})
        assert (answered, problem["code"]) == (426, "protocol.unsupported_version")
        answered, problem = await over_http(url, "rich", {"tons": "many"})
        assert (answered, problem["code"]) == (400, "protocol.version_conflict")
        assert problem["details"]["issues"][0]["path"] == "tons"
    assert {row[2] for row in ROWS} == set(OWLCLAW.codes)
    verify(audit)


async def test_k15_a_server_that_cannot_start_says_why(tmp_path: Path) -> None:
    command = [sys.executable, str(EXAMPLE), "0", str(tmp_path / "none.json"), "http://127.0.0.1:9", str(tmp_path / "a")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert done.returncode == 1
    assert OWLCLAW.decode(done.stderr.strip())["code"] == "internal.unexpected"
