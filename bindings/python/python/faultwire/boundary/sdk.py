"""What the SDKs of MCP make of an exception, undone: what was raised, by whom, and about what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._json import compact
from ..thrown import alone, below, frames_of, raised_in

if TYPE_CHECKING:
    from .call import OpenCall
    from .core import Answer, Boundary

__all__ = ["answer_to", "is_flow", "origin"]

#: Their own code. What other code raises is a handler's.
SDK = frozenset({"mcp", "mcp_types", "fastmcp"})

#: With the libraries that validate arguments for them.
VALIDATING = SDK | {"pydantic", "pydantic_core", "jsonschema"}

#: A JSON-RPC error that starts an exchange with the client, and is no failure.
URL_ELICITATION = -32042

#: The codes of the protocol itself, whose `data` clients read.
PROTOCOL = range(-32099, -32019)


def origin(error: BaseException) -> BaseException:
    """What a handler raised, where the SDK wrapped it in an exception of its own."""
    error = alone(error)
    while raised_in(error, SDK):
        inner = below(error)
        if inner is None:
            return error
        error = alone(inner)
    return error


def rpc_error(error: BaseException) -> Any:
    """The JSON-RPC error that an exception of an SDK carries, if it carries one."""
    held = getattr(error, "error", None)
    is_sdk = type(error).__module__.partition(".")[0] in SDK
    return held if is_sdk and hasattr(held, "code") and hasattr(held, "message") else None


def is_flow(error: BaseException) -> bool:
    """Whether it is no failure, but asks the client to do something first."""
    held = rpc_error(origin(error))
    return held is not None and held.code == URL_ELICITATION


def protocol_error(error: BaseException) -> Any:
    """The error of the protocol that it is, which clients know by its code, if it is one."""
    held = rpc_error(origin(error))
    return held if held is not None and held.code in PROTOCOL else None


async def answer_to(boundary: Boundary, call: OpenCall, raised: BaseException) -> Answer:
    """The answer to a call whose handler, or whose SDK, raised this."""
    error = origin(raised)
    issues = issues_of(error)
    if issues is not None:
        if is_about_output(error):
            return await boundary.failed(call, "upstream_protocol", f"The result does not match: {in_words(issues)}")
        if is_about_arguments(error):
            return await boundary.raised(call, error, issues=issues)
    if is_jsonschema(error) and is_about_arguments(error):
        return await boundary.failed(call, "invalid_arguments", str(getattr(error, "message", error)))
    held = rpc_error(error)
    if held is not None:
        return await boundary.refused(call, held.code, held.message, held.data)
    by_sdk = raised_in(error, SDK)
    if by_sdk and call.is_tool and call.tool is not None and not boundary.knows(call.tool):
        return await boundary.failed(call, "unknown_tool", str(error))
    return await boundary.raised(call, error)


def issues_of(error: BaseException) -> list[dict[str, Any]] | None:
    """What pydantic found, one issue a field."""
    if type(error).__module__.partition(".")[0] not in ("pydantic", "pydantic_core"):
        return None
    errors = getattr(error, "errors", None)
    return errors(include_url=False, include_context=False, include_input=False) if callable(errors) else None


def is_jsonschema(error: BaseException) -> bool:
    return type(error).__module__.partition(".")[0] == "jsonschema"


def is_about_arguments(error: BaseException) -> bool:
    """Whether the SDK refused the arguments: no frame of the handler is in its traceback."""
    ours = VALIDATING | {"faultwire", "asyncio", "anyio"}
    return all(package in ours for package, _ in frames_of(error))


def is_about_output(error: BaseException) -> bool:
    """Whether the SDK refused the handler's result."""
    return is_about_arguments(error) and any(name == "convert_result" for _, name in frames_of(error))


def in_words(issues: list[dict[str, Any]]) -> str:
    parts = [f"{'.'.join(str(part) for part in issue['loc'])} ({issue['msg']})" for issue in issues[:3]]
    return ", ".join(parts)


def with_envelope(body: dict[str, Any], held: Any) -> dict[str, Any]:
    """An error of the protocol keeps its code and its data; the envelope is beside them."""
    data = held.data if isinstance(held.data, dict) else {}
    return {"code": held.code, "message": held.message, "data": {**data, "envelope": body.get("data")}}


def trace_of(meta: Any) -> str | None:
    """The trace that a request belongs to."""
    if meta is None:
        return None
    told = meta.get("traceparent") if hasattr(meta, "get") else getattr(meta, "traceparent", None)
    return told if isinstance(told, str) else None


def client_of(info: Any) -> str | None:
    """The name of the client."""
    name = getattr(info, "name", None)
    return name if isinstance(name, str) else None


def text_of(result: Any) -> str:
    """A result as JSON."""
    dump = getattr(result, "model_dump_json", None)
    if dump is not None:
        text: str = dump(by_alias=True, exclude_none=True)
        return text
    return compact(result)
