"""The modern era (2026-07-28): no handshake, each request stands alone."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from harness import SERVERS, dumped, envelope, faults
from mcp import StdioServerParameters
from mcp.client.client import Client
from mcp.client.stdio import stdio_client

pytestmark = pytest.mark.anyio
MODERN = "2026-07-28"


def client(contract: str, audit: Path, options: dict[str, Any]) -> Client:
    arguments = [str(SERVERS / "high.py"), contract, str(audit), json.dumps(options)]
    parameters = StdioServerParameters(command=sys.executable, args=arguments)
    return Client(stdio_client(parameters), mode=MODERN)


async def test_k9_a_failure_is_a_complete_result_of_its_server(tmp_path: Path) -> None:
    async with client("standard", tmp_path, {"with": []}) as session:
        assert session.session.protocol_version == MODERN
        result = dumped(await session.call_tool("enoent", {}))
        told = json.loads(envelope(result))["error"]
        assert told["code"] == "not_found"
        assert result["resultType"] == "complete"
        assert result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "failing"
        assert result["_meta"]["io.modelcontextprotocol/toolFailure"]["code"] == "not_found"
        fine = dumped(await session.call_tool("ok", {"text": "fine"}))
        assert fine["content"][0]["text"] == "fine"
    assert len(faults(tmp_path)) == 1


async def test_k12_a_connection_over_stdio_is_a_session(tmp_path: Path) -> None:
    async with client("kaiza", tmp_path, {}) as session:
        refused = dumped(await session.call_tool("ok", {"text": "a"}))
        assert json.loads(envelope(refused))["error_code"] == "SESSION_NOT_INITIALIZED"
        assert not dumped(await session.call_tool("begin_session", {})).get("isError")
        assert not dumped(await session.call_tool("ok", {"text": "a"})).get("isError")


async def test_o9_the_incident_is_derived_from_the_trace(tmp_path: Path) -> None:
    trace = "0af7651916cd43dd8448eb211c80319c"
    async with client("owlclaw", tmp_path, {"with": []}) as session:
        meta = {"traceparent": f"00-{trace}-00f067aa0ba902b7-01"}
        result = dumped(await session.call_tool("boom", {}, meta=meta))
    assert trace[:16] in json.loads(envelope(result))["error"]["incident_id"] or trace in json.dumps(faults(tmp_path)[0])
    assert faults(tmp_path)[0]["fault"]["trace"]


async def test_errors_of_the_protocol_stay_errors_with_an_envelope(tmp_path: Path) -> None:
    async with client("standard", tmp_path, {"with": []}) as session:
        with pytest.raises(Exception) as raised:
            await session.read_resource("note://nowhere")
    assert "code" in json.dumps(raised.value.error.data)  # type: ignore[attr-defined]
    assert len(faults(tmp_path)) == 1
