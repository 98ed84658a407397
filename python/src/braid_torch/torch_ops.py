"""
PyTorch's fused_all_gather_matmul and fused_matmul_reduce_scatter by plans, and a third for the all-reduce. The first
call of a shape measures Braid, the library's collective beside torch.mm, and PyTorch's own op; all ranks then take the
fastest. What Braid has no plan for goes to the faster of the other two.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from .compiled import Problem, plan_folder
from .refusal import Refusal
from .torch_choice import fastest
from .torch_others import Way, gather_ways, reduce_ways, scatter_ways
from .torch_plan import ALIGNMENT, TorchPlan, current_device, empty, is_capturing, load, raw_stream, session_of

DTYPES = {torch.bfloat16: "bfloat16", torch.float16: "half", torch.float32: "float"}
# Weights that share a gather.
MOST_WEIGHTS = 4
# Shapes of a group for which plans are made and measured. A loop with a new length in every step would otherwise
# compile in every step.
MOST_SHAPES = 256

Shape = tuple[int, ...]
Key = tuple[Any, ...]

_ways: dict[Key, Way] = {}
# All that were measured, by name.
_measured: dict[Key, dict[str, Way]] = {}
# What runs, by call.
_names: dict[Key, str] = {}
_told: set[Key] = set()


def all_gather_matmul(
    a: Tensor, weights: Sequence[Tensor], gather_dim: int, group_name: str, return_a: bool = True
) -> tuple[Tensor | None, list[Tensor]]:
    """
    The arguments and results of torch.ops.symm_mem.fused_all_gather_matmul: gathers `a` along `gather_dim` and
    multiplies it by each of `weights`, [K, N].
    """
    key = ("all_gather_matmul", group_name, gather_dim, return_a, *_operands(a, weights))
    way = _ways.get(key)
    if way is None:
        _require_axis("gather_dim", gather_dim, a)
        own = functools.partial(_gather_plan, a, weights, gather_dim, return_a)
        way = _decide(key, a, weights, gather_ways(gather_dim, _group(group_name), return_a), own)
    result: tuple[Tensor | None, list[Tensor]] = way(a, weights)
    return result


def matmul_reduce_scatter(a: Tensor, b: Tensor, reduce_op: str, scatter_dim: int, group_name: str) -> Tensor:
    """
    The arguments and result of torch.ops.symm_mem.fused_matmul_reduce_scatter: `a` times `b`, [K, N], added over the
    ranks ("sum" or "avg"), of which each rank keeps its part along `scatter_dim`.
    """
    key = ("matmul_reduce_scatter", group_name, scatter_dim, reduce_op, *_operands(a, (b,)))
    way = _ways.get(key)
    if way is None:
        _require_reduction(reduce_op)
        _require_axis("scatter_dim", scatter_dim, a)
        _require_parts(a, b, scatter_dim, group_name)
        own = functools.partial(_scatter_plan, a, b, scatter_dim, reduce_op)
        way = _decide(key, a, (b,), scatter_ways(reduce_op, scatter_dim, _group(group_name)), own)
    result: Tensor = way(a, (b,))
    return result


def matmul_all_reduce(a: Tensor, b: Tensor, reduce_op: str, group_name: str) -> Tensor:
    """`a` [.., K] times `b` [K, N], added over the ranks of the group ("sum" or "avg"): every rank has the result."""
    key = ("matmul_all_reduce", group_name, reduce_op, *_operands(a, (b,)))
    way = _ways.get(key)
    if way is None:
        _require_reduction(reduce_op)
        own = functools.partial(_reduce_plan, a, b, reduce_op)
        way = _decide(key, a, (b,), reduce_ways(reduce_op, _group(group_name)), own)
    result: Tensor = way(a, (b,))
    return result


def choices() -> list[dict[str, Any]]:
    """What runs for each shape that was called."""
    return [{"call": " ".join(map(str, key)), "runs": name} for key, name in _names.items()]


def _operands(a: Tensor, weights: Sequence[Tensor]) -> Key:
    """All that a plan depends on, and that two calls of one plan may differ in otherwise."""
    if torch.is_grad_enabled() and (a.requires_grad or any(each.requires_grad for each in weights)):
        found, fix = "an operand that requires a gradient", "call it in an autograd.Function, or under torch.no_grad()"
        raise Refusal("plan-mismatch", "a fused op", found, "operands without one", fix)
    return tuple([(each.shape, each.stride(), each.dtype, each.get_device()) for each in (a, *weights)])


# A plan's folder is made of a problem; the way calls the plan.
Own = tuple[Problem, Callable[[TorchPlan], Way]]


def _decide(
    key: Key, a: Tensor, weights: Sequence[Tensor], others: dict[str, Way], own: Callable[[int], Own | None]
) -> Way:
    """Collective, at the first call of a key."""
    for each in (a, *weights):
        if each.get_device() != current_device():
            found, expected = f"a tensor on {each.device}", f"tensors on the current GPU, cuda:{current_device()}"
            raise Refusal("plan-mismatch", key[0], found, expected, "move it there, or call torch.cuda.set_device")
    group = _group(key[1])
    if is_capturing():
        _tell(key, group, "its first call is inside a capture: call it once before")
        return next(iter(others.values()))
    if sum(each[1] == key[1] for each in _names) >= MOST_SHAPES:
        reason = f"this group has called {MOST_SHAPES} other shapes; pad to fewer lengths"
        _tell(("further shapes", key[1]), group, reason)
        return next(iter(others.values()))
    ways = dict(others)
    planned = own(dist.get_world_size(group))
    if planned is not None:
        problem, way_of = planned
        try:
            session = session_of(group)
            ways = {"braid": way_of(load(plan_folder(problem, session.gpu, session.group), group)), **others}
        except Refusal as refusal:
            if refusal.code == "program-differs":
                raise
            _tell(key, group, str(refusal))
    name = fastest({each: functools.partial(way, a, weights) for each, way in ways.items()}, group)
    _names[key], _ways[key], _measured[key] = name, ways[name], ways
    return ways[name]


def _gather_plan(a: Tensor, weights: Sequence[Tensor], gather_dim: int, return_a: bool, size: int) -> Own | None:
    last = gather_dim == a.dim() - 1
    inner = a.shape[-1] * (size if last else 1)
    if not _fits(a, weights, inner):
        return None
    rows, columns = a.numel() // a.shape[-1], [each.shape[1] for each in weights]
    sizes = {"M": rows if last else rows * size, "K": inner, **{f"N{i}": n for i, n in enumerate(columns)}}
    chunks = {"CHUNKS": _chunks(rows, 1) or 1} if last else {}
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


def _scatter_plan(a: Tensor, b: Tensor, scatter_dim: int, reduce_op: str, size: int) -> Own | None:
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


def _reduce_plan(a: Tensor, b: Tensor, reduce_op: str, size: int) -> Own | None:
    rows = a.numel() // max(1, a.shape[-1])
    chunks = _chunks(rows, size)
    if not _fits(a, (b,), a.shape[-1]) or chunks is None:
        return None
    sizes = {"M": rows, "K": a.shape[-1], "N": b.shape[1], "CHUNKS": chunks}
    shape = (*a.shape[:-1], b.shape[1])

    def way_of(plan: TorchPlan) -> Way:
        call = _caller(plan, a.dtype, [_moved(shape, 0)])

        def way(a: Tensor, weights: Sequence[Tensor]) -> Tensor:
            (made,) = call((a, *weights))
            return made.div_(size) if reduce_op == "avg" else made

        return way

    return _problem("matmul-all-reduce", sizes, (b,), a.dtype), way_of


def _chunks(rows: int, size: int) -> int | None:
    """Into how many equal parts the rows are cut, each of which `size` ranks share."""
    return next((count for count in (4, 2, 1) if rows % (count * size) == 0), None)


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
    plan: TorchPlan, dtype: torch.dtype, results: Sequence[tuple[Shape, Shape]]
) -> Callable[[Sequence[Tensor]], list[Tensor]]:
    """Calls a plan with operands whose shapes are known to fit, and makes results of these shapes and strides."""
    run, order, device = plan.runner.run, plan.order, plan.device

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
        made = [empty(shape, strides, dtype, device) for shape, strides in results]
        addresses += [each.data_ptr() for each in made]
        run(tuple([addresses[place] for place in order]), raw_stream(device), is_capturing())
        return made

    return call


def _fits(a: Tensor, weights: Sequence[Tensor], inner: int) -> bool:
    """Whether a plan can take weights of [inner, N] where they are. It may copy `a` to make it contiguous."""
    if a.dim() < 2 or a.numel() == 0 or a.dtype not in DTYPES or not 1 <= len(weights) <= MOST_WEIGHTS:
        return False
    return len({_is_by_rows(each) for each in weights}) == 1 and all(
        _is_by_rows(each) is not None and each.dtype == a.dtype and each.shape[0] == inner and each.shape[1] > 0
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


def _require_reduction(reduce_op: str) -> None:
    if reduce_op not in ("sum", "avg"):
        raise ValueError(f"reduce_op: found {reduce_op!r}, expected 'sum' or 'avg'")


def _require_axis(name: str, axis: int, a: Tensor) -> None:
    """As PyTorch's ops: an axis counted from the end is refused."""
    if not 0 <= axis < a.dim():
        raise ValueError(f"{name}: found {axis}, expected 0 to {a.dim() - 1}")


def _require_parts(a: Tensor, b: Tensor, scatter_dim: int, group_name: str) -> None:
    """Rows that do not divide hang PyTorch's own op in its next call."""
    size = dist.get_world_size(_group(group_name))
    shape = (*a.shape[:-1], b.shape[-1])
    if shape[scatter_dim] % size:
        found = f"{shape[scatter_dim]} along axis {scatter_dim}"
        raise Refusal("plan-mismatch", "matmul_reduce_scatter", found, f"a multiple of {size}", "pad the tensor")


def _tell(key: Key, group: Any, reason: str) -> None:
    """Once, on the first rank of the group."""
    if key not in _told and dist.get_rank(group) == 0:
        warnings.warn(f"braid_torch leaves {' '.join(map(str, key))} to PyTorch: {reason}", stacklevel=4)
    _told.add(key)


def _group(name: str) -> Any:
    return dist.distributed_c10d._resolve_process_group(name)
