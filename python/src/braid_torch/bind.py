"""
Binds a rank's operations: each becomes an action, a call whose arguments are laid out beforehand. An action takes the
handles of the streams; number 0 is the caller's, which may be another one in every run.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from .cuda.attentions import Attentions
from .cuda.gemms import Gemms
from .cuda.gpu import Gpu
from .places import Places

Json = dict[str, Any]
Action = Callable[[list[int]], None]

CU_STREAM_MEM_OP_WAIT_VALUE_32 = 1
CU_STREAM_MEM_OP_WRITE_VALUE_32 = 2
CU_STREAM_WAIT_VALUE_EQ = 1
CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8
CU_STREAM_WRITE_VALUE_DEFAULT = 0
CU_MEMORYTYPE_DEVICE = 2


@dataclass(frozen=True)
class Binding:
    gpu: Gpu
    own: Json
    places: Places
    events: list[int]
    # Functions of the driver, by the rank's number of the kernel.
    kernels: list[int]
    gemms: Callable[[], Gemms]
    attentions: Callable[[], Attentions]
    # The caller's addresses, by space; empty for operations that do not touch them.
    tensors: dict[str, tuple[int, ...]]


def is_bound_by_run(op: Json) -> bool:
    """Whether it touches the caller's tensors."""
    return any(address["space"] in ("in", "out") for address in _addresses(op))


def bind(op: Json, binding: Binding) -> list[Action]:
    """Raises Refusal and GpuError."""
    return _RULES[op["kind"]](op, binding)


def copy_action(gpu: Gpu, to: int, source: int, count: int, stream: int) -> Action:
    return _action(gpu, "cuMemcpyDtoDAsync_v2", (to, source, count), stream)


def _addresses(op: Json) -> Iterator[Json]:
    for value in op.values():
        if isinstance(value, dict) and "space" in value:
            yield value
    for name in ("parameters", "operands"):
        yield from (each for each in op.get(name, ()) if isinstance(each, dict))


def _action(gpu: Gpu, name: str, values: tuple[Any, ...], stream: int) -> Action:
    """A function of the driver whose last parameter is the stream."""
    function, check = getattr(gpu.raw, name), gpu.check

    def act(streams: list[int]) -> None:
        status = function(*values, streams[stream])
        if status:
            check(status, name)

    return act


def _copy(op: Json, binding: Binding) -> list[Action]:
    to, source = _at(op["to"], binding), _at(op["from"], binding)
    return [copy_action(binding.gpu, to, source, op["bytes"], op["stream"])]


def _copy2d(op: Json, binding: Binding) -> list[Action]:
    """A CUDA_MEMCPY2D: x, y, memory type, host, device, array and pitch of each side, then width and height."""
    side = "2QI4x3QQ"
    block = ctypes.create_string_buffer(
        struct.pack(
            f"<{side}{side}QQ",
            *(0, 0, CU_MEMORYTYPE_DEVICE, 0, _at(op["from"], binding), 0, op["fromPitch"]),
            *(0, 0, CU_MEMORYTYPE_DEVICE, 0, _at(op["to"], binding), 0, op["toPitch"]),
            op["width"],
            op["height"],
        )
    )
    return [_action(binding.gpu, "cuMemcpy2DAsync_v2", (block,), op["stream"])]


def _batch(op: Json, binding: Binding) -> list[Action]:
    block = ctypes.create_string_buffer(b"".join(_memory_operation(each, binding) for each in op["operations"]))
    function, check = binding.gpu.raw.cuStreamBatchMemOp_v2, binding.gpu.check
    count, stream = len(op["operations"]), op["stream"]

    def act(streams: list[int]) -> None:
        status = function(streams[stream], count, block, 0)
        if status:
            check(status, "cuStreamBatchMemOp")

    return [act]


def _memory_operation(operation: Json, binding: Binding) -> bytes:
    """A CUstreamBatchMemOpParams of 48 bytes: type at 0, address at 8, value at 16, flags at 24."""
    waits = operation["kind"] == "wait"
    kind = CU_STREAM_MEM_OP_WAIT_VALUE_32 if waits else CU_STREAM_MEM_OP_WRITE_VALUE_32
    flags = CU_STREAM_WAIT_VALUE_EQ if waits else CU_STREAM_WRITE_VALUE_DEFAULT
    return struct.pack("<I4xQI4xI20x", kind, _at(operation["address"], binding), operation["value"], flags)


def _launch(op: Json, binding: Binding) -> list[Action]:
    values = [each if isinstance(each, int) else _at(each, binding) for each in op["parameters"]]
    return [_kernel(op, values, op["stream"], binding)]


def _kernel(launch: Json, values: list[int], stream: int, binding: Binding) -> Action:
    """The parameters of cuLaunchKernel are the addresses of the values, which follow them."""
    count = len(values)
    block = (ctypes.c_uint64 * max(1, 2 * count))()
    start = ctypes.addressof(block)
    for i, value in enumerate(values):
        block[i], block[count + i] = start + 8 * (count + i), value
    function, check = binding.gpu.raw.cuLaunchKernel, binding.gpu.check
    kernel, shared = binding.kernels[launch["kernel"]], launch.get("sharedBytes", 0)
    if shared:
        # The driver asks before it gives a block more than 48 KiB.
        attribute = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        check(binding.gpu.raw.cuFuncSetAttribute(kernel, attribute, shared), "cuFuncSetAttribute")
    head = (kernel, *launch["grid"], *launch["block"], shared)

    def act(streams: list[int]) -> None:
        status = function(*head, streams[stream], block, 0)
        if status:
            check(status, "cuLaunchKernel")

    return act


def _gemm(op: Json, binding: Binding) -> list[Action]:
    gemm, stream = binding.own["gemms"][op["gemm"]], op["stream"]
    a, b, c = (_at(op[side], binding) for side in ("a", "b", "c"))
    bias = 0 if op["bias"] is None else _at(op["bias"], binding)
    addend = _at(op["addend"], binding) if "addend" in op else c
    workspace = _at({"space": "workspace", "stream": stream}, binding)
    scales = [_at(each, binding) for each in op.get("scales", [])]
    calls = binding.gemms().bind(gemm["layout"], gemm["margin"], a, b, bias, addend, scales, c, workspace, stream)
    if calls is not None:
        return calls
    further = [*([] if op["bias"] is None else [bias]), *([addend] if "addend" in op else []), *scales]
    return [_kernel(gemm["fallback"], [a, b, *further, c], stream, binding)]


def _attention(op: Json, binding: Binding) -> list[Action]:
    stream = op["stream"]
    operands = [_at(each, binding) for each in op["operands"]]
    workspace = _at({"space": "workspace", "stream": stream}, binding)
    graph = binding.own["attentions"][op["attention"]]["graph"]
    return [binding.attentions().bind(graph, operands, _at(op["scratch"], binding), workspace, stream)]


def _record(op: Json, binding: Binding) -> list[Action]:
    return [_action(binding.gpu, "cuEventRecord", (binding.events[op["event"]],), op["stream"])]


def _wait(op: Json, binding: Binding) -> list[Action]:
    function, check = binding.gpu.raw.cuStreamWaitEvent, binding.gpu.check
    event, stream = binding.events[op["event"]], op["stream"]

    def act(streams: list[int]) -> None:
        status = function(streams[stream], event, 0)
        if status:
            check(status, "cuStreamWaitEvent")

    return [act]


def _at(address: Json, binding: Binding) -> int:
    return binding.places.of(address, binding.tensors)


_RULES: dict[str, Callable[[Json, Binding], list[Action]]] = {
    "copy": _copy,
    "copy2d": _copy2d,
    "batch": _batch,
    "launch": _launch,
    "gemm": _gemm,
    "attention": _attention,
    "record": _record,
    "wait": _wait,
}
