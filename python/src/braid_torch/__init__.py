"""Runs the plans that `braid compile` writes, in a process of PyTorch. docs/pytorch.md of Braid has an example."""

import importlib
import sys
from typing import TYPE_CHECKING, Any

from .plan import Plan, read_plan
from .refusal import Refusal

if TYPE_CHECKING:
    from .torch_install import install
    from .torch_linear import ColumnParallelLinear, RowParallelLinear, column_parallel_linear, row_parallel_linear
    from .torch_ops import all_gather_matmul, choices, matmul_all_reduce, matmul_reduce_scatter
    from .torch_parallelize import block_choices, parallelize
    from .torch_plan import TorchPlan, explain, load

__all__ = [
    "ColumnParallelLinear", "Plan", "Refusal", "RowParallelLinear", "TorchPlan", "all_gather_matmul", "block_choices",
    "choices", "column_parallel_linear", "explain", "install", "load", "matmul_all_reduce", "matmul_reduce_scatter",
    "parallelize", "read_plan", "row_parallel_linear",
]  # fmt: skip

# Where each name is that needs PyTorch.
_MODULES = {
    "torch_install": ("install",),
    "torch_linear": ("ColumnParallelLinear", "RowParallelLinear", "column_parallel_linear", "row_parallel_linear"),
    "torch_ops": ("all_gather_matmul", "choices", "matmul_all_reduce", "matmul_reduce_scatter"),
    "torch_parallelize": ("block_choices", "parallelize"),
    "torch_plan": ("TorchPlan", "explain", "load"),
}


def __getattr__(name: str) -> Any:
    """PyTorch is imported by what needs it: reading plans does not."""
    for module, names in _MODULES.items():
        if name in names:
            try:
                return getattr(importlib.import_module(f".{module}", __name__), name)
            except ModuleNotFoundError as error:
                if error.name != "torch":
                    raise
                what = f"braid_torch.{name} needs PyTorch, which this Python does not have: pip install torch"
                raise ModuleNotFoundError(f"{what} ({sys.executable})", name="torch") from None
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
