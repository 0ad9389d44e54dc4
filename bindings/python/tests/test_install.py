"""The package where it does not fit, and what it needs."""

from __future__ import annotations

import importlib.metadata
import shutil
import subprocess
import sys
from pathlib import Path

import faultwire


def test_a_missing_native_module_says_so(tmp_path: Path) -> None:
    package = Path(faultwire.__file__).parent
    shutil.copytree(package, tmp_path / "faultwire", ignore=shutil.ignore_patterns("_engine*.so", "__pycache__"))
    done = run("import faultwire", tmp_path)
    assert done.returncode == 1
    assert "ImportError: faultwire cannot start: the package has no native module for this platform" in done.stderr
    assert sys.platform in done.stderr


def test_a_native_module_of_another_platform_says_so(tmp_path: Path) -> None:
    package = Path(faultwire.__file__).parent
    shutil.copytree(package, tmp_path / "faultwire", ignore=shutil.ignore_patterns("__pycache__"))
    next((tmp_path / "faultwire").glob("_engine*.so")).write_bytes(b"\x7fELF of another machine")
    done = run("import faultwire", tmp_path)
    assert done.returncode == 1
    assert "faultwire cannot start: the native module does not load on this platform" in done.stderr


def run(code: str, path: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], cwd=path, capture_output=True, text=True)


def test_it_needs_nothing_else() -> None:
    assert importlib.metadata.requires("faultwire") is None
    code = "import faultwire, sys; print(sorted({m.split('.')[0] for m in sys.modules} & {'asyncio', 'pydantic', 'mcp', 'anyio'}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "[]\n"


def test_the_wheel_is_typed() -> None:
    files = [str(file) for file in importlib.metadata.files("faultwire") or []]
    assert "faultwire/py.typed" in files and "faultwire/_engine.pyi" in files
