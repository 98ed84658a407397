"""Checks that every number of a rank's document names something, and that every address lies in its space."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from .dtypes import DTYPE_BYTES, scale_elements

Json = dict[str, Any]
# Takes what was found and what was expected, and raises.
Refuse = Callable[[str, str], None]
# An address and the bytes from it that an operation touches; where a kernel decides, 1 of words and 0 of tensors.
Extent = tuple[Json, int]

GRAPH_BYTES = {**DTYPE_BYTES, "int32": 4}


def check_rank(own: Json, plan: Json, rank: int, refuse: Refuse) -> None:
    world, memory, streams, commands = own["world"], own["memory"], own["streams"], own["commands"]
    if own["rank"] != rank or world != plan["world"]:
        refuse(f"rank {own['rank']} of {world}", f"rank {rank} of {plan['world']}")
    for name in ("symmetricBytes", "words"):
        if len(memory[name]) != world:
            refuse(f"{len(memory[name])} entries of {name}", f"{world}, one for each rank")
    for name in ("scratchBytes", "workspaceBytes"):
        if len(memory[name]) != len(streams):
            refuse(f"{len(memory[name])} entries of {name}", f"{len(streams)}, one for each stream")
    if not streams:
        refuse("no stream", "at least the caller's")

    def below(what: str, number: int, count: int) -> None:
        if number >= count:
            refuse(f"{what} {number}", f"no {what}" if count == 0 else f"one from 0 to {count - 1}")

    def inside(address: Json, size: int, what: str) -> None:
        end, limit = _offset(address) + size, _size(address, own)
        if end <= limit:
            return
        tensor = f" {address['tensor']}" if "tensor" in address else ""
        of_rank = f" of rank {address['rank']}" if "rank" in address else ""
        found = f"{what}: bytes up to {end} of {address['space']}{tensor}{of_rank}"
        refuse(found, "a space that the plan has" if limit < 0 else f"at most {limit}")

    for kernel in own["kernels"]:
        below("kernel", kernel, len(plan["kernels"]))
    for gemm in own["gemms"]:
        below("kernel", gemm["fallback"]["kernel"], len(own["kernels"]))
    for command in commands:
        below("stream", command["stream"], len(streams))
        below("statement", command["statement"], len(own["statements"]))
    bound = [*memory["in"], *memory["out"], *memory["copied"]]
    for tensor in bound:
        _check_tensor(tensor, plan, below, refuse)
    for number, tensor in enumerate(bound):
        inside(tensor["place"], tensor["bytes"], f"tensor {number}")
    for number, op in enumerate(own["ops"]):
        below("stream", op["stream"], len(streams))
        if op["command"] >= 0:
            below("command", op["command"], len(commands))
        for what, index, count in _tables(op, own):
            below(what, index, count)
        if "addend" in op and not own["gemms"][op["gemm"]]["layout"].get("accumulate"):
            refuse(f"operation {number}: a GEMM with an addend that does not accumulate", "accumulate in its layout")
        for address, size in _extents(op, own):
            inside(address, size, f"operation {number}, {op['kind']}")
    for run in own["waitRuns"]:
        if not run:
            refuse("a run of no waits", "the waits of a batch")
        for wait in run:
            below("command", wait["command"], len(commands))
            inside(wait["word"], 4, "a wait")


def check_signals(ranks: list[Json], refuse: Refuse) -> None:
    """As many signals are written to every word in a run as are waited for."""
    words: dict[tuple[int, int], list[int]] = {}
    # Kernels signal and wait, too: a word that one of them has is theirs to count.
    in_kernels: set[tuple[int, int]] = set()
    for own in ranks:
        for op in own["ops"]:
            for each in op["operations"] if op["kind"] == "batch" else ():
                if each["address"]["space"] != "word" or each["value"] == 0:
                    continue
                counts = words.setdefault((each["address"]["rank"], each["address"]["index"]), [0, 0])
                counts[each["kind"] == "wait"] += 1
            for each in op["parameters"] if op["kind"] == "launch" else ():
                if isinstance(each, dict) and each["space"] == "word":
                    in_kernels.add((each["rank"], each["index"]))
    for (rank, index), (signals, waits) in words.items():
        if signals != waits and (rank, index) not in in_kernels:
            refuse(f"word {index} of rank {rank}: {signals} signals, {waits} waits", "as many of both")


def _check_tensor(tensor: Json, plan: Json, below: Callable[[str, int, int], None], refuse: Refuse) -> None:
    role, position, shape, strides = tensor["role"], tensor["position"], tensor["shape"], tensor["strides"]
    signatures = plan["inputs" if role == "input" else "outputs"]
    below(role, position, len(signatures))
    whole, held = signatures[position]["shape"], tensor["held"]
    same_rank = len(held) == len(shape) == len(strides) == len(whole)
    if not same_rank or not all(map(_is_held, held, whole, shape)):
        found = f"{role} {position} with the shape [{', '.join(map(str, shape))}]"
        refuse(found, f"a part of [{', '.join(map(str, whole))}]")
    needed = _span(shape, strides) * DTYPE_BYTES[tensor["dtype"]]
    if needed > tensor["bytes"]:
        refuse(f"{role} {position} of {tensor['bytes']} bytes", f"at least {needed}")


def _is_held(runs: list[list[int]], whole: int, local: int) -> bool:
    end = count = 0
    for start, stop in runs:
        if start < end or stop <= start or stop > whole:
            return False
        end = stop
        count += stop - start
    return count == local


def _span(shape: list[int], strides: list[int]) -> int:
    """Elements from the first to the last, both included."""
    if 0 in shape:
        return 0
    return 1 + sum((extent - 1) * stride for extent, stride in zip(shape, strides))


def _offset(address: Json) -> int:
    if "offset" in address:
        return address["offset"]
    return {"word": 4, "gate": 8}.get(address["space"], 0) * address.get("index", 0)


def _size(address: Json, own: Json) -> int:
    """The bytes of the address's space; -1 or less if there is no such space."""
    memory, streams, space = own["memory"], own["streams"], address["space"]

    def entry(values: list[int], index: int) -> int:
        return values[index] if index < len(values) else -1

    if space in ("in", "out"):
        return entry([tensor["bytes"] for tensor in memory[space]], address["tensor"])
    if space == "temporary":
        return memory["temporaryBytes"]
    if space == "symmetric":
        return entry(memory["symmetricBytes"], address["rank"])
    if space == "word":
        return 4 * entry(memory["words"], address["rank"])
    if space == "gate":
        return 8 * memory["gates"]
    if space == "scratch":
        return entry(memory["scratchBytes"], address["stream"])
    if space in ("progress", "workspace"):
        return (4 if space == "progress" else 1) if address["stream"] < len(streams) else -1
    raise AssertionError(space)


def _tables(op: Json, own: Json) -> list[tuple[str, int, int]]:
    """What an operation names by number."""
    kind = op["kind"]
    if kind in ("record", "wait"):
        return [("event", op["event"], own["events"])]
    tables = {"launch": ("kernel", "kernels"), "gemm": ("gemm", "gemms"), "attention": ("attention", "attentions")}
    if kind not in tables:
        return []
    what, table = tables[kind]
    return [(what, op[what], len(own[table]))]


def _extents(op: Json, own: Json) -> Iterator[Extent]:
    kind = op["kind"]
    if kind == "copy":
        yield from ((op[side], op["bytes"]) for side in ("to", "from"))
    elif kind == "copy2d":
        for side in ("to", "from"):
            yield op[side], (op["height"] - 1) * op[f"{side}Pitch"] + op["width"]
    elif kind == "batch":
        yield from ((each["address"], 4) for each in op["operations"])
    elif kind == "launch":
        # A tensor may be empty.
        yield from ((each, 0 if "offset" in each else 1) for each in op["parameters"] if isinstance(each, dict))
    elif kind == "gemm":
        yield from _gemm_extents(op, own["gemms"][op["gemm"]]["layout"])
    elif kind == "attention":
        yield from _attention_extents(op, own["attentions"][op["attention"]])


def _gemm_extents(op: Json, layout: Json) -> Iterator[Extent]:
    size, scaled = DTYPE_BYTES[layout["dtype"]], layout.get("scaled", {})
    left, right = ("b", "a") if layout["swapped"] else ("a", "b")
    matrices = [(left, left, "left"), (right, right, "right"), ("c", "c", "result")]
    # It has the layout of c, and moves with it.
    addend = [("addend", "c", "result")] if "addend" in op else []
    for operand, side, name in (*matrices, *addend):
        matrix = layout[name]
        first = max((offset[side] for offset in layout["offsets"]), default=0)
        span = matrix["rows"] + (matrix["columns"] - 1) * matrix["leading"]
        elements = first + span + (layout["batchCount"] - 1) * matrix["batchStride"]
        yield op[operand], elements * DTYPE_BYTES[scaled.get(name, layout["dtype"])]
    if op["bias"] is not None:
        yield op["bias"], layout["result"]["rows"] * size
    for scale, side in zip(op.get("scales", []), ("right", "left") if layout["swapped"] else ("left", "right")):
        yield scale, 4 * scale_elements(layout, side)


def _attention_extents(op: Json, attention: Json) -> Iterator[Extent]:
    for tensor in attention["graph"]["tensors"]:
        memory = tensor["memory"]
        if memory["kind"] == "operand" and memory["position"] < len(op["operands"]):
            size = _span(tensor["dims"], tensor["strides"]) * GRAPH_BYTES[tensor["type"]]
            yield op["operands"][memory["position"]], size
    if attention["scratchBytes"] > 0:
        yield op["scratch"], attention["scratchBytes"]
