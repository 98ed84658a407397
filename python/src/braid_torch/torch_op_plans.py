"""
The plan of a fused op for its operands: the program and its sizes, and how a call with tensors becomes a run of the
plan. None where no program takes the operands.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence

import torch
from torch import Tensor

from .compiled import Problem
from .torch_others import Way
from .torch_plan import ALIGNMENT, TorchPlan, empty, is_capturing, raw_stream

DTYPES = {torch.bfloat16: "bfloat16", torch.float16: "half", torch.float32: "float"}
# Of operands with scales: float8_e4m3fn, float8_e5m2.
FLOATS8 = (torch.float8_e4m3fn, torch.float8_e5m2)
# Weights that share a gather.
MOST_WEIGHTS = 4

Shape = tuple[int, ...]
# A plan's folder is made of a problem; the way calls the plan.
Own = tuple[Problem, Callable[[TorchPlan], Way]]


def gather_plan(a: Tensor, weights: Sequence[Tensor], gather_dim: int, return_a: bool, size: int) -> Own | None:
    last = gather_dim == a.dim() - 1
    inner = a.shape[-1] * (size if last else 1)
    if not _fits(a, weights, inner):
        return None
    rows, columns = a.numel() // a.shape[-1], [each.shape[1] for each in weights]
    sizes = {"M": rows if last else rows * size, "K": inner, **{f"N{i}": n for i, n in enumerate(columns)}}
    chunks = {"CHUNKS": _chunks(rows)} if last else {}
    problem = _problem("all-gather-matmul", {**sizes, **chunks, "RETURN_A": int(return_a)}, weights, a.dtype)
    # Of the rows, the gathered axis is first in memory, as in PyTorch's results.
    axis, lead = (0, a.shape[:-1]) if last else (gather_dim, _first(a, gather_dim, a.shape[gather_dim] * size))
    results = [_moved((*lead, n), axis) for n in ([inner, *columns] if return_a else columns)]

    def way_of(plan: TorchPlan) -> Way:
        call = _caller(plan, a.dtype, results)

        def way(a: Tensor, weights: Sequence[Tensor]) -> tuple[Tensor | None, list[Tensor]]:
            made = call((a if axis == 0 else a.movedim(axis, 0), *weights))
            return (made[0], made[1:]) if return_a else (None, made)

        return way

    return problem, way_of


def scatter_plan(a: Tensor, b: Tensor, scatter_dim: int, reduce_op: str, size: int) -> Own | None:
    if not _fits(a, (b,), a.shape[-1]):
        return None
    last = scatter_dim == a.dim() - 1
    sizes = {"M": a.numel() // a.shape[-1], "K": a.shape[-1], "N": b.shape[1], **({"LAST": 1} if last else {})}
    problem = _problem("matmul-reduce-scatter", sizes, (b,), a.dtype)
    axis, lead = (0, a.shape[:-1]) if last else (scatter_dim, _first(a, scatter_dim, a.shape[scatter_dim] // size))
    columns = b.shape[1] // (size if last else 1)

    def way_of(plan: TorchPlan) -> Way:
        call = _caller(plan, a.dtype, [_moved((*lead, columns), axis)])

        def way(a: Tensor, weights: Sequence[Tensor]) -> Tensor:
            (made,) = call((a if axis == 0 else a.movedim(axis, 0), *weights))
            part = made.contiguous()
            return part.div_(size) if reduce_op == "avg" else part

        return way

    return problem, way_of


def reduce_plan(a: Tensor, b: Tensor, reduce_op: str, size: int) -> Own | None:
    rows = a.numel() // max(1, a.shape[-1])
    if not _fits(a, (b,), a.shape[-1]) or rows % size:
        return None
    sizes = {"M": rows, "K": a.shape[-1], "N": b.shape[1], "CHUNKS": _chunks(rows // size)}
    shape = (*a.shape[:-1], b.shape[1])

    def way_of(plan: TorchPlan) -> Way:
        call = _caller(plan, a.dtype, [_moved(shape, 0)])

        def way(a: Tensor, weights: Sequence[Tensor]) -> Tensor:
            (made,) = call((a, *weights))
            return made.div_(size) if reduce_op == "avg" else made

        return way

    return _problem("matmul-all-reduce", sizes, (b,), a.dtype), way_of


# `others` are the weights, the scale of `a` and those of the weights, as in torch_others.py. A scale is of a tensor, or
# for `rowwise` of each row, the last axis of which has one element.


def scaled_gather_plan(
    a: Tensor,
    others: Sequence[Tensor],
    gather_dim: int,
    dtypes: Sequence[torch.dtype | None],
    rowwise: bool,
    fast: Sequence[bool],
    size: int,
) -> Own | None:
    count, out = len(dtypes), dtypes[0]
    weights = others[:count]
    mixed = len(set(dtypes)) > 1 or len(set(fast)) > 1
    if gather_dim == a.dim() - 1 or mixed or not _scaled_fits(a, weights, others[count:], out, rowwise):
        return None
    rows, columns = a.numel() // a.shape[-1], [each.shape[1] for each in weights]
    sizes = {"M": rows * size, "K": a.shape[-1], **{f"N{i}": n for i, n in enumerate(columns)}}
    problem = _scaled_problem("all-gather-scaled-matmul", sizes, a, weights, out, rowwise, fast[0])
    lead = _first(a, gather_dim, a.shape[gather_dim] * size)
    results = [_moved((*lead, n), gather_dim) for n in (a.shape[-1], *columns)]

    def way_of(plan: TorchPlan) -> Way:
        call = _caller(plan, [a.dtype, *dtypes], results)

        def way(a: Tensor, others: Sequence[Tensor]) -> tuple[Tensor, list[Tensor]]:
            made = call(_rows_first(a, others, gather_dim, count if rowwise else None))
            return made[0], made[1:]

        return way

    return problem, way_of


def scaled_scatter_plan(
    a: Tensor,
    others: Sequence[Tensor],
    scatter_dim: int,
    reduce_op: str,
    out: torch.dtype | None,
    rowwise: bool,
    fast: bool,
    size: int,
) -> Own | None:
    b = others[0]
    if scatter_dim == a.dim() - 1 or not _scaled_fits(a, (b,), others[1:], out, rowwise):
        return None
    sizes = {"M": a.numel() // a.shape[-1], "K": a.shape[-1], "N": b.shape[1]}
    problem = _scaled_problem("scaled-matmul-reduce-scatter", sizes, a, (b,), out, rowwise, fast)
    shape = (*_first(a, scatter_dim, a.shape[scatter_dim] // size), b.shape[1])

    def way_of(plan: TorchPlan) -> Way:
        call = _caller(plan, [out], [_moved(shape, scatter_dim)])

        def way(a: Tensor, others: Sequence[Tensor]) -> Tensor:
            (made,) = call(_rows_first(a, others, scatter_dim, 1 if rowwise else None))
            part = made.contiguous()
            return part.div_(size) if reduce_op == "avg" else part

        return way

    return problem, way_of


def _rows_first(a: Tensor, others: Sequence[Tensor], axis: int, scale: int | None) -> list[Tensor]:
    """With `axis` first, also in the scale of its rows, which is number `scale` of the others."""
    if axis == 0:
        return [a, *others]
    return [a.movedim(axis, 0), *[o.movedim(axis, 0).contiguous() if i == scale else o for i, o in enumerate(others)]]


def _scaled_fits(
    a: Tensor, weights: Sequence[Tensor], scales: Sequence[Tensor], out: torch.dtype | None, rowwise: bool
) -> bool:
    """Whether a plan takes them: weights are transposed views of [N, K]."""
    counts = [a.numel() // max(1, a.shape[-1]), *(each.shape[-1] for each in weights)] if rowwise else [1] * len(scales)
    return (
        _fits(a, weights, a.shape[-1], FLOATS8)
        and out in DTYPES
        and a.shape[-1] % 16 == 0
        and not _is_by_rows(weights[0])
        and all(each.dtype == torch.float32 and each.is_contiguous() for each in scales)
        and [each.numel() for each in scales] == counts
    )


def _scaled_problem(
    program: str,
    sizes: dict[str, int],
    a: Tensor,
    weights: Sequence[Tensor],
    out: torch.dtype | None,
    rowwise: bool,
    fast: bool,
) -> Problem:
    halves = [each.dtype == torch.float8_e5m2 for each in (a, weights[0])]
    flags = {"ROWWISE": int(rowwise), "E5M2": halves[0] + 2 * halves[1], "FAST": int(fast)}
    values = {**sizes, **flags, "DTYPE": DTYPES[out or a.dtype]}
    return Problem(program, tuple((name, str(value)) for name, value in values.items()))


def _chunks(rows: int) -> int:
    """Into how many equal parts the rows are cut."""
    return next(count for count in (4, 2, 1) if rows % count == 0)


def _first(a: Tensor, axis: int, extent: int) -> Shape:
    """The extents of the rows with that of `axis` first, and replaced."""
    return (extent, *(n for i, n in enumerate(a.shape[:-1]) if i != axis))


def _moved(shape: Shape, axis: int) -> tuple[Shape, Shape]:
    """The shape and strides of a contiguous tensor of this shape with its first axis moved to another place."""
    strides = [math.prod(shape[i + 1 :]) for i in range(len(shape))]

    def move(values: Sequence[int]) -> Shape:
        rest = list(values[1:])
        return (*rest[:axis], values[0], *rest[axis:])

    return move(shape), move(strides)


def _caller(
    plan: TorchPlan, dtype: torch.dtype | Sequence[torch.dtype | None], results: Sequence[tuple[Shape, Shape]]
) -> Callable[[Sequence[Tensor]], list[Tensor]]:
    """Calls a plan with operands whose shapes are known to fit, and makes results of these shapes and strides."""
    run, order, device = plan.runner.run, plan.order, plan.device
    dtypes = [dtype] * len(results) if isinstance(dtype, torch.dtype) else dtype
    layouts = [(shape, strides, own) for (shape, strides), own in zip(results, dtypes)]

    def call(operands: Sequence[Tensor]) -> list[Tensor]:
        first, *others = operands
        if not first.is_contiguous():
            first = first.contiguous()
        tensors = [first, *others]
        addresses = [each.data_ptr() for each in tensors]
        if any(address % ALIGNMENT for address in addresses):
            # Kept until the run is queued: the allocator hands the memory out again in the order of the stream.
            tensors = [each.clone() if each.data_ptr() % ALIGNMENT else each for each in tensors]
            addresses = [each.data_ptr() for each in tensors]
        made = [empty(*layout, device) for layout in layouts]
        addresses += [each.data_ptr() for each in made]
        run(tuple([addresses[place] for place in order]), raw_stream(device), is_capturing())
        return made

    return call


def _fits(a: Tensor, weights: Sequence[Tensor], inner: int, dtypes: Collection[torch.dtype] = DTYPES) -> bool:
    """Whether a plan can take weights of [inner, N] where they are. It may copy `a` to make it contiguous."""
    if a.dim() < 2 or a.numel() == 0 or a.dtype not in dtypes or not 1 <= len(weights) <= MOST_WEIGHTS:
        return False
    own = a.dtype if a.dtype in DTYPES else weights[0].dtype
    return own in dtypes and len({_is_by_rows(each) for each in weights}) == 1 and all(
        _is_by_rows(each) is not None and each.dtype == own and each.shape[0] == inner and each.shape[1] > 0
        for each in weights
    )


def _is_by_rows(weight: Tensor) -> bool | None:
    """True for [K, N] by rows, False for the transposed view of an [N, K], None for another."""
    if weight.dim() != 2:
        return None
    return True if weight.is_contiguous() else False if weight.t().is_contiguous() else None


def _problem(program: str, sizes: dict[str, int], weights: Sequence[Tensor], dtype: torch.dtype) -> Problem:
    values = {**sizes, "ROWS": int(weights[0].is_contiguous()), "DTYPE": DTYPES[dtype]}
    return Problem(program, tuple((name, str(value)) for name, value in values.items()))
