"""The runtime without any SDK: contracts, failures, errors, readers."""

from __future__ import annotations

import doctest
import importlib
import json
import math
import pickle
import pkgutil
from pathlib import Path

import pytest

import faultwire
from faultwire import (
    Alerts,
    Contract,
    ContractError,
    EnvelopeError,
    Failure,
    FaultError,
    FaultwireError,
    InputError,
    Reader,
    UnknownCodeError,
    UnknownContractError,
    builtins,
    is_failure,
    redact,
    verdict,
)

STANDARD = Contract.builtin("standard")
KAIZA = Contract.builtin("kaiza")
WORKRAIL = Contract.builtin("workrail")
#: No SDK is installed for these.
ALONE = [name for _, name, _ in pkgutil.walk_packages(faultwire.__path__, "faultwire.") if "mcp" not in name and name not in ("faultwire._engine", "faultwire.langchain")]


@pytest.mark.parametrize("name", ["faultwire", *ALONE])
def test_docstrings(name: str) -> None:
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        assert error.name and not error.name.startswith("faultwire"), error
        return
    # The class of an error is printed with the module that it is made in.
    assert doctest.testmod(module, optionflags=doctest.IGNORE_EXCEPTION_DETAIL).failed == 0


@pytest.mark.parametrize("name", builtins())
def test_a4_every_envelope_is_read_back(name: str) -> None:
    contract = Contract.builtin(name)
    for code in contract.codes:
        fault = contract.fault({"code": code, "tool": "read"})
        for surface in ("mcp", "http", "result"):
            assert contract.decode(fault.render(surface))["code"] == code
        told = verdict(fault.render("result"))
        assert told is not None and told.code == code and told.contract == name


@pytest.mark.parametrize("name", builtins())
def test_the_modules_of_codes_match_their_contracts(name: str) -> None:
    module = importlib.import_module(f"faultwire.{name.replace('-', '_')}")
    assert set(module.CODES) == set(Contract.builtin(name).codes)
    for row in Contract.builtin(name).describe()["codes"]:
        constructor = getattr(module, row["id"].lower().replace(".", "_"))
        failure = constructor("said so", details={"n": 1})
        assert (failure.code, failure.message) == (row["id"], "said so")
        assert module.is_fault(failure) and module.is_fault(failure, row["id"])
        assert module.CODES[row["id"]]["category"] == row["category"]


def test_k3_a_code_that_is_not_registered_cannot_be_constructed() -> None:
    with pytest.raises(UnknownCodeError) as raised:
        Failure(KAIZA, "FILE_NOT_FUOND")
    assert "FILE_NOT_FOUND" in str(raised.value)
    assert raised.value.kind == "unknown_code"


def test_k3_facts_that_the_code_does_not_take_are_refused() -> None:
    with pytest.raises(FaultError):
        Failure(STANDARD, "not_found", retry_after_ms=5)
    with pytest.raises(FaultError):
        Failure(WORKRAIL, "NOT_FOUND", retry="immediate")
    Failure(WORKRAIL, "TIMEOUT", retry="never")


def test_k6_four_ways_to_make_one_drop_nothing() -> None:
    facts = {"message": "m", "session": {"id": "s", "phase": "P"}, "details": {"a": 1}, "tool": "t"}
    error = OSError(2, "No such file")
    made = [
        Failure.from_unknown(KAIZA, error, code="FILE_NOT_FOUND", **facts),
        Failure.invariant_violation(KAIZA, "ONE_PLAN", cause=error, **facts),
        Failure.tool_failure(KAIZA, "FILE_READ_FAILED", cause=error, **facts),
        Failure.startup_failure(KAIZA, "SELF_AUDIT_FAILURE", cause=error, **facts),
    ]
    codes = ["FILE_NOT_FOUND", "INVARIANT_VIOLATION", "FILE_READ_FAILED", "SELF_AUDIT_FAILURE"]
    assert [failure.code for failure in made] == codes
    for failure in made:
        report = failure.report()
        assert report["message"] == "m" and report["session"] == facts["session"]
        assert report["cause"]["code"] == "ENOENT" and report["cause"]["name"] == "FileNotFoundError"
        assert report["details"] == {"a": 1}
    assert made[1].report()["invariant"] == "ONE_PLAN"
    assert made[3].report()["tool"] == "startup"


def test_k7_the_errors_own_code_comes_first() -> None:
    class Coded(Exception):
        code = "HASH_MISMATCH"

    assert Failure.from_unknown(KAIZA, Coded("x"), code="FILE_READ_FAILED").code == "HASH_MISMATCH"
    assert Failure.from_unknown(KAIZA, ValueError("x"), code="FILE_READ_FAILED").code == "FILE_READ_FAILED"
    assert Failure.from_unknown(KAIZA, ValueError("x")).code == KAIZA.describe()["fallback"]
    assert Failure.from_unknown(KAIZA, {"error_code": "PATCH_INVALID", "message": "m"}).code == "PATCH_INVALID"
    assert Failure.from_unknown(KAIZA, "only words").message == "only words"
    silent = Failure.from_unknown(KAIZA, ValueError())
    assert silent.message == KAIZA.codes[silent.code]["message"] != ""


def test_k4_causes_are_chained() -> None:
    try:
        try:
            raise KeyError("deepest")
        except KeyError as error:
            raise OSError(13, "Permission denied") from error
    except OSError as error:
        failure = Failure(KAIZA, "FILE_READ_FAILED", cause=error)
    cause = failure.report()["cause"]
    assert (cause["code"], cause["cause"]["name"]) == ("EACCES", "KeyError")
    # What was handled when it was raised counts, unless it was said not to.
    with pytest.raises(Failure) as raised:
        try:
            raise ValueError("handled")
        except ValueError:
            raise Failure(KAIZA, "FILE_READ_FAILED") from None
    assert "cause" not in raised.value.report()


def test_w5_details_that_are_not_json_are_an_internal_failure() -> None:
    failure = Failure(WORKRAIL, "NOT_FOUND", "no such flow", details={"ratio": math.nan, "who": object()})
    assert failure.code == "INTERNAL_ERROR"
    told = json.loads(failure.fault().render())
    assert told["message"] == "Error details validation failed"
    assert told["details"]["originalError"] == "no such flow"
    assert told["details"]["validationErrors"] == ["$.ratio: NaN is no JSON number", "$.who: object is not JSON"]
    assert WORKRAIL.fault({"code": "NOT_FOUND", "details": [math.inf]}).code == "INTERNAL_ERROR"


def test_names_that_are_not_utf_8_do_not_break_an_envelope() -> None:
    failure = Failure(STANDARD, "not_found", "cannot read 'caf\udce9.txt'")
    assert "caf" in failure.fault().render()


def test_a_failure_crosses_processes() -> None:
    failure = Failure(STANDARD, "rate_limited", "slow down", retry_after_ms=20, details={"n": 1})
    failure.__cause__ = ValueError("below")
    again = pickle.loads(pickle.dumps(failure))
    assert is_failure(again, STANDARD, "rate_limited")
    assert (again.message, again.retry_after_ms, again.details) == ("slow down", 20, {"n": 1})
    assert again.report()["cause"]["message"] == "below"


def test_errors_say_where_and_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(UnknownContractError) as unknown:
        Contract.builtin("kayza")
    assert "kaiza" in str(unknown.value)
    file = tmp_path / "bad.toml"
    file.write_text('[contract]\nname = "bad"\nversion = "one"\n')
    with pytest.raises(ContractError) as bad:
        Contract.load(file)
    assert (bad.value.file, bad.value.line) == (str(file), 3) or bad.value.line
    assert bad.value.help and bad.value.help in str(bad.value)
    with pytest.raises(EnvelopeError):
        STANDARD.decode("{}")
    with pytest.raises(InputError):
        STANDARD.retry("{", attempt=1) if False else redact("x", keep=["nothing"])
    assert all(issubclass(kind, FaultwireError) for kind in (ContractError, EnvelopeError, InputError))


def test_a_contract_of_ones_own(tmp_path: Path) -> None:
    text = (Path(__file__).parents[3] / "crates/faultwire-contract/tests/data/harbour.toml").read_text()
    contract = Contract.parse("harbour.toml", text)
    fault = contract.fault({"code": "H-300", "message": "Fog"})
    assert fault.render() == '["failure","H-300",{"text":"Fog","again":"occasionally"}]'
    assert pickle.loads(pickle.dumps(contract)).name == contract.name
    told = Reader([contract]).verdict(fault.render("result"))
    assert told is not None and told.code == "H-300"


def test_classify_and_redact() -> None:
    reply = '{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"Error: 429 Too Many Requests, retry in 5s"}]}}'
    judged = STANDARD.classify(reply, why=True)
    assert (judged["code"], judged["retry_after_ms"]) == ("rate_limited", 5000)
    assert judged["why"]
    assert STANDARD.classify('{"jsonrpc":"2.0","id":1,"result":{"content":[]}}') == {"failure": False}
    assert redact("key sk-abcdefghij0123456789 in /etc/x") == "key [redacted] in [redacted:path]"


def test_a7_only_safe_calls_are_retried() -> None:
    result = STANDARD.fault({"code": "timeout", "outcome": "maybe_executed"}).render("result")
    stopped, allowed = verdict(result), verdict(result, read_only=True)
    assert stopped is not None and not stopped.retry
    assert allowed is not None and allowed.retry and allowed.delay_ms is not None
    exhausted = verdict(result, read_only=True, budget=0)
    assert exhausted is not None and not exhausted.retry


def test_o7_alerts() -> None:
    alerts = Alerts(Contract.builtin("owlclaw"))
    pages = [alerts.observe({"t": t, "client": "c", "code": "runtime.timeout"}) for t in range(8)]
    assert [bool(page) for page in pages] == [False] * 5 + [True, False, False]
    assert alerts.forgotten == 0
    with pytest.raises(UnknownCodeError):
        alerts.observe({"t": 9, "client": "c", "code": "runtime.timeuot"})


def test_c4_the_same_stamp_gives_the_same_bytes() -> None:
    stamp = {"now_ms": 1_700_000_000_000, "random": 7}
    made = {KAIZA.fault({"code": "FILE_NOT_FOUND"}, stamp).render() for _ in range(10)}
    assert len(made) == 1
