"""What each tool of a server needs and may answer (T6), and a test that notices a change."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from .boundary.settings import codes_of
from .errors import InputError
from .mcp import boundary_of

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["assert_manifest", "manifest"]

#: Set to 1, the file is written instead of compared.
UPDATE = "FAULTWIRE_UPDATE"


def manifest(server: Any) -> str:
    """The manifest of a server, as JSON that is the same every time.

    It is made of the option ``codes``: for each tool its codes, or all that is known of it:
    ``{"codes": […], "category": "read", "mutation": False, "requires": ["db"], "profiles": ["api"]}``.
    """
    boundary = boundary_of(server)
    contract = boundary.contract
    profiles: list[str] = contract.describe()["profiles"]
    needed = sorted({need for facts in boundary.codes.values() for need in facts_of(facts).get("requires", ())})
    tools = []
    for name in sorted(boundary.codes):
        facts = facts_of(boundary.codes[name])
        in_profiles = list(facts.get("profiles", profiles))
        for profile in in_profiles:
            if profile not in profiles:
                raise InputError(f"{name}: {profile!r} is not a profile of {', '.join(profiles)}")
        row: dict[str, Any] = {
            "name": name,
            "category": facts.get("category", ""),
            "mutation": bool(facts.get("mutation", False)),
        }
        for need in needed:
            row[f"requires_{need}"] = need in facts.get("requires", ())
        row["profiles"] = [profile for profile in profiles if profile in in_profiles]
        # What the boundary itself answers, every tool may answer.
        row["possible_error_codes"] = sorted({*codes_of(boundary.codes[name]), *contract._native.own_codes})
        tools.append(row)
    told = {"contract": contract.name, "contract_version": contract.version, "tools": tools}
    return json.dumps(told, indent=2, ensure_ascii=False) + "\n"


def facts_of(declared: Any) -> Mapping[str, Any]:
    facts: Mapping[str, Any] = declared if hasattr(declared, "get") else {}
    return facts


def assert_manifest(server: Any, path: str | os.PathLike[str]) -> None:
    """Fails if the committed manifest is missing or differs from the server. Run the test with
    ``FAULTWIRE_UPDATE=1`` to write the file.
    """
    now = manifest(server)
    if os.environ.get(UPDATE) == "1":
        with open(path, "w", encoding="utf-8") as file:
            file.write(now)
        return
    try:
        with open(path, encoding="utf-8") as file:
            committed = file.read()
    except FileNotFoundError:
        raise AssertionError(f"{os.fspath(path)} does not exist; run the test with {UPDATE}=1 to write it") from None
    if committed != now:
        changes = "\n".join(differences(committed, now)[:20])
        raise AssertionError(
            f"{os.fspath(path)} does not match the tools\n{changes}\nRun the test with {UPDATE}=1 to write it."
        )


def differences(committed: str, now: str) -> list[str]:
    before, after = lines_of(committed), lines_of(now)
    return [f"- {line}" for line in sorted(before - after)] + [f"+ {line}" for line in sorted(after - before)]


def lines_of(text: str) -> set[str]:
    """Every fact of a manifest, with the name of its tool."""
    try:
        told = json.loads(text)
    except ValueError:
        return {"(not JSON)"}
    lines = {f"{key} {value}" for key, value in told.items() if key != "tools"}
    for tool in told.get("tools", []):
        for key, value in tool.items():
            for one in value if isinstance(value, list) else [value]:
                lines.add(f"{tool.get('name', '?')}: {key} {json.dumps(one)}")
    return lines
