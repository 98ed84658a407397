"""GEMMs by cuBLASLt. They have the bits of the first algorithm that the library proposes, as in Braid's own back end."""

from __future__ import annotations

import ctypes
import functools
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..dtypes import DTYPE_BYTES, DTYPES
from ..refusal import Refusal
from . import driver as cu
from .choose_gemm import Chooser, Place, Queue
from .gpu import Gpu
from .libraries import load

Json = dict[str, Any]
U64, I32, BYTES, SIZE = cu.U64, cu.I32, cu.BYTES, cu.SIZE

PROTOTYPES: dict[str, tuple[Any, ...]] = {
    "cublasLtCreate": (cu.OUT64,),
    "cublasLtMatmulDescCreate": (cu.OUT64, I32, I32),
    "cublasLtMatmulDescSetAttribute": (U64, I32, BYTES, SIZE),
    "cublasLtMatrixLayoutCreate": (cu.OUT64, I32, U64, U64, ctypes.c_int64),
    "cublasLtMatrixLayoutSetAttribute": (U64, I32, BYTES, SIZE),
    "cublasLtMatmulPreferenceCreate": (cu.OUT64,),
    "cublasLtMatmulPreferenceSetAttribute": (U64, I32, BYTES, SIZE),
    "cublasLtMatmulAlgoGetHeuristic": (*(U64,) * 7, I32, BYTES, cu.OUT32),
    "cublasLtMatmulAlgoConfigGetAttribute": (BYTES, I32, BYTES, SIZE, BYTES),
    "cublasLtMatmul": (U64, U64, BYTES, U64, U64, U64, U64, BYTES, U64, U64, U64, U64, BYTES, U64, SIZE, U64),
}

CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT = 5
CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET = 6
CUBLASLT_MATMUL_DESC_TRANSA = 3
CUBLASLT_MATMUL_DESC_TRANSB = 4
CUBLASLT_MATMUL_DESC_EPILOGUE = 7
CUBLASLT_MATMUL_DESC_BIAS_POINTER = 8
CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET = 15
CUBLASLT_MATMUL_DESC_FAST_ACCUM = 25
# Of A and B.
CUBLASLT_MATMUL_DESC_SCALE_POINTERS = (17, 18)
CUBLASLT_MATMUL_DESC_SCALE_MODES = (31, 32)
# A float per row of A and per column of B: on Hopper since 12.9.
CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F = 3
# A float for each 128 of k in each row of A or column of B, or in each 128 of these.
CUBLASLT_MATMUL_MATRIX_SCALE_BLOCKS = {1: 4, 128: 5}
VERSION_OF_VECTORS = 120900
CUBLASLT_EPILOGUE_BIAS = 4
CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES = 1
CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK = 3
# Of A, B, C and D.
CUBLASLT_MATMUL_PREF_MIN_ALIGNMENTS = (5, 6, 7, 8)
CUBLASLT_REDUCTION_SCHEME_NONE = 0
CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE = 2
CUBLASLT_ALGO_CONFIG_ID = 0
CUBLASLT_ALGO_CONFIG_SPLITK_NUM = 2
CUBLASLT_ALGO_SIZE = 64
CUBLASLT_HEURISTIC_RESULT_SIZE = 96

MOST_ALGORITHMS = 8
# CUBLASLT_ALGO_CONFIG_ID of the kernels for Hopper.
HOPPER_KERNELS = 66

# As in Braid's back end: a smaller one would give other algorithms.
WORKSPACE_BYTES = 64 << 20

# The compute type, and that of alpha and beta: float is float32 throughout, never TF32.
COMPUTE = {"double": (70, 1)}
COMPUTE_FLOAT = (68, 0)


@functools.cache
def _library() -> Any:
    library = load("cuBLASLt")
    for name, types in PROTOTYPES.items():
        function = getattr(library, name)
        function.argtypes, function.restype = types, I32
    library.cublasLtGetVersion.restype = SIZE
    for name in ("cublasLtGetStatusName", "cublasLtGetStatusString"):
        function = getattr(library, name)
        function.argtypes, function.restype = (I32,), ctypes.c_char_p
    return library


@dataclass(frozen=True)
class Recipe:
    left: int
    right: int
    result: int
    # A cublasLtMatmulAlgo_t.
    algorithm: Any


class Gemms:
    def __init__(self, gpu: Gpu) -> None:
        """Raises Refusal and GpuError."""
        self._gpu, self._raw = gpu, _library()
        self._handle = self._out("cublasLtCreate")
        self._preference = self._out("cublasLtMatmulPreferenceCreate")
        self._prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, U64(WORKSPACE_BYTES))
        self._chooser = Chooser(gpu, self._raw.cublasLtGetVersion(), WORKSPACE_BYTES)
        # False while a graph of PyTorch is captured: nothing may run then.
        self.may_try = True
        self._recipes: dict[str, Recipe | None] = {}
        self._descriptors: dict[str, int] = {}
        # What alpha and beta point to, in the accumulator's type.
        self._scalars = {
            kind: (ctypes.byref(c(1)), ctypes.byref(c(0)))
            for kind, c in (("double", ctypes.c_double), ("float", ctypes.c_float))
        }

    def bind(
        self,
        layout: Json,
        margin: int,
        a: int,
        b: int,
        bias: int,
        addend: int,
        scales: list[int],
        c: int,
        workspace: int,
        stream: int,
    ) -> list[Callable[[list[int]], None]] | None:
        """
        A call for each of the layout's offsets, to which streams are given; None if there is no algorithm. `addend` is
        what is added to if the GEMM accumulates, in the layout of c: c itself, or other memory. `scales` are those of
        a and b; there are none unless the layout is scaled, and then it has no offsets.
        """
        size = DTYPE_BYTES[layout["dtype"]]
        own = DTYPE_BYTES[layout.get("scaled", {}).get("left", layout["dtype"])]
        one, beta = self._factors(layout)
        scales = scales[::-1] if layout["swapped"] else scales
        descriptor = self._descriptor(layout, margin, bias, scales)
        calls = []
        for offset in layout["offsets"]:
            at_a, at_b = a + offset["a"] * own, b + offset["b"] * own
            at_addend, at_c = addend + offset["c"] * size, c + offset["c"] * size
            left, right = (at_b, at_a) if layout["swapped"] else (at_a, at_b)
            alignments = [_alignment(left), _alignment(right), min(_alignment(at_addend), _alignment(at_c))]
            recipe = self._recipe(layout, margin, bias, scales, alignments)
            if recipe is None:
                return None
            head = (self._handle, descriptor, one, left, recipe.left, right, recipe.right, beta)
            tail = (at_addend, recipe.result, at_c, recipe.result, recipe.algorithm, workspace, WORKSPACE_BYTES)
            calls.append(self._action((*head, *tail), stream))
        return calls

    def _action(self, values: tuple[Any, ...], stream: int) -> Callable[[list[int]], None]:
        matmul = self._raw.cublasLtMatmul

        def act(streams: list[int]) -> None:
            status = matmul(*values, streams[stream])
            if status:
                self._check(status, "cublasLtMatmul")

        return act

    def _recipe(
        self, layout: Json, margin: int, bias: int, scales: list[int], alignments: list[int]
    ) -> Recipe | None:
        key = json.dumps([layout, margin, alignments])
        if key not in self._recipes:
            self._recipes[key] = self._make(layout, margin, bias, scales, alignments)
        return self._recipes[key]

    def _make(self, layout: Json, margin: int, bias: int, scales: list[int], alignments: list[int]) -> Recipe | None:
        if layout.get("scaled", {}).get("vectors") and self._raw.cublasLtGetVersion() < VERSION_OF_VECTORS:
            return None
        descriptor = self._descriptor(layout, margin, bias, scales)
        matrices = [self._matrix(layout, side) for side in ("left", "right", "result")]
        left, right, result = matrices
        for attribute, value in zip(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENTS, (*alignments, alignments[2])):
            self._prefer(attribute, cu.U32(value))
        algorithms = self._proposals(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE, descriptor, matrices)
        if layout["hasBias"] and DTYPE_BYTES[layout["dtype"]] < 4 and algorithms:
            algorithms = [each for each in algorithms if not self._rounds_twice(each)]
            algorithms = algorithms or self._proposals(CUBLASLT_REDUCTION_SCHEME_NONE, descriptor, matrices)
        if not algorithms:
            return None
        recipe = Recipe(left, right, result, ctypes.create_string_buffer(algorithms[0], CUBLASLT_ALGO_SIZE))

        def queue_of(place: Place) -> Queue:
            # A bias has no more elements than the left operand, and any values do.
            trial = self._descriptor(layout, margin, place.left, [place.scales for _ in scales])

            def queue(algorithm: int) -> int:
                recipe.algorithm.raw = algorithms[algorithm]
                one, beta = self._factors(layout)
                head = (self._handle, trial, one, place.left, left, place.right, right, beta)
                tail = (place.result, result, place.result, result, recipe.algorithm, place.workspace, WORKSPACE_BYTES)
                status: int = self._raw.cublasLtMatmul(*head, *tail, place.stream)
                return status

            return queue

        sm_count = self._sm_count(margin) if margin else 0
        chosen = self._chooser.choose(layout, alignments, sm_count, algorithms, queue_of, self.may_try)
        recipe.algorithm.raw = algorithms[chosen]
        return recipe

    def _proposals(self, reductions: int, descriptor: int, matrices: list[int]) -> list[bytes]:
        left, right, result = matrices
        self._prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, cu.U32(reductions))
        found, returned = ctypes.create_string_buffer(MOST_ALGORITHMS * CUBLASLT_HEURISTIC_RESULT_SIZE), I32()
        arguments = (self._handle, descriptor, left, right, result, result, self._preference, MOST_ALGORITHMS, found)
        status = self._raw.cublasLtMatmulAlgoGetHeuristic(*arguments, ctypes.byref(returned))
        starts = [CUBLASLT_HEURISTIC_RESULT_SIZE * i for i in range(0 if status else returned.value)]
        return [found.raw[start : start + CUBLASLT_ALGO_SIZE] for start in starts]

    def _rounds_twice(self, algorithm: bytes) -> bool:
        """Older kernels that cut k round the sum to 16 bits, add the bias and round again."""

        def config(attribute: int) -> int:
            value, written = I32(), ctypes.c_size_t()
            arguments = (attribute, ctypes.byref(value), ctypes.sizeof(value), ctypes.byref(written))
            name = "cublasLtMatmulAlgoConfigGetAttribute"
            self._check(getattr(self._raw, name)(algorithm, *arguments), name)
            return value.value

        return config(CUBLASLT_ALGO_CONFIG_SPLITK_NUM) > 1 and config(CUBLASLT_ALGO_CONFIG_ID) != HOPPER_KERNELS

    def _factors(self, layout: Json) -> tuple[Any, Any]:
        """Alpha and beta."""
        one, zero = self._scalars["double" if layout["dtype"] == "double" else "float"]
        return one, one if layout.get("accumulate") else zero

    def _matrix(self, layout: Json, side: str) -> int:
        data, matrix = DTYPES[layout.get("scaled", {}).get(side, layout["dtype"])][2], layout[side]
        made = self._out("cublasLtMatrixLayoutCreate", data, matrix["rows"], matrix["columns"], matrix["leading"])
        if layout["batchCount"] > 1:
            self._set("MatrixLayout", made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, I32(layout["batchCount"]))
            stride = ctypes.c_int64(matrix["batchStride"])
            self._set("MatrixLayout", made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, stride)
        return made

    def _descriptor(self, layout: Json, margin: int, bias: int, scales: list[int]) -> int:
        left, right = layout["left"]["transposed"], layout["right"]["transposed"]
        scaled = layout.get("scaled", {})
        fast = scaled.get("fastAccumulation", False)
        of_scales = [scales, fast, scaled.get("vectors"), scaled.get("blocks")]
        key = json.dumps([layout["dtype"], left, right, margin, bias if layout["hasBias"] else None, of_scales])
        if key not in self._descriptors:
            compute, scale = COMPUTE.get(layout["dtype"], COMPUTE_FLOAT)
            made = self._out("cublasLtMatmulDescCreate", compute, scale)
            self._set("MatmulDesc", made, CUBLASLT_MATMUL_DESC_TRANSA, I32(left))
            self._set("MatmulDesc", made, CUBLASLT_MATMUL_DESC_TRANSB, I32(right))
            if layout["hasBias"]:
                self._set("MatmulDesc", made, CUBLASLT_MATMUL_DESC_EPILOGUE, I32(CUBLASLT_EPILOGUE_BIAS))
                self._set("MatmulDesc", made, CUBLASLT_MATMUL_DESC_BIAS_POINTER, U64(bias))
            for scale, pointer, mode, side in zip(
                scales, CUBLASLT_MATMUL_DESC_SCALE_POINTERS, CUBLASLT_MATMUL_DESC_SCALE_MODES, ("left", "right")
            ):
                self._set("MatmulDesc", made, pointer, U64(scale))
                if layout["scaled"]["vectors"]:
                    self._set("MatmulDesc", made, mode, I32(_scale_mode(layout["scaled"], side)))
            if fast:
                self._set("MatmulDesc", made, CUBLASLT_MATMUL_DESC_FAST_ACCUM, ctypes.c_int8(1))
            if margin:
                self._set("MatmulDesc", made, CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, I32(self._sm_count(margin)))
            self._descriptors[key] = made
        return self._descriptors[key]

    def _sm_count(self, margin: int) -> int:
        count = self._gpu.multiprocessors
        if margin >= count:
            fix = "make a plan for this GPU: braid compile FILE -o FOLDER --gpu multiprocessors=N"
            raise Refusal("plan-mismatch", self._gpu.name, f"a margin of {margin} SMs", f"fewer than {count}", fix)
        return count - margin

    def _prefer(self, attribute: int, value: Any) -> None:
        self._set("MatmulPreference", self._preference, attribute, value)

    def _set(self, kind: str, descriptor: int, attribute: int, value: Any) -> None:
        name = f"cublasLt{kind}SetAttribute"
        self._check(getattr(self._raw, name)(descriptor, attribute, ctypes.byref(value), ctypes.sizeof(value)), name)

    def _out(self, name: str, *values: Any) -> int:
        made = U64()
        self._check(getattr(self._raw, name)(ctypes.byref(made), *values), name)
        return made.value

    def _check(self, status: int, call: str) -> None:
        if status:
            name = self._raw.cublasLtGetStatusName(status).decode()
            text = self._raw.cublasLtGetStatusString(status).decode()
            raise cu.GpuError(self._gpu.rank, call, status, name, text)


def _scale_mode(scaled: Json, side: str) -> int:
    """Of vectors."""
    if "blocks" not in scaled:
        return CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F
    return CUBLASLT_MATMUL_MATRIX_SCALE_BLOCKS[scaled["blocks"][side]]


def _alignment(address: int) -> int:
    return min(256, address & -address) if address else 256
