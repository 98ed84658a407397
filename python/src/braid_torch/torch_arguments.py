"""The arguments and results of a module as a list of tensors and the form that they make up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from .refusal import Refusal

# Hashable: ("tensor",), ("constant", type, value), ("tuple" or "list", forms) or ("dict", ((key, form), ..)).
Form = tuple[Any, ...]

CONSTANTS = (type(None), bool, int, float, str, torch.dtype, torch.device, torch.Size)
TENSOR: Form = ("tensor",)


def flatten(value: Any) -> tuple[list[Tensor], Form]:
    """Raises Refusal for what is no tensor, number, text, or tuple, list or dict of them: it may have a state."""
    tensors: list[Tensor] = []
    return tensors, _form(value, tensors)


def _form(value: Any, tensors: list[Tensor]) -> Form:
    if isinstance(value, Tensor):
        tensors.append(value)
        return TENSOR
    kind = type(value)
    if kind in CONSTANTS:
        return ("constant", kind, value)
    if kind is tuple or kind is list:
        return (kind.__name__, tuple([_form(each, tensors) for each in value]))
    if kind is dict:
        return ("dict", tuple([(key, _form(each, tensors)) for key, each in value.items()]))
    found = f"an argument or result of type {kind.__module__}.{kind.__qualname__}"
    expected = "tensors, numbers and texts, and tuples, lists and dicts of them"
    raise Refusal("plan-mismatch", "a module's call", found, expected, "nothing: such calls stay as they are")


def rebuild(form: Form, tensors: Sequence[Any]) -> Any:
    return _built(form, iter(tensors))


def _built(form: Form, tensors: Iterator[Any]) -> Any:
    kind = form[0]
    if kind == "tensor":
        return next(tensors)
    if kind == "constant":
        return form[2]
    if kind == "dict":
        return {key: _built(each, tensors) for key, each in form[1]}
    built = [_built(each, tensors) for each in form[1]]
    return tuple(built) if kind == "tuple" else built
