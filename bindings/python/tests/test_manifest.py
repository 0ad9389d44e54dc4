"""The manifest of a server and its drift test."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from faultwire import InputError, UnknownCodeError, assert_manifest, boundary_of, manifest, with_contract

try:
    from mcp.server.mcpserver import MCPServer as High
except ImportError:
    from mcp.server.fastmcp import FastMCP as High  # type: ignore[no-redef]

CODES: dict[str, Any] = {
    "post": {"codes": ["x_rate_limited"], "category": "content", "mutation": True, "requires": ["x_client"]},
    "draft": {"codes": ["llm_error"], "requires": ["llm"], "profiles": ["workflow"]},
}


def server(codes: dict[str, Any] = CODES) -> Any:
    return with_contract(High("manifest"), "tuitbot", audit=False, codes=codes)


def test_t6_the_manifest_is_sorted_and_stable() -> None:
    told = json.loads(manifest(server()))
    assert manifest(server()) == manifest(server(dict(reversed(CODES.items()))))
    assert [tool["name"] for tool in told["tools"]] == ["draft", "post"]
    post = told["tools"][1]
    assert list(post) == ["name", "category", "mutation", "requires_llm", "requires_x_client", "profiles", "possible_error_codes"]
    assert (post["mutation"], post["requires_x_client"], post["requires_llm"]) == (True, True, False)
    assert post["profiles"] == ["api", "workflow"]
    assert post["possible_error_codes"] == sorted(post["possible_error_codes"])
    # What the boundary itself may answer is in it.
    assert {"x_rate_limited", boundary_of(server()).contract.describe()["conditions"]["timeout"]} <= set(post["possible_error_codes"])


def test_t6_a_changed_or_missing_manifest_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "manifest.json"
    with pytest.raises(AssertionError, match="does not exist"):
        assert_manifest(server(), path)
    monkeypatch.setenv("FAULTWIRE_UPDATE", "1")
    assert_manifest(server(), path)
    monkeypatch.delenv("FAULTWIRE_UPDATE")
    assert_manifest(server(), path)
    with pytest.raises(AssertionError) as changed:
        assert_manifest(server({**CODES, "draft": {**CODES["draft"], "codes": ["llm_error", "topic_error"]}}), path)
    assert '+ draft: possible_error_codes "topic_error"' in str(changed.value)


def test_t6_a_code_that_the_contract_does_not_have_is_refused() -> None:
    with pytest.raises(UnknownCodeError):
        server({"post": ["x_rate_limitde"]})


def test_one_boundary_a_server() -> None:
    made = server()
    with pytest.raises(InputError, match="already"):
        with_contract(made, "tuitbot")
    with pytest.raises(InputError, match="no MCP server"):
        with_contract(object(), "tuitbot")
    with pytest.raises(InputError, match="unknown option timeuot"):
        with_contract(High("x"), "tuitbot", audit=False, timeuot=3)  # type: ignore[call-arg]
