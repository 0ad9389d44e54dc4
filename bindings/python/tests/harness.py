"""Real servers in processes of their own, and the official client."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import AsyncIterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from faultwire.thrown import alone

SERVERS = Path(__file__).parent / "servers"
MAJOR = int(version("mcp").split(".")[0])


@contextlib.asynccontextmanager
async def serving(
    script: str,
    contract: str,
    audit: Path | str,
    options: Mapping[str, Any] | None = None,
    env: Mapping[str, str] | None = None,
) -> AsyncIterator[ClientSession]:
    """A session with a server of `tests/servers`, over stdio. What a test raises in it comes out as
    it is, and not in the groups of the client's tasks.
    """
    try:
        async with connected(script, contract, audit, options, env) as session:
            yield session
    except Exception as error:
        raise alone(error) from None


@contextlib.asynccontextmanager
async def connected(
    script: str, contract: str, audit: Path | str, options: Mapping[str, Any] | None, env: Mapping[str, str] | None
) -> AsyncIterator[ClientSession]:
    arguments = [str(SERVERS / script), contract, str(audit), json.dumps(dict(options or {}))]
    parameters = StdioServerParameters(command=sys.executable, args=arguments, env=dict(env or {}))
    async with stdio_client(parameters, errlog=ERRORS) as (read, write):
        async with ClientSession(read, write) as session:
            await session.initialize()
            yield session


#: What servers write to stderr.
ERRORS: Any = open(os.environ.get("FAULTWIRE_TEST_LOG", os.devnull), "a")


def dumped(result: Any) -> dict[str, Any]:
    """A result as it was on the wire."""
    return dict(result.model_dump(by_alias=True, mode="json", exclude_none=True))


async def call(session: ClientSession, tool: str, **arguments: Any) -> dict[str, Any]:
    """Calls a tool."""
    return dumped(await session.call_tool(tool, arguments))


def envelope(result: Mapping[str, Any]) -> str:
    """The envelope of a failing result."""
    assert result["isError"] is True, result
    text: str = result["content"][0]["text"]
    return text


def lines(audit: Path | str) -> list[dict[str, Any]]:
    """What is in a log."""
    return [json.loads(line) for line in (Path(audit) / "audit-log.jsonl").read_text().splitlines()]


def faults(audit: Path | str) -> list[dict[str, Any]]:
    """The failures in a log."""
    return [line for line in lines(audit) if line["type"] == "fault"]


def events(audit: Path | str) -> list[dict[str, Any]]:
    """What else is in it."""
    return [line for line in lines(audit) if line["type"] == "event"]
