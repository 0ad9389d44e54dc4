"""Runs operations of the engine that are read from stdin, one JSON object a line, and prints one
line each: scripts/vectors compares them with those of other languages."""

from __future__ import annotations

import json
import sys
from typing import Any

from faultwire import AuditLog, Contract, FaultwireError


def run(log: AuditLog, given: dict[str, Any]) -> Any:
    contract = Contract.builtin(given["contract"])
    stamp = {"now_ms": given["now_ms"], "random": given["random"]}
    named = {key: given[key] for key in ("surface", "profile") if given.get(key)}
    match given["op"]:
        case "render":
            return contract.fault(given["report"], stamp).render(**named)
        case "entry":
            return log.entry(contract.fault(given["report"], stamp), given["call"])
        case "decode":
            return contract.decode(given["text"], **named)
        case "classify":
            call = given.get("call")
            return contract.classify(given["text"], **({"call": call} if call else {}))
        case "retry":
            return contract.retry(given["text"], **given["call"], stamp=stamp)
        case _:
            return contract.redact(given["text"], keep=given["keep"])


def main() -> None:
    with AuditLog.open(sys.argv[1]) as log:
        for line in sys.stdin:
            try:
                said = {"ok": run(log, json.loads(line))}
            except FaultwireError as error:
                said = {"error": {"kind": error.kind, "what": error.what}}
            print(json.dumps(said))


main()
