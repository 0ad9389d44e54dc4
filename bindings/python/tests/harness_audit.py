"""Logs, read and verified by the command line if it is there."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from pathlib import Path
from typing import Any


def lines(audit: Path | str) -> list[dict[str, Any]]:
    """What is in a log."""
    return [json.loads(line) for line in (Path(audit) / "audit-log.jsonl").read_text().splitlines()]


def faults(audit: Path | str) -> list[dict[str, Any]]:
    """The failures in a log."""
    return [line for line in lines(audit) if line["type"] == "fault"]


def verify(audit: Path | str) -> None:
    """Checks the chain, with `faultwire audit verify` where FAULTWIRE names the program, too."""
    before = "0" * 64
    for number, line in enumerate((Path(audit) / "audit-log.jsonl").read_bytes().splitlines()):
        head = json.loads(line)
        assert (head["seq"], head["prev"]) == (number, before)
        before = hashlib.sha256(b"\0" + line).hexdigest()
    program = os.environ.get("FAULTWIRE")
    if program:
        done = subprocess.run([program, "audit", "verify", str(audit)], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
