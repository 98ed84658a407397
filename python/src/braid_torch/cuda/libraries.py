"""Loads NVIDIA's libraries: first those of the process, such as PyTorch's, then from toolkits and wheels."""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from ..refusal import Refusal

# File names, newest first.
LIBRARIES = {
    "CUDA driver": ("libcuda.so.1",),
    "NVRTC": ("libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"),
    "cuBLASLt": ("libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"),
    "cuDNN": ("libcudnn.so.9", "libcudnn_graph.so.9", "libcudnn.so"),
}


@functools.cache
def load(library: str) -> ctypes.CDLL:
    """Raises Refusal."""
    problems = []
    for candidate in _candidates(LIBRARIES[library]):
        try:
            return ctypes.CDLL(candidate)
        except OSError as error:
            problems.append(str(error))
    raise Refusal(
        "backend-unavailable", library, problems[0], f"{LIBRARIES[library][0]} on this machine",
        "install it, or name its folder in LD_LIBRARY_PATH",
    )  # fmt: skip


def _candidates(files: tuple[str, ...]) -> Iterator[str]:
    yield from files
    for folder in _folders():
        for file in files:
            if (folder / file).exists():
                yield str(folder / file)


def _folders() -> Iterator[Path]:
    toolkits = [Path(os.environ[name]) for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    for root in (*toolkits, Path("/usr/local/cuda")):
        yield from (root / "lib64", root / "targets/x86_64-linux/lib")
    for site in map(Path, sys.path):
        yield from sorted((site / "nvidia").glob("*/lib"))
    yield from map(Path, ("/usr/local/nvidia/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu"))
