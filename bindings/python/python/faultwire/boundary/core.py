"""The part of a boundary that is the same for every SDK."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any

from .._json import compact
from .._loop import Waiter
from .._native import _engine
from .._native import call as native_call
from ..audit import AuditLog, Forked
from ..errors import FaultwireError
from ..thrown import thrown
from .call import CURRENT, OpenCall
from .settings import Options, contract_of, open_audit, settings_text
from .watch import Cancelled, Ended, Late, Raised, watched

if TYPE_CHECKING:
    import os
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from ..contract import Contract

__all__ = ["Answer", "Boundary"]

#: Errors of a boundary itself, which have no other place to go.
LOGGER = logging.getLogger("faultwire")

#: The deadline of a call, in seconds.
DEADLINE = 60.0


class Answer:
    """What the client of a failed call gets."""

    __slots__ = ("body", "code", "headers", "incident", "is_recorded", "status")

    def __init__(self, facts: Mapping[str, Any]) -> None:
        #: The result, the JSON-RPC error, or the text of an HTTP body.
        self.body: Any = facts["answer"]
        self.code: str = facts["code"]
        self.incident: str | None = facts["incident"]
        self.is_recorded: bool = facts["recorded"]
        self.status: int = facts.get("status", 0)
        self.headers: dict[str, str] = facts.get("headers", {})


class Boundary:
    """A boundary under a contract. The modules for each SDK call it."""

    def __init__(
        self, contract: Contract | str | os.PathLike[str], *, name: str = "server", options: Options | None = None
    ) -> None:
        options = options if options is not None else {}
        self.contract = contract_of(contract)
        self.name = name
        #: The log of its failures.
        self.audit: AuditLog | None = None
        settings = settings_text(options)
        self.audit = open_audit(options.get("audit"), name)
        log = None if self.audit is None else self.audit._held.get()
        native = native_call(_engine.Boundary, self.contract._native, log, settings)
        self._held = Forked(native, f"The log of the boundary of {name}") if log is not None else None
        self._native = native
        #: The deadline of a call, in seconds.
        self.timeout: float | None = options.get("timeout", DEADLINE)
        self.codes: Mapping[str, Any] = options.get("codes", {})
        self._session = options.get("session")
        has_sessions: bool = self.contract._native.has_sessions
        self._refuses = has_sessions or options.get("arguments") == "enforce"
        self._looks = has_sessions or bool(self.contract._native.wraps_success)
        self._checks_output = options.get("output") != "off"
        #: Whether the SDK itself checks results: then they need no second look.
        self.sdk_checks_output = False
        #: The tools whose results can be checked.
        self._with_output: set[str] = set()

    def engine(self) -> Any:
        """The native part; a forked process must not use one with a log."""
        return self._native if self._held is None else self._held.get()

    def standing(self) -> Any:
        """A session of a client that was not begun yet (K12)."""
        return _engine.Standing()

    def learn(self, listed: str) -> None:
        """Learns the tools of a ``tools/list`` result."""
        try:
            native_call(self.engine().learn, listed)
            for tool in json.loads(listed)["tools"]:
                if tool.get("outputSchema") is not None:
                    self._with_output.add(tool["name"])
        except FaultwireError as error:
            LOGGER.warning("the list of tools cannot be read: %s", error)

    def knows(self, tool: str) -> bool:
        """Whether a tool was listed."""
        return bool(self.engine().knows(tool))

    @property
    def undeclared(self) -> int:
        """How many failures had a code that their tool does not declare."""
        return int(self.engine().undeclared)

    @property
    def mismatched(self) -> int:
        """How many successes did not match the output schema of their tool."""
        return int(self.engine().mismatched)

    async def run(
        self,
        call: OpenCall,
        handler: Callable[[], Awaitable[Any]],
        *,
        seconds: float | None = None,
        begun: Callable[[], bool] | None = None,
    ) -> Ended:
        """Runs the handler of a call: whatever runs below it belongs to the call."""
        from .background import attend

        attend(self)
        token = CURRENT.set(call)
        try:
            return await watched(handler, seconds, lambda ended: self.too_late(call, ended), begun)
        finally:
            CURRENT.reset(token)

    async def refusal(self, call: OpenCall) -> Answer | None:
        """The answer to a call that may not reach its handler."""
        if not self._refuses or not call.is_tool:
            return None
        call.session = self.known_session()
        return await self._answered(
            call, lambda done: self.engine().refusal(call.facts(), call.standing or self.standing(), call.form, done)
        )

    async def returned(self, call: OpenCall, result: str) -> Answer | None:
        """The answer that is sent instead of a result; None for a success that passes as it is."""
        if self.is_plain(call, result):
            return None
        call.session = self.known_session()
        standing = call.standing or self.standing()
        return await self._answered(
            call, lambda done: self.engine().returned(call.facts(), standing, result, call.form, done)
        )

    def is_plain(self, call: OpenCall, result: str) -> bool:
        """Whether a result certainly is a success that nothing more has to be known of."""
        checks = self._checks_output and not self.sdk_checks_output
        if self._looks or (checks and call.tool in self._with_output):
            return False
        return bool(native_call(self.engine().passes, result))

    async def raised(
        self,
        call: OpenCall,
        error: BaseException,
        *,
        issues: Iterable[Mapping[str, Any]] | None = None,
    ) -> Answer:
        """The answer to a call whose handler raised this."""
        if isinstance(error, FaultwireError):
            # The server itself asked the engine for something that the contract does not allow.
            return await self.failed(call, "internal", str(error))
        return await self.failed(call, "threw", thrown(error, self.contract, issues=issues))

    async def refused(self, call: OpenCall, code: int, message: str, data: Any = None) -> Answer:
        """The answer to a call whose handler returned a JSON-RPC error."""
        from .._json import lossy

        error = {"code": code, "message": message}
        if data is not None:
            error["data"] = lossy(data)
        return await self.failed(call, "refused", compact(error))

    async def failed(self, call: OpenCall, how: str, what: str) -> Answer:
        """The answer to a call that failed: ``threw``, ``refused``, or the name of a condition."""
        call.session = self.known_session()
        standing = call.standing or self.standing()
        answer = await self._answered(
            call, lambda done: self.engine().failed(call.facts(), standing, how, what, call.form, done)
        )
        assert answer is not None
        return answer

    async def ended_badly(self, call: OpenCall, ended: Ended) -> Answer:
        """The answer to a call whose handler neither returned nor raised."""
        if isinstance(ended, Late):
            return await self.failed(call, "timeout", f"No answer within {ended.seconds:g} s")
        if isinstance(ended, Cancelled):
            return await self.failed(call, "cancelled", "The handler was cancelled")
        assert isinstance(ended, Raised)
        return await self.raised(call, ended.error)

    def note(self, call: OpenCall, how: str, what: str) -> None:
        """Records a failure that nobody waits for, once a call."""
        if call.is_settled:
            return
        call.is_settled = True
        try:
            standing = call.standing or self.standing()
            native_call(self.engine().failed, call.facts(), standing, how, what, "result", ignore)
        except FaultwireError:
            LOGGER.exception("a failure cannot be recorded")

    def cancelled(self, call: OpenCall) -> None:
        """Records that the client, or the end of the connection, took a call back."""
        call.session = self.known_session()
        self.note(call, "cancelled", "Cancelled by the client")

    def left_behind(self, error: BaseException, call: OpenCall | None) -> None:
        """Records what nobody waited for: of a call, if it is known whose."""
        own = OpenCall(call.method if call else "background", tool=call.tool if call else None)
        if call is not None:
            own.arguments, own.request, own.client = call.arguments, call.request, call.client
            own.trace, own.session = call.trace, call.session
        try:
            self.note(own, "threw", thrown(error, self.contract))
        except Exception:
            LOGGER.exception("a failure in the background cannot be recorded")

    def too_late(self, call: OpenCall, ended: Ended) -> None:
        """Notes what a handler raised after its call was answered."""
        from ..thrown import message_of

        error = ended.error if isinstance(ended, Raised) else call.raised and call.raised[0]
        if not isinstance(error, BaseException):
            return
        facts = {"tool": call.tool, "request": call.request}
        facts.update(name=type(error).__name__, message=message_of(error))
        self.engine().event("failed_after_answer", compact(facts))

    def known_session(self) -> Mapping[str, str] | None:
        """The session's facts. A function that fails to tell them must not prevent the answer."""
        if not callable(self._session):
            return None
        try:
            return self._session()
        except Exception:
            LOGGER.exception("the session's facts are not known")
            return None

    async def _answered(self, call: OpenCall, ask: Callable[[Any], Any]) -> Answer | None:
        """The answer of the engine, when its record is on disk."""
        waiter = None if self.audit is None else Waiter()
        made = native_call(ask, None if waiter is None else waiter.done)
        if made is None:
            return None
        is_success, text = made
        if is_success:
            return Answer({"answer": json.loads(text), "code": "", "incident": None, "recorded": False})
        call.is_settled = True
        return Answer(json.loads(text if waiter is None else await waiter))


def ignore(_answer: Any, _error: Any) -> None:
    """Nobody waits."""
