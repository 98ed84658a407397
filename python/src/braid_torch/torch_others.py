"""What PyTorch itself runs for an op: the library's collective beside torch.mm, and its own fused op."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

# Takes the left operand and the weights.
Way = Callable[[Tensor, Sequence[Tensor]], Any]

TORCHS_OP = "torch's op"


def gather_ways(gather_dim: int, group: Any, return_a: bool) -> dict[str, Way]:
    def library(a: Tensor, weights: Sequence[Tensor]) -> tuple[Tensor | None, list[Tensor]]:
        whole = _gathered(a, gather_dim, group)
        if gather_dim == a.dim() - 1:
            whole = whole.movedim(0, gather_dim).contiguous()
            return (whole if return_a else None), [torch.matmul(whole, each) for each in weights]
        flat = whole.flatten(0, -2)
        results = [torch.mm(flat, each).view(*whole.shape[:-1], -1).movedim(0, gather_dim) for each in weights]
        return (whole.movedim(0, gather_dim) if return_a else None), results

    own = torchs("_fused_all_gather_matmul")
    if own is None:
        return {"all_gather and torch.mm": library}

    def fused(a: Tensor, weights: Sequence[Tensor]) -> tuple[Tensor | None, list[Tensor]]:
        whole, results = own(a, list(weights), gather_dim, group.group_name, return_A=return_a)
        return whole, results

    return {"all_gather and torch.mm": library, TORCHS_OP: fused}


def scatter_ways(reduce_op: str, scatter_dim: int, group: Any) -> dict[str, Way]:
    def library(a: Tensor, weights: Sequence[Tensor]) -> Tensor:
        return _scattered(torch.matmul(a, weights[0]), reduce_op, scatter_dim, group)

    own = torchs("_fused_matmul_reduce_scatter")
    if own is None:
        return {"torch.mm and reduce_scatter": library}
    return {
        "torch.mm and reduce_scatter": library,
        TORCHS_OP: lambda a, weights: own(a, weights[0], reduce_op, scatter_dim, group.group_name),
    }


def reduce_ways(reduce_op: str, group: Any) -> dict[str, Way]:
    kind = dist.ReduceOp.AVG if reduce_op == "avg" else dist.ReduceOp.SUM

    def library(a: Tensor, weights: Sequence[Tensor]) -> Tensor:
        result = torch.matmul(a, weights[0])
        dist.all_reduce(result, op=kind, group=group)
        return result

    return {"torch.mm and all_reduce": library}


# Of scaled matmuls, a way takes the scale of the left operand and those of the weights after the weights.


def scaled_gather_ways(
    gather_dim: int, group: Any, rowwise: bool, dtypes: Sequence[torch.dtype | None], fast: Sequence[bool]
) -> dict[str, Way]:
    count = len(dtypes)

    def library(a: Tensor, others: Sequence[Tensor]) -> tuple[Tensor, list[Tensor]]:
        weights, scale, scales = others[:count], others[count], others[count + 1 :]
        whole = _gathered(a, gather_dim, group)
        of_rows = _gathered(scale, gather_dim, group).flatten(0, -2) if rowwise else scale
        flat = whole.flatten(0, -2)
        results = [
            torch._scaled_mm(flat, weight, of_rows, own, out_dtype=dtype, use_fast_accum=is_fast)
            .view(*whole.shape[:-1], -1)
            .movedim(0, gather_dim)
            for weight, own, dtype, is_fast in zip(weights, scales, dtypes, fast)
        ]
        return whole.movedim(0, gather_dim), results

    own = torchs("_fused_all_gather_scaled_matmul")
    if own is None:
        return {"all_gather and _scaled_mm": library}

    def fused(a: Tensor, others: Sequence[Tensor]) -> tuple[Tensor, list[Tensor]]:
        scales, none = list(others[count + 1 :]), [None] * count
        matmuls = (none, none, list(dtypes), list(fast))
        gathered: tuple[Tensor, list[Tensor]] = own(
            a, list(others[:count]), others[count], scales, gather_dim, group.group_name, *matmuls
        )
        return gathered

    return {"all_gather and _scaled_mm": library, TORCHS_OP: fused}


def scaled_scatter_ways(
    reduce_op: str, scatter_dim: int, group: Any, dtype: torch.dtype | None, fast: bool
) -> dict[str, Way]:
    def library(a: Tensor, others: Sequence[Tensor]) -> Tensor:
        b, scale, own = others
        of_rows = scale.flatten(0, -2) if scale.numel() > 1 else scale
        product = torch._scaled_mm(a.flatten(0, -2), b, of_rows, own, out_dtype=dtype, use_fast_accum=fast)
        return _scattered(product.view(*a.shape[:-1], -1), reduce_op, scatter_dim, group)

    own_op = torchs("_fused_scaled_matmul_reduce_scatter")
    if own_op is None:
        return {"_scaled_mm and reduce_scatter": library}

    def fused(a: Tensor, others: Sequence[Tensor]) -> Tensor:
        # It changes the list of the shape.
        shape = [*a.shape[:-1], others[0].shape[1]]
        places = (reduce_op, scatter_dim, scatter_dim, group.group_name, shape, None, None, dtype, fast)
        result: Tensor = own_op(a, *others, *places)
        return result

    return {"_scaled_mm and reduce_scatter": library, TORCHS_OP: fused}


def _gathered(part: Tensor, gather_dim: int, group: Any) -> Tensor:
    """With the gathered axis first."""
    rows = (part if gather_dim == 0 else part.movedim(gather_dim, 0)).contiguous()
    whole = rows.new_empty(rows.shape[0] * dist.get_world_size(group), *rows.shape[1:])
    # Not every version of the library has floats of 8 bits.
    sent, received = (rows.view(torch.uint8), whole.view(torch.uint8)) if rows.itemsize == 1 else (rows, whole)
    dist.all_gather_into_tensor(received, sent, group=group)
    return whole


def _scattered(partial: Tensor, reduce_op: str, scatter_dim: int, group: Any) -> Tensor:
    partial = partial.movedim(scatter_dim, 0).contiguous()
    part = partial.new_empty(partial.shape[0] // dist.get_world_size(group), *partial.shape[1:])
    kind = dist.ReduceOp.AVG if reduce_op == "avg" else dist.ReduceOp.SUM
    dist.reduce_scatter_tensor(part, partial, op=kind, group=group)
    return part.movedim(0, scatter_dim).contiguous()


def torchs(name: str) -> Callable[..., Any] | None:
    """The Python function behind PyTorch's own op, which stays callable when the op is replaced."""
    from torch.distributed import _symmetric_memory

    return getattr(_symmetric_memory, name, None)
