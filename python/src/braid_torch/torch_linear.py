"""
Tensor-parallel linear layers with sequence parallelism: rows of activations are sharded over the ranks between the
layers. The backward passes hide their communication too, and copy nothing to transpose it.

    column-parallel, w [N/R, K]:  y = gather(x) w^T      dx = scatter(dy w)     dw = dy^T gather(x)
    row-parallel, w [N, K/R]:     y = scatter(x w^T)     dx = gather(dy) w      dw = gather(dy)^T x
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory  # defines the ops that torch.compile sees
from torch import Tensor, nn

from .torch_ops import all_gather_matmul, matmul_reduce_scatter


def column_parallel_linear(x: Tensor, weight: Tensor, group_name: str) -> Tensor:
    """`x` [rows / R, .., K], `weight` [N / R, K]; the result is [rows, .., N / R]."""
    result: Tensor = _Column.apply(*_autocast(x, weight), group_name)
    return result


def row_parallel_linear(x: Tensor, weight: Tensor, group_name: str) -> Tensor:
    """`x` [rows, .., K / R], `weight` [N, K / R]; the result is [rows / R, .., N]."""
    result: Tensor = _Row.apply(*_autocast(x, weight), group_name)
    return result


def _autocast(x: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """As nn.Linear under torch.autocast."""
    if not torch.is_autocast_enabled("cuda"):
        return x, weight
    dtype = torch.get_autocast_dtype("cuda")
    return x.to(dtype), weight.to(dtype)


class _Column(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, group_name: str) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.group_name = group_name
        _, (result,) = _gather_matmul(x, weight.t(), group_name, False)
        return result

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        x, weight = ctx.saved_tensors
        wants_x, wants_weight, _ = ctx.needs_input_grad
        gradient = gradient.contiguous()
        gathered = _gather(x, ctx.group_name) if wants_weight else None
        # The gather runs meanwhile.
        dx = _matmul_scatter(gradient, weight, ctx.group_name) if wants_x else None
        dw = None if gathered is None else _weight_gradient(weight, gradient, gathered())
        return dx, dw, None


class _Row(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, group_name: str) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.group_name = group_name
        return _matmul_scatter(x, weight.t(), group_name)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        x, weight = ctx.saved_tensors
        wants_weight = ctx.needs_input_grad[1]
        # One gather for both gradients.
        whole, (dx,) = _gather_matmul(gradient.contiguous(), weight, ctx.group_name, wants_weight)
        dw = _weight_gradient(weight, whole, x) if wants_weight and whole is not None else None
        return dx, dw, None


def _gather_matmul(x: Tensor, weight: Tensor, group_name: str, return_a: bool) -> tuple[Tensor | None, list[Tensor]]:
    if torch.compiler.is_compiling():
        # Dynamo cannot trace the choice of a plan. It keeps the op, which install() replaces.
        fused = torch.ops.symm_mem.fused_all_gather_matmul
        return fused(x, [weight], 0, group_name, return_A=return_a)  # type: ignore[no-any-return]
    return all_gather_matmul(x, [weight], 0, group_name, return_a)


def _matmul_scatter(x: Tensor, weight: Tensor, group_name: str) -> Tensor:
    if torch.compiler.is_compiling():
        fused = torch.ops.symm_mem.fused_matmul_reduce_scatter
        return fused(x, weight, "sum", 0, group_name)  # type: ignore[no-any-return]
    return matmul_reduce_scatter(x, weight, "sum", 0, group_name)


def _gather(x: Tensor, group_name: str) -> Callable[[], Tensor]:
    """Begins to gather the rows by the library. The result waits for them, and returns them."""
    own = x.contiguous()
    if torch.compiler.is_compiling():
        functional, size = torch.ops._c10d_functional, dist.distributed_c10d._get_group_size_by_name(group_name)
        pending = functional.all_gather_into_tensor(own, size, group_name)
        return lambda: functional.wait_tensor(pending)  # type: ignore[no-any-return]
    group = dist.distributed_c10d._resolve_process_group(group_name)
    whole = own.new_empty(own.shape[0] * dist.get_world_size(group), *own.shape[1:])
    work = dist.all_gather_into_tensor(whole, own, group=group, async_op=True)

    def gathered() -> Tensor:
        work.wait()
        return whole

    return gathered


def _weight_gradient(weight: Tensor, rows: Tensor, columns: Tensor) -> Tensor | None:
    """rows^T columns. In float32, and added to weight.main_grad, for a weight that has one, as in Megatron."""
    left, right = rows.flatten(0, -2).t(), columns.flatten(0, -2)
    main = getattr(weight, "main_grad", None)
    if main is None:
        return torch.mm(left, right)
    main.add_(torch.mm(left, right, out_dtype=main.dtype) if left.dtype != main.dtype else torch.mm(left, right))
    return None


class _Linear(nn.Module):
    """This rank's part of an nn.Linear(inputs, outputs), initialized as that is, but by other numbers. No bias."""

    def __init__(self, inputs: int, outputs: int, divided: int, axis: int, group: Any, options: dict[str, Any]) -> None:
        super().__init__()
        group = dist.group.WORLD if group is None else group
        size = dist.get_world_size(group)
        if divided % size:
            raise ValueError(f"features: found {divided}, expected a multiple of the {size} ranks")
        self.group_name: str = group.group_name
        shape = [outputs, inputs]
        shape[axis] //= size
        self.weight = nn.Parameter(torch.empty(*shape, **options))
        if not self.weight.is_meta:
            _initialize(self.weight, 1 / math.sqrt(inputs), dist.get_rank(group))

    def extra_repr(self) -> str:
        return f"{self.weight.shape[1]} to {self.weight.shape[0]} features on each rank"


def _initialize(weight: Tensor, bound: float, rank: int) -> None:
    """
    Draws from a generator of the rank. Programs seed all ranks alike, and shards with the same values would compute the
    same on every rank, for ever.
    """
    seed = int(torch.randint(2**62, ())) + rank
    generator = torch.Generator(weight.device).manual_seed(seed)
    with torch.no_grad():
        weight.uniform_(-bound, bound, generator=generator)


class ColumnParallelLinear(_Linear):
    """Each rank has outputs / R of the features: [rows / R, .., inputs] to [rows, .., outputs / R]."""

    def __init__(self, inputs: int, outputs: int, group: Any = None, **options: Any) -> None:
        """`options`: dtype and device of the weight."""
        super().__init__(inputs, outputs, outputs, 0, group, options)

    def forward(self, x: Tensor) -> Tensor:
        return column_parallel_linear(x, self.weight, self.group_name)


class RowParallelLinear(_Linear):
    """Each rank takes inputs / R of the features: [rows, .., inputs / R] to [rows / R, .., outputs]."""

    def __init__(self, inputs: int, outputs: int, group: Any = None, **options: Any) -> None:
        """`options`: dtype and device of the weight."""
        super().__init__(inputs, outputs, inputs, 1, group, options)

    def forward(self, x: Tensor) -> Tensor:
        return row_parallel_linear(x, self.weight, self.group_name)
