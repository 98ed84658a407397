"""Runs the plans that `braid compile` writes, in a process of PyTorch. docs/pytorch.md of Braid has an example."""

from typing import TYPE_CHECKING, Any

from .plan import Plan, read_plan
from .refusal import Refusal

if TYPE_CHECKING:
    from .torch_plan import TorchPlan, explain, load

__all__ = ["Plan", "Refusal", "TorchPlan", "explain", "load", "read_plan"]


def __getattr__(name: str) -> Any:
    """PyTorch is imported by what needs it: reading plans does not."""
    if name in ("TorchPlan", "explain", "load"):
        from . import torch_plan

        return getattr(torch_plan, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
