"""The same for low-level servers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from harness import MAJOR, call, envelope, faults, serving

from faultwire import Contract

pytestmark = pytest.mark.anyio


async def test_k9_a_typed_failure_reaches_the_client_whole(tmp_path: Path) -> None:
    contract = Contract.builtin("kaiza")
    async with serving("low.py", "kaiza", tmp_path) as session:
        for code in contract.codes:
            told = json.loads(envelope(await call(session, "fail", code=code)))
            assert told["error_code"] == code
            assert len(told) == 11
            assert told["human_message"] == "said by the handler"


async def test_w4_refused_arguments_are_told_by_field(tmp_path: Path) -> None:
    async with serving("low.py", "workrail", tmp_path, {"arguments": "enforce"}) as session:
        told = json.loads(envelope(await call(session, "read", lines=0, extra=1)))
        assert told["code"] == "VALIDATION_ERROR"
        paths = {issue["path"] for issue in told["details"]["validationIssues"]}
        assert paths == {"path", "lines", "extra"}
        assert (await call(session, "read", path="a.md", lines=1))["content"][0]["text"] == "read it"


async def test_arguments_are_refused_only_where_the_sdk_refuses_them(tmp_path: Path) -> None:
    async with serving("low.py", "workrail", tmp_path) as session:
        result = await call(session, "read", lines=0)
    # The low-level server of 1.x checks arguments, that of 2.x leaves it to the handler.
    if MAJOR == 1:
        told = json.loads(envelope(result))
        assert told["code"] == "VALIDATION_ERROR"
        assert {issue["path"] for issue in told["details"]["validationIssues"]} == {"path", "lines"}
    else:
        assert result["isError"] is False


async def test_an_unknown_tool_names_the_nearest(tmp_path: Path) -> None:
    async with serving("low.py", "standard", tmp_path) as session:
        told = json.loads(envelope(await call(session, "raed")))["error"]
    assert told["code"] == "unknown_tool"
    assert "read" in told["next"]


async def test_a_result_that_its_schema_forbids(tmp_path: Path) -> None:
    for output in ("warn", "enforce"):
        audit = tmp_path / output
        async with serving("low.py", "standard", audit, {"output": output}) as session:
            assert (await call(session, "count", n=1))["structuredContent"] == {"n": 1}
            if MAJOR == 1 or output == "enforce":
                # The low-level server of 1.x checks it by itself.
                result = await call(session, "count", n="one")
                assert json.loads(envelope(result))["error"]["code"] in ("bad_response", "tool_failed", "invalid_arguments")
                assert "structuredContent" not in result
                assert len(faults(audit)) == 1


async def test_a_handler_that_returns_nonsense(tmp_path: Path) -> None:
    async with serving("low.py", "standard", tmp_path) as session:
        try:
            result = await call(session, "wrong")
        except Exception as error:
            told = error.error.data["error"]  # type: ignore[attr-defined]
        else:
            told = json.loads(envelope(result))["error"]
    assert told["code"] in ("tool_failed", "internal", "bad_response")
    assert len(faults(tmp_path)) == 1
