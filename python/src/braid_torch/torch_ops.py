"""
PyTorch's fused_all_gather_matmul and fused_matmul_reduce_scatter by plans, and a third for the all-reduce. The first
call of a shape measures Braid, the library's collective beside torch.mm, and PyTorch's own op; all ranks then take the
fastest. What Braid has no plan for goes to the faster of the other two.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from .compiled import Problem, plan_folder
from .refusal import Refusal
from .torch_plan import TorchPlan, load, session_of

Run = Callable[[], Any]

DTYPES = {torch.bfloat16: "bfloat16", torch.float16: "half", torch.float32: "float"}
# Weights that share a gather.
MOST_WEIGHTS = 4
ROUNDS = 3
CALLS = 5

# By op, shapes and group: the name of what runs.
_chosen: dict[tuple[Any, ...], str] = {}
_plans: dict[tuple[Any, ...], TorchPlan] = {}
_told: set[tuple[Any, ...]] = set()


def all_gather_matmul(
    a: Tensor, weights: Sequence[Tensor], gather_dim: int, group_name: str, return_a: bool = True
) -> tuple[Tensor | None, list[Tensor]]:
    """
    The arguments and results of torch.ops.symm_mem.fused_all_gather_matmul: gathers `a` along `gather_dim` and
    multiplies it by each of `weights`, [K, N].
    """
    group = _group(group_name)
    size = dist.get_world_size(group)
    others = _gather_others(a, weights, gather_dim, group, return_a)
    problem = _gather_problem(a, weights, gather_dim, size, return_a)
    if problem is None:
        return _fastest(("gather", *_key(a, weights), gather_dim, return_a), None, others, group)()
    rows = a.movedim(gather_dim, 0)
    lead, inner = list(rows.shape[:-1]), rows.shape[-1]
    flat = rows.reshape(1, -1, inner)

    def braid(plan: TorchPlan) -> tuple[Tensor | None, list[Tensor]]:
        results = plan(flat, *(_stored(weight) for weight in weights))
        made = list(results) if isinstance(results, tuple) else [results]
        shape = [lead[0] * size, *lead[1:]]
        whole = [each.view(*shape, each.shape[-1]).movedim(0, gather_dim) for each in made]
        return (whole[0], whole[1:]) if return_a else (None, whole)

    return _fastest(("gather", *_key(a, weights), gather_dim, return_a), (problem, braid), others, group)()


def matmul_reduce_scatter(a: Tensor, b: Tensor, reduce_op: str, scatter_dim: int, group_name: str) -> Tensor:
    """
    The arguments and result of torch.ops.symm_mem.fused_matmul_reduce_scatter: `a` times `b`, [K, N], added over the
    ranks ("sum" or "avg"), of which each rank keeps its part along `scatter_dim`.
    """
    group = _group(group_name)
    size = dist.get_world_size(group)
    _require_reduction(reduce_op)
    if a.dim() >= 2 and 0 <= scatter_dim < a.dim() - 1 and a.shape[scatter_dim] % size:
        found = f"{a.shape[scatter_dim]} along axis {scatter_dim}"
        raise Refusal("plan-mismatch", "matmul_reduce_scatter", found, f"a multiple of {size}", "pad the tensor")
    others = _scatter_others(a, b, reduce_op, scatter_dim, group)
    key = ("scatter", *_key(a, [b]), reduce_op, scatter_dim)
    problem = _scatter_problem(a, b, scatter_dim, size)
    if problem is None:
        return _fastest(key, None, others, group)()
    rows = a.movedim(scatter_dim, 0)
    lead, inner = list(rows.shape[:-1]), rows.shape[-1]
    flat = rows.reshape(1, size, -1, inner)

    def braid(plan: TorchPlan) -> Tensor:
        stored = _stored(b)
        result: Tensor = plan(flat, stored.view(1, 1, *stored.shape))
        result = result.view(lead[0] // size, *lead[1:], b.shape[1]).movedim(0, scatter_dim).contiguous()
        return result.div_(size) if reduce_op == "avg" else result

    return _fastest(key, (problem, braid), others, group)()


def matmul_all_reduce(a: Tensor, b: Tensor, reduce_op: str, group_name: str) -> Tensor:
    """`a` [.., K] times `b` [K, N], added over the ranks of the group ("sum" or "avg"): every rank has the result."""
    group = _group(group_name)
    size = dist.get_world_size(group)
    _require_reduction(reduce_op)

    def library() -> Tensor:
        result = torch.matmul(a, b)
        dist.all_reduce(result, group=group)
        return result.div_(size) if reduce_op == "avg" else result

    others: dict[str, Run] = {"torch.mm and all_reduce": library}
    key = ("reduce", *_key(a, [b]), reduce_op)
    rows = a.numel() // a.shape[-1]
    chunks = next((count for count in (4, 2, 1) if rows % (count * size) == 0), None)
    if not _fits(a, [b]) or chunks is None:
        return _fastest(key, None, others, group)()
    sizes = {"M": rows, "K": a.shape[-1], "N": b.shape[1], "CHUNKS": chunks}
    problem = _problem("matmul-all-reduce", sizes, [b], a.dtype)
    flat = a.reshape(chunks, 1, rows // chunks, a.shape[-1])

    def braid(plan: TorchPlan) -> Tensor:
        stored = _stored(b)
        result: Tensor = plan(flat, stored.view(1, 1, *stored.shape))
        result = result.view(*a.shape[:-1], b.shape[1])
        return result.div_(size) if reduce_op == "avg" else result

    return _fastest(key, (problem, braid), others, group)()


def choices() -> list[dict[str, Any]]:
    """What runs for each shape that was called."""
    return [{"call": " ".join(map(str, key)), "runs": name} for key, name in _chosen.items()]


def _fastest(
    key: tuple[Any, ...], own: tuple[Problem, Callable[[TorchPlan], Any]] | None, others: dict[str, Run], group: Any
) -> Run:
    """The call to make, chosen at the first call of a key. Collective then."""
    key = (group.group_name, *key)
    name = _chosen.get(key)
    if name == "braid" and own is not None:
        plan, call = _plans[key], own[1]
        return lambda: call(plan)
    if name is not None:
        return others[name]
    if torch.cuda.is_current_stream_capturing():
        _tell(key, "its first call is inside a capture: call it once before")
        return next(iter(others.values()))
    candidates: dict[str, Run] = dict(others)
    if own is not None:
        problem, call = own
        try:
            session = session_of(group)
            made = load(plan_folder(problem, session.gpu, session.group), group)
            candidates["braid"] = lambda: call(made)
            _plans[key] = made
        except Refusal as refusal:
            if refusal.code == "program-differs":
                raise
            _tell(key, str(refusal))
    _chosen[key] = _measured(candidates, group)
    return candidates[_chosen[key]]


def _measured(candidates: dict[str, Run], group: Any) -> str:
    """The name of the fastest, by the slowest rank of each."""
    if len(candidates) == 1:
        return next(iter(candidates))
    times = torch.full((len(candidates),), float("inf"), dtype=torch.float64)
    runs = list(candidates.values())
    for position, run in enumerate(runs):
        try:
            for _ in range(2):
                run()
            torch.cuda.synchronize()
        except (RuntimeError, ValueError, AssertionError):
            if list(candidates)[position] != "torch's op":
                raise
            # Its symmetric memory does not work here, or it refuses the operands.
            runs[position] = _never
    for _ in range(ROUNDS):
        for position, run in enumerate(runs):
            dist.barrier(group)
            torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(CALLS):
                run()
            torch.cuda.synchronize()
            if run is not _never:
                times[position] = min(float(times[position]), time.perf_counter() - start)
    slowest = times.cuda()
    dist.all_reduce(slowest, op=dist.ReduceOp.MAX, group=group)
    return list(candidates)[int(slowest.argmin())]


def _never() -> None:
    pass


def _tell(key: tuple[Any, ...], reason: str) -> None:
    if key not in _told and dist.get_rank() == 0:
        warnings.warn(f"braid_torch leaves {' '.join(map(str, key[1:]))} to PyTorch: {reason}", stacklevel=4)
    _told.add(key)


def _group(name: str) -> Any:
    return dist.distributed_c10d._resolve_process_group(name)


def _key(a: Tensor, weights: Sequence[Tensor]) -> tuple[Any, ...]:
    return (tuple(a.shape), *(f"{tuple(each.shape)}{'' if each.is_contiguous() else 't'}" for each in weights), a.dtype)


def _fits(a: Tensor, weights: Sequence[Tensor]) -> bool:
    """Whether a plan can take the operands where they are, but for copies that make `a` contiguous."""
    if a.dim() < 2 or a.numel() == 0 or a.dtype not in DTYPES or not 1 <= len(weights) <= MOST_WEIGHTS:
        return False
    stored = [_is_by_rows(each) for each in weights]
    return all(
        each.dim() == 2 and each.dtype == a.dtype and each.shape[0] == a.shape[-1] and each.shape[1] > 0
        for each in weights
    ) and (all(kind is True for kind in stored) or all(kind is False for kind in stored))


def _is_by_rows(weight: Tensor) -> bool | None:
    """True for [K, N] by rows, False for the transposed view of an [N, K], None for another."""
    if weight.is_contiguous():
        return True
    return False if weight.dim() == 2 and weight.t().is_contiguous() else None


def _stored(weight: Tensor) -> Tensor:
    return weight if weight.is_contiguous() else weight.t()


def _gather_problem(a: Tensor, weights: Sequence[Tensor], gather_dim: int, size: int, return_a: bool) -> Problem | None:
    if not _fits(a, weights) or not 0 <= gather_dim < a.dim() - 1:
        return None
    columns = [each.shape[1] for each in weights]
    sizes = {"M": a.numel() // a.shape[-1] * size, "K": a.shape[-1], **{f"N{i}": n for i, n in enumerate(columns)}}
    return _problem("all-gather-matmul", {**sizes, "RETURN_A": int(return_a)}, weights, a.dtype)


def _scatter_problem(a: Tensor, b: Tensor, scatter_dim: int, size: int) -> Problem | None:
    if not _fits(a, [b]) or not 0 <= scatter_dim < a.dim() - 1:
        return None
    sizes = {"M": a.numel() // a.shape[-1], "K": a.shape[-1], "N": b.shape[1]}
    return _problem("matmul-reduce-scatter", sizes, [b], a.dtype)


def _problem(program: str, sizes: dict[str, int], weights: Sequence[Tensor], dtype: torch.dtype) -> Problem:
    values = {**sizes, "ROWS": int(weights[0].is_contiguous()), "DTYPE": DTYPES[dtype]}
    return Problem(program, tuple((name, str(value)) for name, value in values.items()))


def _require_reduction(reduce_op: str) -> None:
    if reduce_op not in ("sum", "avg"):
        raise ValueError(f"reduce_op: found {reduce_op!r}, expected 'sum' or 'avg'")


def _gather_others(a: Tensor, weights: Sequence[Tensor], gather_dim: int, group: Any, return_a: bool) -> dict[str, Run]:
    size = dist.get_world_size(group)

    def library() -> tuple[Tensor | None, list[Tensor]]:
        rows = a.movedim(gather_dim, 0).contiguous()
        whole = rows.new_empty(rows.shape[0] * size, *rows.shape[1:])
        dist.all_gather_into_tensor(whole, rows, group=group)
        if gather_dim != a.dim() - 1:
            flat = whole.flatten(0, -2)
            results = [torch.mm(flat, each).view(*whole.shape[:-1], -1).movedim(0, gather_dim) for each in weights]
        else:
            whole = whole.movedim(0, gather_dim).contiguous()
            return (whole if return_a else None), [torch.matmul(whole, each) for each in weights]
        return (whole.movedim(0, gather_dim) if return_a else None), results

    others: dict[str, Run] = {"all_gather and torch.mm": library}
    own = _torchs("_fused_all_gather_matmul")
    if own is not None:
        others["torch's op"] = lambda: own(a, list(weights), gather_dim, group.group_name, return_A=return_a)
    return others


def _scatter_others(a: Tensor, b: Tensor, reduce_op: str, scatter_dim: int, group: Any) -> dict[str, Run]:
    size = dist.get_world_size(group)

    def library() -> Tensor:
        partial = torch.matmul(a, b).movedim(scatter_dim, 0).contiguous()
        part = partial.new_empty(partial.shape[0] // size, *partial.shape[1:])
        kind = dist.ReduceOp.AVG if reduce_op == "avg" else dist.ReduceOp.SUM
        dist.reduce_scatter_tensor(part, partial, op=kind, group=group)
        return part.movedim(0, scatter_dim).contiguous()

    others: dict[str, Run] = {"torch.mm and reduce_scatter": library}
    own = _torchs("_fused_matmul_reduce_scatter")
    if own is not None:
        others["torch's op"] = lambda: own(a, b, reduce_op, scatter_dim, group.group_name)
    return others


def _torchs(name: str) -> Callable[..., Any] | None:
    """The Python function behind PyTorch's own op, which stays callable when the op is replaced."""
    from torch.distributed import _symmetric_memory

    return getattr(_symmetric_memory, name, None)
