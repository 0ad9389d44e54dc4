"""Problem Details over HTTP, for Starlette and FastAPI."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest
from fastapi import FastAPI
from harness_audit import faults
from pydantic import BaseModel
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, PlainTextResponse, StreamingResponse
from starlette.routing import Route

from faultwire import Contract, owlclaw
from faultwire.starlette import ProblemDetails

pytestmark = pytest.mark.anyio
OWLCLAW = Contract.builtin("owlclaw")


async def limited(request: Any) -> Any:
    raise owlclaw.governance_rate_limited("slow down", retry_after_ms=1500)


async def broken(request: Any) -> Any:
    raise RuntimeError("password=hunter2")


async def slow(request: Any) -> Any:
    await asyncio.sleep(30)


async def fine(request: Any) -> Any:
    return JSONResponse({"fine": True}, headers={"x-own": "1"})


async def aborted(request: Any) -> Any:
    raise HTTPException(401, "who are you", headers={"www-authenticate": "Basic"})


async def busy(request: Any) -> Any:
    return PlainTextResponse("busy", 503, headers={"retry-after": "7", "set-cookie": "a=b"})


async def streamed(request: Any) -> Any:
    async def parts() -> Any:
        for _ in range(4):
            yield "part "
            await asyncio.sleep(0.2)

    return StreamingResponse(parts())


class Order(BaseModel):
    tons: int
    to: str


ROUTES = [Route(f"/{handler.__name__}", handler) for handler in (limited, broken, slow, fine, aborted, busy, streamed)]


def client(app: Any) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app=app, raise_app_exceptions=False), base_url="http://test")


async def test_o2_every_failure_is_problem_details_recorded_first(tmp_path: Path) -> None:
    app = Starlette(routes=ROUTES)
    app.add_middleware(ProblemDetails, contract="owlclaw", audit=tmp_path, timeout=0.5)
    async with client(app) as http:
        for count, (path, code, status) in enumerate(
            [
                ("limited", "governance.rate_limited", 429),
                ("broken", "internal.unexpected", 500),
                ("slow", "runtime.timeout", 504),
                ("aborted", "auth.unauthorized", 401),
                ("busy", "dependency.unavailable", 503),
                ("nowhere", "protocol.unsupported_version", 400),
            ],
            1,
        ):
            response = await http.get(f"/{path}", headers={"traceparent": f"00-{count:032x}-00f067aa0ba902b7-01"})
            told = response.json()
            assert (told["code"], told["status"], response.status_code) == (code, status, status), path
            assert response.headers["content-type"] == "application/problem+json"
            assert "hunter2" not in response.text
            record = faults(tmp_path)[-1]
            assert len(faults(tmp_path)) == count
            assert record["fault"]["incident"] == told["incident_id"]
            assert f"{count:x}" in told["incident_id"]
        limited = await http.get("/limited")
        assert limited.headers["retry-after"] == "2" and limited.json()["retry_after"] == 2
        busy = await http.get("/busy")
        assert busy.headers["retry-after"] == "7" and busy.headers["set-cookie"] == "a=b"
        assert (await http.get("/aborted")).headers["www-authenticate"] == "Bearer"


async def test_a8_successes_pass_untouched_however_long_they_take(tmp_path: Path) -> None:
    app = Starlette(routes=ROUTES)
    app.add_middleware(ProblemDetails, contract="owlclaw", audit=tmp_path, timeout=0.3)
    async with client(app) as http, client(Starlette(routes=ROUTES)) as plain:
        ours, theirs = await http.get("/fine"), await plain.get("/fine")
        assert (ours.content, ours.headers) == (theirs.content, theirs.headers)
        # It has begun before its deadline.
        assert (await http.get("/streamed")).text == "part " * 4
    assert faults(tmp_path) == []


async def test_w4_fastapi_tells_what_is_wrong_with_each_field(tmp_path: Path) -> None:
    app = FastAPI()

    @app.post("/order")
    async def order(order: Order) -> str:
        raise owlclaw.auth_forbidden("not you")

    app.add_middleware(ProblemDetails, contract="workrail", audit=tmp_path)
    async with client(app) as http:
        told = (await http.post("/order", json={"tons": "many"})).json()
        assert told["code"] == "VALIDATION_ERROR"
        assert {issue["path"] for issue in told["details"]["validationIssues"]} == {"tons", "to"}


async def test_o5_one_failure_has_the_same_incident_on_both_surfaces() -> None:
    fault = owlclaw.dependency_unavailable("away").fault()
    http, mcp = OWLCLAW.decode(fault.render("http")), OWLCLAW.decode(fault.render("mcp"))
    for fact in ("code", "incident", "retry"):
        assert http[fact] == mcp[fact]
