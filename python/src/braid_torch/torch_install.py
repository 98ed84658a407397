"""Replaces PyTorch's two fused ops for every caller, and defines braid::fused_matmul_all_reduce."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from . import torch_ops

# A collected Library would break every later torch.compile.
_libraries: list[torch.library.Library] = []


def install() -> None:
    """
    From now on torch.ops.symm_mem.fused_all_gather_matmul and fused_matmul_reduce_scatter run Braid's plans where these
    are the fastest. Shapes are inferred by PyTorch, as before. A second call does nothing.
    """
    if _libraries:
        return
    import torch.distributed._symmetric_memory  # noqa: F401  (defines the ops)

    replaced = torch.library.Library("symm_mem", "IMPL")
    replaced.impl("fused_all_gather_matmul", _gather, "CUDA", allow_override=True)
    replaced.impl("fused_matmul_reduce_scatter", _scatter, "CUDA", allow_override=True)
    own = torch.library.Library("braid", "DEF")
    own.define("fused_matmul_all_reduce(Tensor A, Tensor B, str reduce_op, str group_name) -> Tensor")
    own.impl("fused_matmul_all_reduce", torch_ops.matmul_all_reduce, "CUDA")
    own.impl("fused_matmul_all_reduce", _reduced_shape, "Meta")
    _libraries.extend((replaced, own))


def _gather(a: Tensor, weights: list[Tensor], gather_dim: int, group_name: str, *, return_A: bool = True) -> Any:  # noqa: N803
    return torch_ops.all_gather_matmul(a, weights, gather_dim, group_name, return_A)


def _scatter(a: Tensor, b: Tensor, reduce_op: str, scatter_dim: int, group_name: str) -> Tensor:
    return torch_ops.matmul_reduce_scatter(a, b, reduce_op, scatter_dim, group_name)


def _reduced_shape(a: Tensor, b: Tensor, reduce_op: str, group_name: str) -> Tensor:
    return a.new_empty((*a.shape[:-1], b.shape[1]))
