"""
Lists what Braid finds in this Python and on this machine, and what is missing: `python -m braid_torch.doctor`. Changes
nothing. Ends with status 1 if plans cannot run here.
"""

from __future__ import annotations

import importlib
import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from .compiled import cache_folder, compiler
from .cuda import libraries
from .refusal import Refusal, printable

COMPILER_SECONDS = 60


@dataclass(frozen=True)
class Finding:
    name: str
    # What is there; None for what is missing.
    detail: str | None
    # What it gives, or how to get it.
    gives: str
    # Whether no plan runs without it.
    is_needed: bool = True


def findings() -> list[Finding]:
    found = [Finding("Python", f"{platform.python_version()} ({sys.executable})", "")]
    found += [_package("torch", "runs plans on its tensors: pip install torch", True)]
    found += [_package("transformers", "models with a tp_plan", False)]
    for library, (file, *_) in libraries.LIBRARIES.items():
        found.append(_found(library, lambda name=library: str(libraries.load(name)._name), f"{file} of NVIDIA"))
    found.append(_gpus())
    found.append(_found("compiler", _compiler, "makes plans: npm install braid, or name it in BRAID_COMPILER", False))
    shipped = os.environ.get("BRAID_PLANS", "")
    count = len(list(Path(shipped).glob("*/plan.json"))) if shipped else 0
    detail = f"{count} in {shipped}" if shipped else None
    found.append(Finding("BRAID_PLANS", detail, "plans to use before compiling", False))
    cached = len(list(Path(cache_folder()).glob("*/plan.json")))
    found.append(Finding("cache", f"{cached} plans in {cache_folder()}", "", False))
    return found


def _found(name: str, look: Callable[[], str], gives: str, is_needed: bool = True) -> Finding:
    try:
        return Finding(name, look(), gives, is_needed)
    except (Refusal, OSError, subprocess.SubprocessError, ValueError):
        return Finding(name, None, gives, is_needed)


def _package(name: str, gives: str, is_needed: bool) -> Finding:
    try:
        return Finding(name, str(importlib.import_module(name).__version__), gives, is_needed)
    except ImportError:
        return Finding(name, None, gives, is_needed)


def _gpus() -> Finding:
    gives = "run plans: GPUs of compute capability 8.0 or newer that reach each other's memory"
    try:
        torch = importlib.import_module("torch")
        names = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    except (ImportError, RuntimeError, AssertionError):
        names = []
    return Finding("GPUs", ", ".join(names) or None, gives)


def _compiler() -> str:
    command = compiler()
    ended = subprocess.run(
        [*command, "--version"], capture_output=True, text=True, timeout=COMPILER_SECONDS, check=False
    )
    if ended.returncode:
        raise ValueError(ended.stderr)
    return f"{ended.stdout.strip()} ({shlex.join(command)})"


def main() -> int:
    missing = False
    for each in findings():
        status = "ok" if each.detail is not None else "missing" if each.is_needed else "-"
        missing = missing or status == "missing"
        print(printable(f"{status:8} {each.name:12} {each.detail or each.gives}"))
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
