"""Every way in which a handler can fail, under every built-in contract, over stdio."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from harness import MAJOR, call, envelope, events, faults, serving

from faultwire import Contract, builtins, verdict

pytestmark = pytest.mark.anyio

#: So long is enough for a handler that never ends.
OPTIONS = {"timeout": 0.5, "with": []}

#: What is called, and the condition that the boundary must see.
WAYS: list[tuple[str, dict[str, Any], str]] = [
    ("enoent", {}, "not_found"),
    ("boom", {}, "tool_error"),
    ("empty", {}, "tool_error"),
    ("exits", {}, "tool_error"),
    ("hangs", {}, "timeout"),
    ("stubborn", {}, "timeout"),
    ("blocks", {"seconds": 0.2}, "tool_error"),
    ("cancels_itself", {}, "cancelled"),
    ("says_error", {"text": "EACCES: permission denied, open 'x'"}, "permission_denied"),
    ("no_such_tool", {}, "unknown_tool"),
]


@pytest.mark.parametrize("name", builtins())
async def test_k3_k9_every_way_to_fail_is_one_envelope_recorded_once(name: str, tmp_path: Path) -> None:
    contract = Contract.builtin(name)
    conditions = contract.describe()["conditions"]
    async with serving("high.py", name, tmp_path, OPTIONS) as session:
        for count, (tool, arguments, condition) in enumerate(WAYS, 1):
            result = await call(session, tool, **arguments)
            report = contract.decode(envelope(result))
            seen = faults(tmp_path)
            assert len(seen) == count, (tool, seen[-1])
            assert seen[-1]["fault"]["condition"] == condition, (tool, seen[-1])
            assert report["code"] == seen[-1]["fault"]["code"], tool
            # What nothing is known of has the fallback; some contracts have rules of their own for files.
            if condition == "tool_error":
                assert report["code"] == contract.describe()["fallback"], tool
            elif condition not in ("not_found", "permission_denied"):
                assert report["code"] == conditions[condition], tool
            assert seen[-1]["fault"]["tool"] == tool
            assert "hunter2" not in json.dumps([result, seen[-1]])
            # S5: nearly all of these tools have an output schema, which is not for envelopes.
            assert result.get("structuredContent") in (None, json.loads(envelope(result)))
            told = verdict(result)
            assert told is not None and told.code == report["code"]
        # A typed failure keeps its code wherever it is raised.
        for tool in ("fail", "deep", "group", "thread"):
            for code in contract.codes:
                report = contract.decode(envelope(await call(session, tool, code=code)))
                assert report["code"] == code, tool
        codes = [fault["fault"]["code"] for fault in faults(tmp_path)[len(WAYS) :]]
        assert codes == 4 * list(contract.codes)
        # The server still works.
        fine = await call(session, "ok", text="fine")
        assert fine["isError"] is False and "fine" in fine["content"][0]["text"]


async def test_k4_causes_are_chained_and_tracebacks_stay_private(tmp_path: Path) -> None:
    async with serving("high.py", "kaiza", tmp_path, OPTIONS) as session:
        result = await call(session, "deep", code="PLAN_NOT_FOUND")
    told = json.loads(envelope(result))
    assert told["cause"]["name"] == "KeyError"
    assert "the innermost" in told["cause"]["message"]
    assert "stack_trace" not in told
    assert "high.py" not in json.dumps(result)
    # The operator has it.
    assert "high.py" in faults(tmp_path)[0]["private"]["stack"]


async def test_k2_a_contract_may_show_stacks(tmp_path: Path) -> None:
    async with serving("high.py", "kaiza", tmp_path, OPTIONS, env={"DEBUG_STACK": "true"}) as session:
        result = await call(session, "boom")
    assert "in boom" in json.loads(envelope(result))["stack_trace"]


async def test_k7_an_object_with_a_registered_code_keeps_it(tmp_path: Path) -> None:
    async with serving("high.py", "kaiza", tmp_path, OPTIONS) as session:
        result = await call(session, "odd", code="HASH_MISMATCH")
        told = json.loads(envelope(result))
        assert (told["error_code"], told["human_message"]) == ("HASH_MISMATCH", "an object was raised")
        result = await call(session, "odd", code="NO_SUCH_CODE")
        assert json.loads(envelope(result))["error_code"] == Contract.builtin("kaiza").describe()["fallback"]


async def test_w4_refused_arguments_are_told_by_field(tmp_path: Path) -> None:
    async with serving("high.py", "workrail", tmp_path, OPTIONS) as session:
        result = await call(
            session, "typed", count="many", shape={"name": "nobody", "corners": [{"x": 1}, {"x": "far", "y": 2}]}, ratio=3
        )
        told = json.loads(envelope(result))
        assert told["code"] == "VALIDATION_ERROR"
        paths = {issue["path"] for issue in told["details"]["validationIssues"]}
        assert {"count", "shape.name", "shape.corners.0.y", "shape.corners.1.x", "ratio"} <= paths, told
        assert all(issue["message"] for issue in told["details"]["validationIssues"])
        # What the schema cannot know is told by the validator.
        result = await call(session, "typed", count=1, shape={"name": "nobody", "corners": []})
        issues = json.loads(envelope(result))["details"]["validationIssues"]
        assert [issue["path"] for issue in issues] == ["shape.name"]
        assert "nobody is no name" in issues[0]["message"]
    assert {fault["fault"]["condition"] for fault in faults(tmp_path)} == {"invalid_arguments"}


async def test_w4_the_finer_cases_of_arguments_have_codes_of_their_own(tmp_path: Path) -> None:
    async with serving("high.py", "kaiza", tmp_path, OPTIONS) as session:
        result = await call(session, "ok")
        assert json.loads(envelope(result))["error_code"] == "MISSING_REQUIRED_FIELD"
        result = await call(session, "typed", count="many", shape={"name": "a", "corners": []})
        assert json.loads(envelope(result))["error_code"] == "INVALID_INPUT_TYPE"


async def test_a8_a_success_passes_untouched(tmp_path: Path) -> None:
    async with serving("high.py", "standard", tmp_path, OPTIONS) as session:
        with_boundary = await call(session, "ok", text="état \U0001f600 \x00")
    async with serving("plain.py", "standard", tmp_path, {}) as session:
        without = await call(session, "ok", text="état \U0001f600 \x00")
    assert with_boundary == without


async def test_a6_a_retried_failure_names_its_delay(tmp_path: Path) -> None:
    async with serving("high.py", "owlclaw", tmp_path, OPTIONS) as session:
        result = await call(session, "fail", code="governance.rate_limited", retry_after_ms=2000)
    told = verdict(result)
    assert told is not None and told.retry and told.delay_ms == 2000
    assert result["_meta"]["io.modelcontextprotocol/toolFailure"]["retryable"] is True


async def test_k3_a_wrong_fact_in_a_handler_is_the_servers_own_fault(tmp_path: Path) -> None:
    async with serving("high.py", "owlclaw", tmp_path, OPTIONS) as session:
        result = await call(session, "fail", code="auth.forbidden", retry_after_ms=2000)
        assert json.loads(envelope(result))["error"]["code"] == "internal.unexpected"
        result = await call(session, "fail", code="no.such_code")
        assert json.loads(envelope(result))["error"]["code"] == "internal.unexpected"


async def test_a_json_rpc_error_of_a_tool_is_a_result_for_the_model(tmp_path: Path) -> None:
    async with serving("high.py", "standard", tmp_path, OPTIONS) as session:
        result = await call(session, "rpc")
    told = json.loads(envelope(result))["error"]
    assert (told["code"], told["retry_after"]) == ("rate_limited", 5)


async def test_a5_failures_that_nobody_waits_for_are_recorded_with_their_call(tmp_path: Path) -> None:
    async with serving("high.py", "standard", tmp_path, OPTIONS) as session:
        assert (await call(session, "background"))["content"][0]["text"] == "started"
        assert (await call(session, "stray"))["content"][0]["text"] == "started"
        assert (await call(session, "stray_thread"))["content"][0]["text"] == "started"
        for _ in range(100):
            await asyncio.sleep(0.05)
            if len(faults(tmp_path)) == 3:
                break
    by_message = {fault["fault"]["message"]: fault for fault in faults(tmp_path)}
    assert set(by_message) == {"failed in the background", "failed without a call", "failed in a thread"}
    assert by_message["failed in the background"]["fault"]["tool"] == "background"
    assert "request" in by_message["failed in the background"]["call"]
    assert "tool" not in by_message["failed without a call"]["fault"]
    assert "request" not in by_message["failed without a call"].get("call", {})


async def test_a5_what_fails_after_its_answer_is_noted(tmp_path: Path) -> None:
    async with serving("high.py", "standard", tmp_path, OPTIONS) as session:
        result = await call(session, "after_answer")
        assert json.loads(envelope(result))["error"]["code"] == "timeout"
        for _ in range(60):
            await asyncio.sleep(0.05)
            noted = [event for event in events(tmp_path) if event["name"] == "failed_after_answer"]
            if noted:
                break
    assert noted[0]["facts"]["tool"] == "after_answer"
    assert len(faults(tmp_path)) == 1


async def test_a5_a_cancelled_call_is_recorded_once(tmp_path: Path) -> None:
    async with serving("high.py", "standard", tmp_path, {"timeout": 30, "with": []}) as session:
        with_cancel = asyncio.create_task(session.call_tool("hangs", {}))
        await asyncio.sleep(0.5)
        with_cancel.cancel()
        with pytest.raises(asyncio.CancelledError):
            await with_cancel
        if MAJOR == 1:
            # This client only forgets the request; the cancellation is a message of its own.
            import mcp.types as types

            told = types.CancelledNotification(
                method="notifications/cancelled", params=types.CancelledNotificationParams(requestId=1)
            )
            await session.send_notification(types.ClientNotification(told))
        for _ in range(60):
            await asyncio.sleep(0.05)
            if faults(tmp_path):
                break
        assert (await call(session, "ok", text="fine"))["isError"] is False
    assert [fault["fault"]["condition"] for fault in faults(tmp_path)] == ["cancelled"]
    assert faults(tmp_path)[0]["fault"]["tool"] == "hangs"


async def test_a5_the_end_of_the_connection_is_recorded(tmp_path: Path) -> None:
    async with serving("high.py", "standard", tmp_path, {"timeout": 30, "with": []}) as session:
        left = asyncio.create_task(session.call_tool("hangs", {}))
        await asyncio.sleep(0.5)
        left.cancel()
    await asyncio.sleep(0.2)
    assert [fault["fault"]["condition"] for fault in faults(tmp_path)] == ["cancelled"]


async def test_other_requests_fail_as_errors_with_an_envelope(tmp_path: Path) -> None:
    contract = Contract.builtin("standard")
    async with serving("high.py", "standard", tmp_path, OPTIONS) as session:
        requests = [
            (session.read_resource("note://today"), "resources/read"),
            (session.get_prompt("greeting", {"name": "you"}), "prompts/get"),
            (session.get_prompt("no_such_prompt", {}), "prompts/get"),
        ]
        for count, (request, method) in enumerate(requests, 1):
            with pytest.raises(Exception) as raised:
                await request
            error = raised.value.error  # type: ignore[attr-defined]
            report = contract.decode(json.dumps(error.data))
            seen = faults(tmp_path)
            assert len(seen) == count
            assert seen[-1]["fault"]["code"] == report["code"]
            assert seen[-1]["fault"]["method"] == method
            told = verdict(raised.value)
            assert told is not None and told.code == report["code"]


async def test_a_typed_failure_of_a_resource_keeps_its_code(tmp_path: Path) -> None:
    async with serving("high.py", "kaiza", tmp_path, {"with": []}) as session:
        with pytest.raises(Exception) as raised:
            await session.read_resource("note://today")
    told = raised.value.error.data  # type: ignore[attr-defined]
    assert told["error_code"] == Contract.builtin("kaiza").describe()["fallback"]
    assert told["human_message"] == "no note today"


async def test_an_unknown_method_has_an_envelope(tmp_path: Path) -> None:
    async with serving("high.py", "standard", tmp_path, OPTIONS) as session:
        error = await unknown_method(session)
    told = error.data["error"]
    assert told["code"] in ("unknown_method", "invalid_arguments")
    assert len(faults(tmp_path)) == 1


async def unknown_method(session: Any) -> Any:
    """The error for `harbour/ships`, which no SDK knows."""
    if MAJOR == 1:
        import mcp.types as types

        class Ships(types.Request[Any, Any]):
            method: str = "harbour/ships"
            params: Any = None

        with pytest.raises(Exception) as raised:
            await session.send_request(Ships(), types.EmptyResult)
    else:
        import mcp_types as types2
        from pydantic import BaseModel

        class Ships2(types2.Request[Any, Any]):
            method: str = "harbour/ships"
            params: Any = None

        with pytest.raises(Exception) as raised:
            await session.send_request(Ships2(), BaseModel)
    return raised.value.error  # type: ignore[attr-defined]


async def test_t6_undeclared_codes_are_found(tmp_path: Path) -> None:
    declared = {"fail": ["not_found"], "boom": []}
    for strict, code in ((False, "conflict"), (True, "internal")):
        audit = tmp_path / str(strict)
        async with serving("high.py", "standard", audit, {**OPTIONS, "codes": declared, "strict": strict}) as session:
            result = await call(session, "fail", code="not_found")
            assert json.loads(envelope(result))["error"]["code"] == "not_found"
            result = await call(session, "fail", code="conflict")
            assert json.loads(envelope(result))["error"]["code"] == code
            counters = await call(session, "counters")
            assert json.loads(counters["content"][0]["text"])["undeclared"] == 1
        assert faults(audit)[-1]["call"]["undeclared"] is True


async def test_a_result_that_its_schema_forbids_is_a_failure(tmp_path: Path) -> None:
    # Some SDKs find it themselves.
    async with serving("high.py", "standard", tmp_path, {**OPTIONS, "output": "enforce"}) as session:
        result = await call(session, "forbidden_output")
        told = json.loads(envelope(result))
    assert told["error"]["code"] == "bad_response"
    assert "x" in told["error"]["message"]
    # S5: the tool has an output schema, which is not for envelopes.
    assert "structuredContent" not in result
    assert result["_meta"]["io.modelcontextprotocol/toolFailure"]["code"] == told["error"]["code"]


async def test_k12_sessions_begin_lock_and_end(tmp_path: Path) -> None:
    async with serving("high.py", "kaiza", tmp_path, {"timeout": 5}) as session:

        async def code(tool: str, **arguments: Any) -> str | None:
            result = await call(session, tool, **arguments)
            return None if not result.get("isError") else str(json.loads(envelope(result))["error_code"])

        assert await code("ok", text="a") == "SESSION_NOT_INITIALIZED"
        assert await code("begin_session") is None
        assert await code("ok", text="a") is None
        assert await code("fail", code="POLICY_VIOLATION") == "POLICY_VIOLATION"
        assert await code("ok", text="a") == "SESSION_LOCKED"
        assert await code("read_notes") is None
        assert await code("write_file", path="docs/reports/a.md") is None
        assert await code("write_file", path="src/a.md") == "SESSION_LOCKED"
        assert await code("begin_session") is None
        assert await code("ok", text="a") is None
        assert await code("end_session") is None
        assert await code("ok", text="a") == "SESSION_NOT_INITIALIZED"
    # Another connection is another session.
    async with serving("high.py", "kaiza", tmp_path, {}) as session:
        assert json.loads(envelope(await call(session, "ok", text="a")))["error_code"] == "SESSION_NOT_INITIALIZED"


async def test_k1_the_sessions_facts_are_in_the_envelope(tmp_path: Path) -> None:
    known = {"id": "550e8400", "role": "WINDSURF", "workspace_root": "/w", "plan_hash": "abc"}
    async with serving("high.py", "kaiza", tmp_path, {"session": known, "with": []}) as session:
        told = json.loads(envelope(await call(session, "boom")))
    assert [told["session_id"], told["role"], told["plan_hash"]] == ["550e8400", "WINDSURF", "abc"]
    assert told["tool_name"] == "boom"


@pytest.mark.parametrize("profile", ["api", "workflow"])
async def test_t5_successes_and_failures_have_the_metadata_of_their_profile(profile: str, tmp_path: Path) -> None:
    meta = {"tool_version": "1.2.3", "mode": "autopilot", "approval_mode": False}
    async with serving("high.py", "tuitbot", tmp_path, {**OPTIONS, "profile": profile, "meta": meta}) as session:
        for tool, success in (("read_notes", True), ("boom", False)):
            result = await call(session, tool)
            told = json.loads(result["content"][0]["text"])
            assert list(told)[:2] == ["success", "data"]
            assert told["success"] is success
            assert result["isError"] is not success
            assert told["meta"]["tool_version"] == "1.2.3"
            assert ("mode" in told["meta"]) == ("approval_mode" in told["meta"]) == (profile == "workflow")
            assert told["meta"].get("approval_mode") is (False if profile == "workflow" else None)


async def test_u2_what_the_client_said_itself_stays(tmp_path: Path) -> None:
    async with serving("high.py", "standard", tmp_path, OPTIONS) as session:
        result = await call(session, "says_error", text="Error: not found: /srv/notes/a.md")
        assert "/srv/notes/a.md" in envelope(result)
        result = await call(session, "enoent")
        assert "/srv/nowhere" not in envelope(result)
