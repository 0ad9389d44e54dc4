"""The boundary as a middleware of fastmcp among others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from harness import call, envelope, faults, serving

pytestmark = pytest.mark.anyio


async def test_k9_a_middleware_gives_the_same_envelopes(tmp_path: Path) -> None:
    async with serving("middleware.py", "standard", tmp_path) as session:
        result = await call(session, "typed_failure")
        assert json.loads(envelope(result))["error"]["code"] == "conflict"
        result = await call(session, "boom")
        assert "hunter2" not in json.dumps(result)
        result = await call(session, "fine", count="many")
        told = json.loads(envelope(result))["error"]
        assert told["code"] == "invalid_arguments"
        assert told["details"]["validationIssues"][0]["path"] == "count"
        assert json.loads(envelope(await call(session, "nothing")))["error"]["code"] == "unknown_tool"
        assert (await call(session, "fine", count=2))["structuredContent"] == {"result": 2}
        with pytest.raises(Exception) as raised:
            await session.read_resource("note://today")
        assert raised.value.error.data["error"]["code"] == "quota_exceeded"  # type: ignore[attr-defined]
    assert [record["fault"]["code"] for record in faults(tmp_path)] == [
        "conflict",
        "internal",
        "invalid_arguments",
        "unknown_tool",
        "quota_exceeded",
    ]
