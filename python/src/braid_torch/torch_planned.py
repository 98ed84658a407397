"""
A module's call by plans: one for the forward pass and, where gradients are wanted, one for the backward pass. What
the backward plan reads of the forward pass belongs to the call, so that several calls may be under way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.distributed._functional_collectives import AsyncCollectiveTensor
from torch.distributed.tensor import DTensor

from .refusal import Refusal
from .torch_arguments import TENSOR, Form, rebuild
from .torch_plan import ALIGNMENT, TorchPlan

# Of the cotangents among the inputs of a backward plan.
COTANGENT = "braid_cotangent"


@dataclass(frozen=True)
class Planned:
    """
    Positions count the tensors that a call is given: its arguments, then the parameters and buffers of the module.
    """

    forward: TorchPlan
    backward: TorchPlan | None
    # The given tensors that the forward plan reads, in its order.
    read: tuple[int, ...]
    # How many of its outputs the caller gets, and as what.
    returned: int
    form: Form
    # Of each output that is a DTensor, its mesh and placements.
    wraps: tuple[Any, ...]
    # The given tensors and the outputs of the forward plan that the backward plan reads.
    kept_given: tuple[int, ...] = ()
    kept_outputs: tuple[int, ...] = ()
    # Where each input of the backward plan is: ("saved", among both of these in this order) or ("cotangent", output).
    sources: tuple[tuple[str, int], ...] = ()
    # By given tensor: the position of its gradient among the outputs of the backward plan.
    gradients: tuple[int | None, ...] = ()
    # By given tensor: whether it is complex, and whether it is a parameter.
    complex: tuple[bool, ...] = ()
    parameters: tuple[bool, ...] = ()

    def __call__(self, given: Sequence[Tensor]) -> Any:
        results = _Call.apply(self, *given) if self.backward is not None else self.run(given)[: self.returned]
        if self.form == TENSOR and self.wraps[0] is None:
            return results[0]
        made = [
            each if wrap is None else DTensor.from_local(each, *wrap, run_check=False)
            for each, wrap in zip(results, self.wraps)
        ]
        return rebuild(self.form, made)

    def run(self, given: Sequence[Tensor]) -> tuple[Tensor, ...]:
        return _tuple(self.forward(*[_operand(given[position]) for position in self.read]))


class _Call(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, planned: Planned, *given: Tensor) -> tuple[Tensor, ...]:
        results = planned.run(given)
        ctx.planned = planned
        # Parameters alone: an argument is kept by what reads it, or by nobody.
        ctx.parameters = [each if is_own else None for each, is_own in zip(given, planned.parameters)]
        ctx.set_materialize_grads(False)
        kept = [results[position] for position in planned.kept_outputs]
        ctx.save_for_backward(*[given[position] for position in planned.kept_given], *kept)
        return results[: planned.returned]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *cotangents: Tensor | None) -> tuple[Tensor | None, ...]:
        planned: Planned = ctx.planned
        backward, saved = planned.backward, ctx.saved_tensors
        assert backward is not None
        inputs = [
            _operand(saved[position]) if kind == "saved" else _cotangent(planned, position, cotangents[position])
            for kind, position in planned.sources
        ]
        found = _tuple(backward(*inputs))
        wanted = ctx.needs_input_grad[1:]
        gradients = [
            None if position is None or not wants else _gradient(parameter, found[position], is_complex)
            for parameter, position, wants, is_complex in zip(ctx.parameters, planned.gradients, wanted, planned.complex)
        ]
        return None, *gradients


def _tuple(results: Any) -> tuple[Tensor, ...]:
    return results if isinstance(results, tuple) else (results,)


def local(tensor: Tensor) -> Tensor:
    """This rank's part. A collective's result that nobody has waited for has no address of its own."""
    part = tensor._local_tensor if isinstance(tensor, DTensor) else tensor
    return part.trigger_wait() if isinstance(part, AsyncCollectiveTensor) else part


def _operand(tensor: Tensor) -> Tensor:
    """As plans take it: by rows, aligned, and real."""
    own = local(tensor)
    if own.is_complex():
        own = torch.view_as_real(own)
    if not own.is_contiguous():
        own = own.contiguous()
    if own.data_ptr() % ALIGNMENT:
        own = own.clone()
    # Plans take no tensors that require gradients, where these are on.
    return own.detach() if own.requires_grad and torch.is_grad_enabled() else own


def _cotangent(planned: Planned, position: int, given: Tensor | None) -> Tensor:
    if given is not None:
        return _operand(given)
    shard = planned.forward.outputs[position]
    assert shard is not None
    return torch.zeros(shard.shape, dtype=shard.dtype, device=f"cuda:{planned.forward.device}")


def _gradient(like: Tensor | None, gradient: Tensor, is_complex: bool) -> Tensor | None:
    """Placed like its tensor. Added to main_grad for a parameter that has one, as in Megatron."""
    main = getattr(like, "main_grad", None)
    if main is not None:
        local(main).add_(gradient)
        return None
    if is_complex:
        gradient = torch.view_as_complex(gradient)
    return _wrapped(gradient, like) if isinstance(like, DTensor) else gradient


def _wrapped(part: Tensor, like: DTensor) -> Tensor:
    """A DTensor of this part, as from_local makes it, at a fraction of its cost."""
    try:
        return DTensor(part, like._spec, requires_grad=False)
    except TypeError:
        mesh, placements = like.device_mesh, like.placements
        return DTensor.from_local(part, mesh, placements, run_check=False, shape=like.shape, stride=like.stride())


def bind(
    forward: TorchPlan,
    backward: TorchPlan | None,
    names: Sequence[str],
    given: Sequence[Tensor],
    outputs: int,
    form: Form,
    wraps: Sequence[Any],
) -> Planned:
    """`names`: of the given tensors in the file. Raises Refusal if a plan takes what is not given."""
    places = {name: position for position, name in enumerate(names)}
    documents = [forward.runner.plan.document, *([] if backward is None else [backward.runner.plan.document])]
    inputs = [[each["named"] for each in document["inputs"]] for document in documents]
    made = {each["named"]: position for position, each in enumerate(documents[0]["outputs"])}
    read = tuple(_place(forward, name, places) for name in inputs[0])
    for position, shard in zip(read, forward.inputs):
        part = _operand(given[position])
        if shard is None or tuple(part.shape) != shard.shape or part.dtype != shard.dtype:
            found = f"{names[position]}: {part.dtype} {list(part.shape)}"
            raise Refusal("plan-mismatch", forward.folder, found, str(shard), "shard it evenly over the ranks")
    base = Planned(forward, backward, read, outputs, form, tuple(wraps))
    if backward is None:
        return base
    taken = [name for name in inputs[1] if not _is_cotangent(name)]
    kept_given = [name for name in taken if name not in made]
    kept_outputs = [name for name in taken if name in made]
    order = [*kept_given, *kept_outputs]
    found = {each["named"].removeprefix("grad."): place for place, each in enumerate(documents[1]["outputs"])}
    return Planned(
        forward,
        backward,
        read,
        outputs,
        form,
        tuple(wraps),
        tuple(_place(backward, name, places) for name in kept_given),
        tuple(made[name] for name in kept_outputs),
        tuple(
            ("cotangent", int(name.removeprefix(COTANGENT) or 0))
            if _is_cotangent(name)
            else ("saved", order.index(name))
            for name in inputs[1]
        ),
        tuple(found.get(name) for name in names),
        tuple(each.is_complex() for each in given),
        tuple(isinstance(each, (nn.Parameter, DTensor)) for each in given),
    )


def _is_cotangent(name: str) -> bool:
    return name.startswith(COTANGENT)


def _place(plan: TorchPlan, name: str, places: dict[str, int]) -> int:
    if name in places:
        return places[name]
    raise Refusal("plan-mismatch", plan.folder, f"an input {name}", "arguments, parameters and buffers of the module")
