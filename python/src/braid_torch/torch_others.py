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
    size = dist.get_world_size(group)

    def library(a: Tensor, weights: Sequence[Tensor]) -> tuple[Tensor | None, list[Tensor]]:
        rows = (a if gather_dim == 0 else a.movedim(gather_dim, 0)).contiguous()
        whole = rows.new_empty(rows.shape[0] * size, *rows.shape[1:])
        dist.all_gather_into_tensor(whole, rows, group=group)
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
    size = dist.get_world_size(group)
    kind = dist.ReduceOp.AVG if reduce_op == "avg" else dist.ReduceOp.SUM

    def library(a: Tensor, weights: Sequence[Tensor]) -> Tensor:
        partial = torch.matmul(a, weights[0]).movedim(scatter_dim, 0).contiguous()
        part = partial.new_empty(partial.shape[0] // size, *partial.shape[1:])
        dist.reduce_scatter_tensor(part, partial, op=kind, group=group)
        return part.movedim(0, scatter_dim).contiguous()

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


def torchs(name: str) -> Callable[..., Any] | None:
    """The Python function behind PyTorch's own op, which stays callable when the op is replaced."""
    from torch.distributed import _symmetric_memory

    return getattr(_symmetric_memory, name, None)
