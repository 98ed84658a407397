"""Runs the plans that `braid compile` writes, in a process of PyTorch. docs/pytorch.md of Braid has an example."""

import importlib
from typing import TYPE_CHECKING, Any

from .plan import Plan, read_plan
from .refusal import Refusal

if TYPE_CHECKING:
    from .torch_install import install
    from .torch_linear import ColumnParallelLinear, RowParallelLinear, column_parallel_linear, row_parallel_linear
    from .torch_ops import all_gather_matmul, choices, matmul_all_reduce, matmul_reduce_scatter
    from .torch_plan import TorchPlan, explain, load

__all__ = [
    "ColumnParallelLinear", "Plan", "Refusal", "RowParallelLinear", "TorchPlan", "all_gather_matmul", "choices",
    "column_parallel_linear", "explain", "install", "load", "matmul_all_reduce", "matmul_reduce_scatter", "read_plan",
    "row_parallel_linear",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """PyTorch is imported by what needs it: reading plans does not."""
    for module in ("torch_install", "torch_linear", "torch_ops", "torch_plan"):
        if name in __all__ and hasattr(found := importlib.import_module(f".{module}", __name__), name):
            return getattr(found, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
