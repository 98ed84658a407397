"""Compiles kernels by NVRTC and loads them. Machine code is kept on disk, in the cache that Braid itself uses."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import json
from typing import Any

from . import driver as cu
from .disk_cache import cache_file, read_cached, write_cached
from .gpu import Gpu
from .libraries import load

PROTOTYPES: dict[str, tuple[Any, ...]] = {
    "nvrtcVersion": (cu.OUT32, cu.OUT32),
    "nvrtcCreateProgram": (cu.OUT64, ctypes.c_char_p, ctypes.c_char_p, cu.I32, cu.U64, cu.U64),
    "nvrtcDestroyProgram": (cu.OUT64,),
    "nvrtcCompileProgram": (cu.U64, cu.I32, ctypes.POINTER(ctypes.c_char_p)),
    "nvrtcGetProgramLogSize": (cu.U64, cu.OUTSIZE),
    "nvrtcGetProgramLog": (cu.U64, cu.BYTES),
    "nvrtcGetCUBINSize": (cu.U64, cu.OUTSIZE),
    "nvrtcGetCUBIN": (cu.U64, cu.BYTES),
}
ELF = b"\x7fELF"


@functools.cache
def _nvrtc() -> Any:
    library = load("NVRTC")
    for name, types in PROTOTYPES.items():
        function = getattr(library, name)
        function.argtypes, function.restype = types, cu.I32
    library.nvrtcGetErrorString.argtypes, library.nvrtcGetErrorString.restype = (cu.I32,), ctypes.c_char_p
    return library


class Kernels:
    """The kernels of a GPU, each source once."""

    def __init__(self, gpu: Gpu) -> None:
        self._gpu = gpu
        self._functions: dict[tuple[str, str, tuple[str, ...]], int] = {}

    def function(self, source: str, entry: str, options: tuple[str, ...]) -> int:
        """Raises Refusal and GpuError."""
        key = (source, entry, options)
        if key not in self._functions:
            # Hopper's with what only it has, such as wgmma.
            architecture = f"sm_{self._gpu.capability}{'a' if self._gpu.capability == 90 else ''}"
            image = self._machine_code(source, (f"-arch={architecture}", *options))
            module = self._gpu.out("cuModuleLoadData", cu.U64, image)
            self._functions[key] = self._gpu.out("cuModuleGetFunction", cu.U64, module, entry.encode())
        return self._functions[key]

    def _machine_code(self, source: str, options: tuple[str, ...]) -> bytes:
        library = _nvrtc()
        major, minor = cu.I32(), cu.I32()
        self._check(library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)), "nvrtcVersion")
        parts = [source, options, f"{major.value}.{minor.value}", self._gpu.driver_version]
        # As JSON.stringify writes it, so that the key is Braid's.
        text = json.dumps(parts, separators=(",", ":"), ensure_ascii=False)
        file = cache_file(f"{hashlib.sha256(text.encode()).hexdigest()}.cubin")
        known = read_cached(file)
        if known is not None and known.startswith(ELF):
            return known
        image = self._compiled(source, options)
        write_cached(file, image)
        return image

    def _compiled(self, source: str, options: tuple[str, ...]) -> bytes:
        library, program = _nvrtc(), cu.U64()
        status = library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"braid.cu", 0, 0, 0)
        self._check(status, "nvrtcCreateProgram")
        try:
            values = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
            status = library.nvrtcCompileProgram(program, len(options), values)
            if status:
                size = cu.SIZE()
                library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
                log = ctypes.create_string_buffer(max(1, size.value))
                library.nvrtcGetProgramLog(program, log)
                self._check(status, "nvrtcCompileProgram", log.value.decode(errors="replace").strip())
            size = cu.SIZE()
            self._check(library.nvrtcGetCUBINSize(program, ctypes.byref(size)), "nvrtcGetCUBINSize")
            image = ctypes.create_string_buffer(size.value)
            self._check(library.nvrtcGetCUBIN(program, image), "nvrtcGetCUBIN")
            return image.raw
        finally:
            library.nvrtcDestroyProgram(ctypes.byref(program))

    def _check(self, status: int, call: str, text: str = "") -> None:
        if status:
            name = _nvrtc().nvrtcGetErrorString(status).decode()
            raise cu.GpuError(self._gpu.rank, call, status, name, text)
