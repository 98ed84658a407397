"""Reads the plans that `braid compile` writes. docs/plan.md of Braid has the format."""

from .plan import Plan, read_plan
from .refusal import Refusal

__all__ = ["Plan", "Refusal", "read_plan"]
