"""
Chooses cuBLASLt's algorithm for a GEMM by trial, once per GPU model: later processes find it on disk, as those of Braid's
own back end do. Only algorithms with the bits of the first one take part, so that the choice never changes a result.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import random
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..dtypes import DTYPE_BYTES, scale_elements
from . import driver as cu
from .disk_cache import cache_file, read_cached, write_cached
from .gpu import Gpu

Json = dict[str, Any]

# Operands repeat a pattern of so many elements; odd, so that rows differ.
PATTERN_ELEMENTS = 2**18 + 3
# Of a larger result, slices of so many bytes in all are compared.
MOST_COMPARED, SLICES = 32 << 20, 32
ROUNDS, MOST_RUNS = 3, 32
# Seconds of runs in a row: long beside the time of waiting for them.
BATCH = 1e-3
# What is faster by less may be so by chance.
LEAST_GAIN = 1.01


@dataclass(frozen=True)
class Place:
    """
    Where a trial's GEMM reads and writes: addresses, and a stream. `scales` are floats for those of either operand; 0
    unless the GEMM is scaled.
    """

    left: int
    right: int
    result: int
    scales: int
    workspace: int
    stream: int


# Queues the GEMM by the algorithm of a number; the library's status.
Queue = Callable[[int], int]


class TooLittleMemory(Exception):
    pass


def fastest_algorithm(
    count: int, result_of: Callable[[int], bytes | None], seconds_of: Callable[[int, int], float]
) -> int:
    """`seconds_of`: an algorithm, and how often it runs in a row."""
    expected = result_of(0)
    if expected is None:
        return 0
    candidates = [0, *(each for each in range(1, count) if result_of(each) == expected)]
    if len(candidates) == 1:
        return 0
    runs = min(MOST_RUNS, max(1, round(BATCH / seconds_of(0, 1))))
    times: dict[int, list[float]] = {each: [] for each in candidates}
    for turn in range(ROUNDS):
        for each in [*candidates[turn % len(candidates) :], *candidates[: turn % len(candidates)]]:
            times[each].append(seconds_of(each, runs))
    medians = {each: statistics.median(own) for each, own in times.items()}
    best = min(candidates, key=lambda each: medians[each])
    return best if medians[0] >= LEAST_GAIN * medians[best] else 0


class Chooser:
    def __init__(self, gpu: Gpu, version: int, workspace_bytes: int) -> None:
        """`version`: of cuBLASLt."""
        self._gpu, self._version, self._workspace_bytes = gpu, version, workspace_bytes
        self._stream: int | None = None

    def choose(
        self,
        layout: Json,
        alignments: Sequence[int],
        sm_count: int,
        algorithms: Sequence[bytes],
        queue_of: Callable[[Place], Queue],
        may_run: bool,
    ) -> int:
        """The number of the algorithm to use. Without `may_run`, of those known, or the first."""
        if len(algorithms) == 1:
            return 0
        file = cache_file(f"{hashlib.sha256(self._key(layout, alignments, sm_count).encode()).hexdigest()}.gemm")
        cached = read_cached(file)
        if cached in algorithms:
            return algorithms.index(cached)
        if not may_run:
            return 0
        try:
            found = self._tried(layout, len(algorithms), queue_of)
        except TooLittleMemory:
            return 0
        write_cached(file, algorithms[found])
        return found

    def _key(self, layout: Json, alignments: Sequence[int], sm_count: int) -> str:
        """As src/backends/cuda/matmul/choose-algorithm.ts writes it."""
        names = ("rows", "columns", "leading", "transposed", "batchStride")
        matrices = [[layout[side][name] for name in names] for side in ("left", "right", "result")]
        flags = [layout["dtype"], layout["hasBias"], bool(layout.get("accumulate")), layout["batchCount"]]
        scaled = layout.get("scaled", {})
        scales = [scaled[name] for name in ("left", "right", "vectors") if name in scaled]
        scales += scaled.get("blocks", {}).values()
        own = [*flags, *matrices, *([scales] if scales else [])]
        parts = [self._version, self._gpu.name, self._gpu.multiprocessors, *own, alignments, sm_count]
        return json.dumps(parts, separators=(",", ":"), ensure_ascii=False)

    def _tried(self, layout: Json, count: int, queue_of: Callable[[Place], Queue]) -> int:
        gpu = self._gpu
        if self._stream is None:
            self._stream = gpu.stream(0)
        scaled, dtype = layout.get("scaled", {}), layout["dtype"]
        dtypes = {side: scaled.get(side, dtype) for side in ("left", "right", "result")}
        left, right, result = (DTYPE_BYTES[each] * _elements(layout, side) for side, each in dtypes.items())
        scales = 4 * max(scale_elements(layout, side) for side in ("left", "right")) if scaled else 0
        addresses: list[int] = []
        try:
            for bytes_ in (left, right, result, scales, self._workspace_bytes):
                addresses.append(self._allocated(bytes_) if bytes_ else 0)
            place = Place(*addresses, self._stream)
            self._fill(place.left, left, _pattern(dtypes["left"]))
            self._fill(place.right, right, _pattern(dtypes["right"]))
            self._fill(place.scales, scales, _pattern("float"))
            pattern = _pattern(dtype)
            queue = queue_of(place)

            def result_of(algorithm: int) -> bytes | None:
                self._fill(place.result, result, pattern)
                if queue(algorithm):
                    return None
                self._finish()
                return self._sampled(place.result, result)

            def seconds_of(algorithm: int, runs: int) -> float:
                start = time.perf_counter()
                for _ in range(runs):
                    queue(algorithm)
                self._finish()
                return time.perf_counter() - start

            return fastest_algorithm(count, result_of, seconds_of)
        finally:
            for address in filter(None, addresses):
                gpu.raw.cuMemFree_v2(address)

    def _allocated(self, count: int) -> int:
        address = cu.U64()
        if self._gpu.raw.cuMemAlloc_v2(ctypes.byref(address), count):
            raise TooLittleMemory
        return address.value

    def _fill(self, address: int, count: int, pattern: bytes) -> None:
        if not count:
            return
        filled = min(count, len(pattern))
        self._gpu.call("cuMemcpyHtoDAsync_v2", address, pattern, filled, self._stream)
        while filled < count:
            more = min(filled, count - filled)
            self._gpu.call("cuMemcpyDtoDAsync_v2", address + filled, address, more, self._stream)
            filled += more

    def _finish(self) -> None:
        while (status := self._gpu.raw.cuStreamQuery(self._stream)) == cu.CUDA_ERROR_NOT_READY:
            pass
        self._gpu.check(status, "cuStreamQuery")

    def _sampled(self, address: int, count: int) -> bytes:
        """All bytes, or slices at equal distances."""
        part = count if count <= MOST_COMPARED else MOST_COMPARED // SLICES
        starts = [0] if part == count else [(count - part) * i // (SLICES - 1) for i in range(SLICES)]
        slices = ctypes.create_string_buffer(part * len(starts))
        for i, start in enumerate(starts):
            target = ctypes.byref(slices, i * part)
            self._gpu.call("cuMemcpyDtoHAsync_v2", target, address + start, part, self._stream)
        self._finish()
        return slices.raw


def _elements(layout: Json, side: str) -> int:
    matrix, batches = layout[side], layout["batchCount"]
    count: int = (batches - 1) * matrix["batchStride"] + (matrix["columns"] - 1) * matrix["leading"] + matrix["rows"]
    return count


def _pattern(dtype: str) -> bytes:
    """Elements of both signs, of 0.5 to 2 in absolute value."""
    size = DTYPE_BYTES[dtype]
    data = bytearray(random.Random(1).randbytes(PATTERN_ELEMENTS * size))
    kept, exponent = {"half": (0x80, 0x38), "float8_e4m3fn": (0x87, 0x38), "float8_e5m2": (0x83, 0x38)}.get(
        dtype, (0x80, 0x3F)
    )
    data[size - 1 :: size] = bytes((each & kept) | exponent for each in data[size - 1 :: size])
    if dtype == "double":
        data[size - 2 :: size] = bytes(each | 0xE0 for each in data[size - 2 :: size])
    return bytes(data)
