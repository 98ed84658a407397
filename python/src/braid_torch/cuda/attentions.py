"""Attention by cuDNN: a plan for each graph of a Braid plan, and calls with their addresses bound."""

from __future__ import annotations

import ctypes
import json
import math
from collections.abc import Callable
from typing import Any

from ..refusal import Refusal
from . import cudnn
from .gpu import Gpu

Json = dict[str, Any]

# No access of a plan's kernels is wider.
TENSOR_ALIGNMENT = 16
SCRATCH_ALIGNMENT = 256
# Engine configurations that are tried: the first ones are the fastest.
MOST_CONFIGS = 8


class Attentions:
    def __init__(self, gpu: Gpu) -> None:
        """Raises Refusal."""
        self._gpu, self._raw = gpu, cudnn.cudnn()
        made = ctypes.c_uint64()
        cudnn.check(self._raw.cudnnCreate(ctypes.byref(made)), "cudnnCreate")
        self._handle = made.value
        # By graph: its execution plan and the bytes of workspace.
        self._plans: dict[str, tuple[int, int]] = {}
        # Host memory that holds numbers, which packs point to.
        self._numbers: dict[tuple[str, float], Any] = {}

    def workspace_bytes(self, graph: Json) -> int:
        return self._plan(graph)[1]

    def bind(
        self, graph: Json, operands: list[int], scratch: int, workspace: int, stream: int
    ) -> Callable[[list[int]], None]:
        descriptor, _ = self._plan(graph)
        addresses: dict[int, int] = {}
        for tensor in graph["tensors"]:
            memory = tensor["memory"]
            if memory["kind"] == "operand":
                addresses[tensor["id"]] = operands[memory["position"]]
            elif memory["kind"] == "number":
                addresses[tensor["id"]] = self._number(tensor["type"], memory["value"])
            elif memory["kind"] == "scratch":
                addresses[tensor["id"]] = scratch
                # All tensors in the scratch are float.
                scratch += -(-4 * math.prod(tensor["dims"]) // SCRATCH_ALIGNMENT) * SCRATCH_ALIGNMENT
        pack = cudnn.make(
            "VARIANT_PACK",
            "the pack",
            ("VARIANT_PACK_UNIQUE_IDS", "INT64", list(addresses)),
            ("VARIANT_PACK_DATA_POINTERS", "VOID_PTR", list(addresses.values())),
            ("VARIANT_PACK_WORKSPACE", "VOID_PTR", [workspace]),
        )
        return _Call(self._raw, self._handle, descriptor, pack, stream)

    def _number(self, kind: str, value: Any) -> int:
        number = -math.inf if value == "-infinity" else value
        block = self._numbers.get((kind, number))
        if block is None:
            block = ctypes.c_int32(int(number)) if kind == "int32" else ctypes.c_float(number)
            self._numbers[kind, number] = block
        return ctypes.addressof(block)

    def _plan(self, graph: Json) -> tuple[int, int]:
        key = json.dumps(graph)
        if key not in self._plans:
            try:
                self._plans[key] = _build(graph, self._handle)
            except cudnn.Refused as refused:
                fix = "make a plan without cuDNN: braid compile FILE -o FOLDER --schedule attention=ops"
                expected = "an engine of cuDNN that takes the operands"
                raise Refusal("kernel-opaque", self._gpu.name, str(refused), expected, fix) from None
        return self._plans[key]


class _Call:
    """One execution. It owns its pack of addresses."""

    def __init__(self, raw: Any, handle: int, descriptor: int, pack: int, stream: int) -> None:
        self._raw, self._handle, self._descriptor, self._pack, self._stream = raw, handle, descriptor, pack, stream

    def release(self) -> None:
        cudnn.destroy(self._pack)

    def __call__(self, streams: list[int]) -> None:
        cudnn.check(self._raw.cudnnSetStream(self._handle, streams[self._stream]), "cudnnSetStream")
        status = self._raw.cudnnBackendExecute(self._handle, self._descriptor, self._pack)
        if status:
            cudnn.check(status, "cudnnBackendExecute")


def _build(graph: Json, handle: int) -> tuple[int, int]:
    """Raises Refused if no engine takes the graph."""
    tensors = {tensor["id"]: _tensor(tensor) for tensor in graph["tensors"]}
    ops = [_op(op, tensors) for op in graph["ops"]]
    whole = cudnn.make(
        "OPERATIONGRAPH",
        "the graph",
        ("OPERATIONGRAPH_OPS", "BACKEND_DESCRIPTOR", ops),
        ("OPERATIONGRAPH_HANDLE", "HANDLE", [handle]),
    )
    heuristics = cudnn.make(
        "ENGINEHEUR",
        "the choice of engines",
        ("ENGINEHEUR_OPERATION_GRAPH", "BACKEND_DESCRIPTOR", [whole]),
        ("ENGINEHEUR_MODE", "HEUR_MODE", [cudnn.HEUR_MODE_A]),
    )
    given = [cudnn.create("ENGINECFG", "a configuration") for _ in range(MOST_CONFIGS)]
    refused = cudnn.Refused("the choice of engines", 0, "no engine")
    for config in cudnn.values_of(heuristics, "ENGINEHEUR_RESULTS", "BACKEND_DESCRIPTOR", given):
        try:
            plan = cudnn.make(
                "EXECUTION_PLAN", "a plan", ("EXECUTION_PLAN_ENGINE_CONFIG", "BACKEND_DESCRIPTOR", [config])
            )
        except cudnn.Refused as error:
            refused = error
            continue
        return plan, cudnn.values_of(plan, "EXECUTION_PLAN_WORKSPACE_SIZE", "INT64", [0])[0]
    raise refused


def _tensor(tensor: Json) -> int:
    flags: dict[str, list[cudnn.Attribute]] = {
        "virtual": [("TENSOR_IS_VIRTUAL", "BOOLEAN", [1])],
        "number": [("TENSOR_IS_BY_VALUE", "BOOLEAN", [1])],
    }
    return cudnn.make(
        "TENSOR",
        f"tensor {tensor['name']}",
        ("TENSOR_DATA_TYPE", "DATA_TYPE", [cudnn.DATA_TYPES[tensor["type"]]]),
        ("TENSOR_DIMENSIONS", "INT64", tensor["dims"]),
        ("TENSOR_STRIDES", "INT64", tensor["strides"]),
        ("TENSOR_UNIQUE_ID", "INT64", [tensor["id"]]),
        ("TENSOR_BYTE_ALIGNMENT", "INT64", [TENSOR_ALIGNMENT]),
        *flags.get(tensor["memory"]["kind"], []),
    )


def _op(op: Json, tensors: dict[int, int]) -> int:
    what = f"{op['kind']} of {op['name']}"
    x, *others = (tensors[each] for each in op["inputs"])
    result, kind = tensors[op["to"]], op["kind"].upper()

    def refer(name: str, descriptor: int) -> cudnn.Attribute:
        return f"OPERATION_{kind}_{name}", "BACKEND_DESCRIPTOR", [descriptor]

    own_float: cudnn.Attribute = (f"{kind}_COMP_TYPE", "DATA_TYPE", [cudnn.DATA_TYPES["float"]])
    if kind == "MATMUL":
        own = cudnn.make(kind, what, own_float)
        attributes = [refer("ADESC", x), refer("BDESC", others[0]), refer("CDESC", result), refer("DESC", own)]
    elif kind == "REDUCTION":
        operator = cudnn.REDUCTION_OPERATORS[op["operator"]]
        own = cudnn.make(kind, what, own_float, ("REDUCTION_OPERATOR", "REDUCTION_OPERATOR_TYPE", [operator]))
        attributes = [refer("DESC", own), refer("XDESC", x), refer("YDESC", result)]
    elif kind == "RESHAPE":
        attributes = [refer("XDESC", x), refer("YDESC", result)]
    else:
        own = cudnn.make(
            kind,
            what,
            ("POINTWISE_MODE", "POINTWISE_MODE", [cudnn.POINTWISE_MODES[op["mode"]]]),
            ("POINTWISE_MATH_PREC", "DATA_TYPE", [cudnn.DATA_TYPES[op["compute"]]]),
            *([] if op["axis"] is None else [("POINTWISE_AXIS", "INT64", [op["axis"]])]),
        )
        attributes = [
            refer("PW_DESCRIPTOR", own),
            refer("XDESC", x),
            refer("YDESC", result),
            *(refer(name, each) for name, each in zip(("BDESC", "TDESC"), others)),
            ("OPERATION_POINTWISE_ALPHA1", "FLOAT", [1.0]),
            ("OPERATION_POINTWISE_ALPHA2", "FLOAT", [1.0]),
        ]
    return cudnn.make(f"OPERATION_{kind}", what, *attributes)
