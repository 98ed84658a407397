"""Files that later processes find again, in the cache that Braid itself uses. One that fails costs time, and no run."""

from __future__ import annotations

import os
from pathlib import Path


def cache_file(name: str) -> Path:
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "braid/kernels" / name


def read_cached(file: Path) -> bytes | None:
    try:
        return file.read_bytes()
    except OSError:
        return None


def write_cached(file: Path, data: bytes) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        # Other ranks write the same file. A rename shows it whole or not at all.
        unfinished = file.with_name(f"{file.name}.{os.getpid()}")
        unfinished.write_bytes(data)
        unfinished.rename(file)
    except OSError:
        pass
