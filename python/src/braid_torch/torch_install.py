"""Replaces PyTorch's four fused ops for every caller, and defines braid::fused_matmul_all_reduce."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from . import torch_ops

# A collected Library would break every later torch.compile.
_libraries: list[torch.library.Library] = []


def install() -> None:
    """
    From now on torch.ops.symm_mem.fused_all_gather_matmul and fused_matmul_reduce_scatter, and the two with scales, run
    Braid's plans where these are the fastest. Shapes are inferred by PyTorch, as before. A second call does nothing.
    """
    if _libraries:
        return
    import torch.distributed._symmetric_memory  # noqa: F401  (defines the ops)

    replaced = torch.library.Library("symm_mem", "IMPL")
    replaced.impl("fused_all_gather_matmul", _gather, "CUDA", allow_override=True)
    replaced.impl("fused_matmul_reduce_scatter", _scatter, "CUDA", allow_override=True)
    replaced.impl("fused_all_gather_scaled_matmul", _scaled_gather, "CUDA", allow_override=True)
    replaced.impl("fused_scaled_matmul_reduce_scatter", _scaled_scatter, "CUDA", allow_override=True)
    own = torch.library.Library("braid", "DEF")
    own.define("fused_matmul_all_reduce(Tensor A, Tensor B, str reduce_op, str group_name) -> Tensor")
    own.impl("fused_matmul_all_reduce", torch_ops.matmul_all_reduce, "CUDA")
    own.impl("fused_matmul_all_reduce", _reduced_shape, "Meta")
    _libraries.extend((replaced, own))


def _gather(a: Tensor, weights: list[Tensor], gather_dim: int, group_name: str, *, return_A: bool = True) -> Any:  # noqa: N803
    return torch_ops.all_gather_matmul(a, weights, gather_dim, group_name, return_A)


def _scatter(a: Tensor, b: Tensor, reduce_op: str, scatter_dim: int, group_name: str) -> Tensor:
    return torch_ops.matmul_reduce_scatter(a, b, reduce_op, scatter_dim, group_name)


# In the order and by the names of PyTorch's schemas. Biases and scales of results are left to PyTorch.


def _scaled_gather(
    A: Tensor,  # noqa: N803
    Bs: list[Tensor],  # noqa: N803
    A_scale: Tensor,  # noqa: N803
    B_scales: list[Tensor],  # noqa: N803
    gather_dim: int,
    group_name: str,
    biases: list[Tensor | None],
    result_scales: list[Tensor | None],
    out_dtypes: list[Any],
    use_fast_accum: list[bool],
) -> tuple[Tensor, list[Tensor]]:
    from torch.distributed import _symmetric_memory as own

    counts = {len(each) for each in (Bs, B_scales, biases, result_scales, out_dtypes, use_fast_accum)}
    replicated = A_scale.numel() > 1 and A_scale.shape != (*A.shape[:-1], 1)
    if len(counts) > 1 or replicated or any(each is not None for each in (*biases, *result_scales)):
        fused = own._fused_all_gather_scaled_matmul
        places = (gather_dim, group_name, biases, result_scales, out_dtypes, use_fast_accum)
        left: Any = fused(A, Bs, A_scale, B_scales, *places)
        return left
    # A list of dtypes arrives as numbers.
    dtypes = own._maybe_convert_scalar_types_to_dtypes(out_dtypes)
    how = (gather_dim, group_name, dtypes, use_fast_accum)
    return torch_ops.all_gather_scaled_matmul(A, Bs, A_scale, B_scales, *how)


def _scaled_scatter(
    A: Tensor,  # noqa: N803
    B: Tensor,  # noqa: N803
    A_scale: Tensor,  # noqa: N803
    B_scale: Tensor,  # noqa: N803
    reduce_op: str,
    orig_scatter_dim: int,
    scatter_dim_after_maybe_reshape: int,
    group_name: str,
    output_shape: list[int] | None,
    bias: Tensor | None = None,
    result_scale: Tensor | None = None,
    out_dtype: torch.dtype | None = None,
    use_fast_accum: bool = False,
) -> Tensor:
    shape = [*A.shape[:-1], B.shape[1]] if output_shape is None else output_shape
    if bias is not None or result_scale is not None:
        from torch.distributed._symmetric_memory import _fused_scaled_matmul_reduce_scatter as fused

        places = (reduce_op, orig_scatter_dim, scatter_dim_after_maybe_reshape, group_name, shape)
        left: Any = fused(A, B, A_scale, B_scale, *places, bias, result_scale, out_dtype, use_fast_accum)
        return left
    # The caller may have flattened the rows.
    rows = tuple(shape[:-1])
    scale = A_scale.view(*rows, 1) if A_scale.numel() > 1 else A_scale
    how = (reduce_op, orig_scatter_dim, group_name, out_dtype, use_fast_accum)
    return torch_ops.scaled_matmul_reduce_scatter(A.view(*rows, A.shape[-1]), B, scale, B_scale, *how)


def _reduced_shape(a: Tensor, b: Tensor, reduce_op: str, group_name: str) -> Tensor:
    return a.new_empty((*a.shape[:-1], b.shape[1]))
