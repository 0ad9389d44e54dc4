"""Typed codes: right programs pass `mypy --strict` and pyright, wrong ones get the right message."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

RIGHT = '''
from typing_extensions import assert_never, assert_type
from typing import Literal
from faultwire import AuditLog, Contract, Failure, Fault, verdict
from faultwire import kaiza, owlclaw, standard, workrail
from faultwire.standard import Code, Codes, is_fault


def read(day: str) -> str:
    if day == "monday":
        raise standard.not_found("There is no note", details={"day": day}, suggestion="Try tuesday")
    raise standard.rate_limited(retry_after_ms=500)


def more() -> None:
    raise workrail.timeout(retry="never") from OSError("slow")


def http() -> None:
    raise owlclaw.protocol_unsupported_version(status=426)


def action(failure: Failure[Literal["not_found", "conflict"]]) -> str:
    match failure.code:
        case "not_found":
            return "look elsewhere"
        case "conflict":
            return "read again"
    assert_never(failure.code)


try:
    read("monday")
except Failure as error:
    if is_fault(error, "not_found", "conflict"):
        action(error)
        assert_type(error.code, Literal["not_found", "conflict"])

code: Code = Codes.NOT_FOUND
row = standard.CODES[code]
status: tuple[int, ...] = row["status"]
fault: Fault = kaiza.file_not_found("gone", session={"id": "s"}).fault()
told = verdict(fault.render("result"), read_only=True)
if told is not None and told.code == Codes.TIMEOUT:
    delay: int | None = told.delay_ms


async def record(log: AuditLog, contract: Contract) -> int | None:
    return await log.append(contract.fault({"code": "internal"}))
'''

#: A wrong line, and a word of the message of mypy and of pyright.
WRONG = [
    ("standard.not_found(retry_after_ms=5)", "retry_after_ms", "retry_after_ms"),
    ("owlclaw.auth_forbidden(retry_after_ms=5)", "retry_after_ms", "retry_after_ms"),
    ("standard.not_fuond()", "not_fuond", "not_fuond"),
    ("standard.not_found('m', 'a second text')", "Too many positional arguments", "Expected 1 positional argument"),
    ("workrail.not_found(retry='immediate')", "Unexpected keyword argument", "retry"),
    ("workrail.timeout(retry='sometimes')", "incompatible type", "sometimes"),
    ("owlclaw.protocol_unsupported_version(status=500)", "incompatible type", "500"),
    ("code: standard.Code = 'not_fuond'", "Incompatible types in assignment", "not_fuond"),
    ("standard.is_fault(ValueError(), 'not_fuond')", "No overload variant", "not_fuond"),
    ("standard.CODES['not_fuond']", "not_fuond", "not_fuond"),
    ("tuitbot.validation_error(data={})", "data", "data"),
]

HEAD = "from faultwire import owlclaw, standard, tuitbot, workrail\n"


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("programs")
    (directory / "right.py").write_text(RIGHT)
    for number, (line, _, _) in enumerate(WRONG):
        (directory / f"wrong_{number:02}.py").write_text(f"{HEAD}\n{line}\n")
    return directory


@pytest.fixture(scope="module")
def mypy(programs: Path) -> dict[str, list[str]]:
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--cache-dir", str(programs / "cache"), "."]
    done = subprocess.run(command, cwd=programs, capture_output=True, text=True)
    found: dict[str, list[str]] = {}
    for line in done.stdout.splitlines():
        if ": error: " in line:
            file, _, message = line.partition(":")
            found.setdefault(file, []).append(message)
    assert found, done.stdout + done.stderr
    return found


@pytest.fixture(scope="module")
def pyright(programs: Path) -> dict[str, list[str]]:
    (programs / "pyrightconfig.json").write_text(json.dumps({"typeCheckingMode": "strict"}))
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "--outputjson"]
    done = subprocess.run(command, cwd=programs, capture_output=True, text=True)
    found: dict[str, list[str]] = {}
    for diagnostic in json.loads(done.stdout)["generalDiagnostics"]:
        if diagnostic["severity"] == "error":
            found.setdefault(Path(diagnostic["file"]).name, []).append(diagnostic["message"])
    assert found, done.stdout + done.stderr
    return found


def test_right_programs_pass(mypy: dict[str, list[str]], pyright: dict[str, list[str]]) -> None:
    assert mypy.get("right.py", []) == []
    assert pyright.get("right.py", []) == []


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_k3_wrong_programs_do_not(number: int, mypy: dict[str, list[str]], pyright: dict[str, list[str]]) -> None:
    line, by_mypy, by_pyright = WRONG[number]
    file = f"wrong_{number:02}.py"
    for said, expected in ((mypy, by_mypy), (pyright, by_pyright)):
        messages = said.get(file, [])
        assert any(expected in message for message in messages), (line, messages)


def test_the_package_itself_is_strictly_typed(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path), "-p", "faultwire"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    # The SDKs are not installed here, so that nothing is known of their classes.
    known = ("[import-not-found]", "Class cannot subclass")
    errors = [line for line in done.stdout.splitlines() if ": error: " in line and not any(k in line for k in known)]
    assert errors == []
