"""
PyTorch's fused_all_gather_matmul and fused_matmul_reduce_scatter by plans, the two with scales, and one for the
all-reduce. The first call of a shape measures Braid, the library's collective beside torch.mm, and PyTorch's own op; all
ranks then take the fastest. What Braid has no plan for goes to the faster of the other two.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from .compiled import plan_folder
from .refusal import Refusal
from .torch_choice import fastest
from .torch_op_plans import Own, gather_plan, reduce_plan, scaled_gather_plan, scaled_scatter_plan, scatter_plan
from .torch_others import Way, gather_ways, reduce_ways, scaled_gather_ways, scaled_scatter_ways, scatter_ways
from .torch_plan import current_device, is_capturing, load, session_of

# Shapes of a group for which plans are made and measured. A loop with a new length in every step would otherwise
# compile in every step.
MOST_SHAPES = 256

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
        own = functools.partial(gather_plan, a, weights, gather_dim, return_a)
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
        own = functools.partial(scatter_plan, a, b, scatter_dim, reduce_op)
        way = _decide(key, a, (b,), scatter_ways(reduce_op, scatter_dim, _group(group_name)), own)
    result: Tensor = way(a, (b,))
    return result


def matmul_all_reduce(a: Tensor, b: Tensor, reduce_op: str, group_name: str) -> Tensor:
    """`a` [.., K] times `b` [K, N], added over the ranks of the group ("sum" or "avg"): every rank has the result."""
    key = ("matmul_all_reduce", group_name, reduce_op, *_operands(a, (b,)))
    way = _ways.get(key)
    if way is None:
        _require_reduction(reduce_op)
        own = functools.partial(reduce_plan, a, b, reduce_op)
        way = _decide(key, a, (b,), reduce_ways(reduce_op, _group(group_name)), own)
    result: Tensor = way(a, (b,))
    return result


def all_gather_scaled_matmul(
    a: Tensor,
    weights: Sequence[Tensor],
    scale: Tensor,
    scales: Sequence[Tensor],
    gather_dim: int,
    group_name: str,
    dtypes: Sequence[torch.dtype | None],
    fast: Sequence[bool],
) -> tuple[Tensor, list[Tensor]]:
    """torch.ops.symm_mem.fused_all_gather_scaled_matmul without biases and scales of results. `fast`: use_fast_accum."""
    others = (*weights, scale, *scales)
    key = ("all_gather_scaled_matmul", group_name, gather_dim, *dtypes, *fast, *_operands(a, others))
    way = _ways.get(key)
    if way is None:
        _require_axis("gather_dim", gather_dim, a)
        rowwise = scale.shape == (*a.shape[:-1], 1)
        own = functools.partial(scaled_gather_plan, a, others, gather_dim, dtypes, rowwise, fast)
        way = _decide(key, a, others, scaled_gather_ways(gather_dim, _group(group_name), rowwise, dtypes, fast), own)
    result: tuple[Tensor, list[Tensor]] = way(a, others)
    return result


def scaled_matmul_reduce_scatter(
    a: Tensor,
    b: Tensor,
    scale: Tensor,
    scale_b: Tensor,
    reduce_op: str,
    scatter_dim: int,
    group_name: str,
    dtype: torch.dtype | None,
    fast: bool,
) -> Tensor:
    """torch.ops.symm_mem.fused_scaled_matmul_reduce_scatter for an `a` of the result's rows, without a bias."""
    others = (b, scale, scale_b)
    key = ("scaled_matmul_reduce_scatter", group_name, scatter_dim, reduce_op, dtype, fast, *_operands(a, others))
    way = _ways.get(key)
    if way is None:
        _require_reduction(reduce_op)
        _require_axis("scatter_dim", scatter_dim, a)
        _require_parts(a, b, scatter_dim, group_name)
        rowwise = scale.shape == (*a.shape[:-1], 1)
        own = functools.partial(scaled_scatter_plan, a, others, scatter_dim, reduce_op, dtype, rowwise, fast)
        way = _decide(key, a, others, scaled_scatter_ways(reduce_op, scatter_dim, _group(group_name), dtype, fast), own)
    result: Tensor = way(a, others)
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
