"""A plan as a function of tensors of PyTorch: `plan = load("plan/"); y = plan(x, w)`."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from .dtypes import DTYPES
from .refusal import Refusal
from .run import TIMEOUT, Runner, load_plan
from .session import Session
from .torch_group import group_of

Json = dict[str, Any]

TORCH_DTYPES = {name: getattr(torch, own) for name, (_, own, _) in DTYPES.items()}
ALIGNMENT = 16

# By name of the process group and GPU.
_sessions: dict[tuple[str, int], Session] = {}
_loaded: list[TorchPlan] = []


def load(folder: str | Path, group: Any = None, timeout: float = TIMEOUT) -> TorchPlan:
    """
    Reads a plan and prepares it on this rank's current GPU. Collective: all ranks of `group`, a process group of
    PyTorch, call it together; the default is the whole world, or this process alone where there is none.

    `timeout`: seconds until a run whose streams still wait for the same peer ends the process with a report; 0 for
    never. Raises Refusal, a ValueError, on every rank.
    """
    made = TorchPlan(load_plan(session_of(group), folder, timeout))
    _loaded.append(made)
    return made


def session_of(group: Any = None) -> Session:
    """The one of this group and GPU. Collective when it is first asked for."""
    ordinal = torch.cuda.current_device()
    ranks = group_of(group)
    name = getattr(getattr(ranks, "process_group", None), "group_name", "")
    if (name, ordinal) not in _sessions:
        # PyTorch's context first, so that both use the same one.
        torch.cuda.init()
        session = _sessions[name, ordinal] = Session(ranks, ordinal)
        session.gpu.reclaim = torch.cuda.empty_cache
    return _sessions[name, ordinal]


def explain() -> list[Json]:
    """For each loaded plan: how often it ran, by a graph or by calls one after the other, and how often it refused."""
    return [{"plan": each.folder, **vars(each.runner.counts)} for each in _loaded]


@dataclass(frozen=True)
class Shard:
    """What this rank has of an input or output of the program. Strides count elements."""

    role: str
    position: int
    name: str
    dtype: torch.dtype
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.dtype} {list(self.shape)} with strides {list(self.strides)}"


def _shard(tensor: Json) -> Shard:
    shape, strides = tuple(tensor["shape"]), tuple(tensor["strides"])
    return Shard(tensor["role"], tensor["position"], tensor["name"], TORCH_DTYPES[tensor["dtype"]], shape, strides)


class TorchPlan:
    """
    Takes this rank's shard of each input of the program, in its order, and returns this rank's shard of each output: a
    tensor, or a tuple of them. An output that is written over an input is the given tensor itself. `inputs` and
    `outputs` say what shards are; None where this rank has none. Runs are queued on the current stream. All ranks call
    their plans in the same order.

    A tensor that does not fit raises Refusal, a ValueError, on its rank, and on the other ranks in their next call of a
    plan. Nobody waits for ever, and the next call with tensors that fit works.
    """

    def __init__(self, runner: Runner) -> None:
        self.runner, self.folder = runner, runner.folder
        self.device = runner.session.gpu.ordinal
        memory, document = runner.own["memory"], runner.plan.document
        # In the order of the addresses of a run.
        tensors = [each for name in ("in", "out", "copied") for each in memory[name]]
        bound = [_shard(each) for each in tensors]
        own = {(each.role, each.position): each for each in bound}
        # Outputs that a run writes over an input.
        own |= {("output", each["output"]): shard for each, shard in zip(tensors, bound) if "output" in each}
        self.inputs = tuple(own.get(("input", position)) for position in range(len(document["inputs"])))
        self.outputs = tuple(own.get(("output", position)) for position in range(len(document["outputs"])))
        self._taken = [shard for shard in self.inputs if shard is not None]
        self._given = [position for position, shard in enumerate(self.inputs) if shard is not None]
        self._made = [shard for shard in self.outputs if shard is not None and shard.role == "output"]
        # For calls in which all fit. Unless this rank has a shard of every input, `_problem` looks at each call.
        self._layouts_taken = [(each.shape, each.strides, each.dtype) for each in self._taken]
        self._has_all = len(self._taken) == len(self.inputs)
        self._layouts_made = [(each.shape, each.strides, each.dtype) for each in self._made]
        shards = [*self._taken, *self._made]
        # Where the tensors that are given, then those that are made, go among the addresses.
        self.order = [shards.index(each) for each in bound]
        self._is_simple = len(self.outputs) == len(self._made) == 1

    def __call__(self, *inputs: Tensor | None, out: Sequence[Tensor] | Tensor | None = None) -> Any:
        """`out`: tensors for the outputs that this rank has a shard of and no input; new ones otherwise."""
        stream, capturing = raw_stream(self.device), is_capturing()
        taken, problem = self._fitting(inputs), None
        if taken is None:
            problem = self._problem(inputs)
            taken = [] if problem is not None else [inputs[position].data_ptr() for position in self._given]
        made: Sequence[Tensor] = ()
        if problem is None and out is None:
            made = [empty(*layout, self.device) for layout in self._layouts_made]
        elif problem is None and out is not None:
            made = (out,) if isinstance(out, torch.Tensor) else out
            problem = self._misfits(made, self._made, "outputs")
        if problem is not None:
            if not capturing:
                self.runner.refuse(str(problem), stream)
            raise problem
        addresses = [*taken, *[tensor.data_ptr() for tensor in made]]
        self.runner.run(tuple([addresses[place] for place in self.order]), stream, capturing)
        if self._is_simple:
            return made[0]
        results = iter(made)
        return tuple(
            None if shard is None else next(results) if shard.role == "output" else inputs[shard.position]
            for shard in self.outputs
        )

    def _fitting(self, inputs: Sequence[Any]) -> list[int] | None:
        """The addresses of inputs that fit, in most calls at a third of the cost of `_problem`; None to ask that."""
        device, addresses = self.device, []
        if current_device() != device or not self._has_all or len(inputs) != len(self._layouts_taken):
            return None
        needs_gradient = torch.is_grad_enabled()
        try:
            for tensor, (shape, strides, dtype) in zip(inputs, self._layouts_taken):
                require_layout(tensor, shape, strides)
                address = tensor.data_ptr()
                if (
                    tensor.dtype is not dtype
                    or tensor.get_device() != device
                    or address % ALIGNMENT
                    or (needs_gradient and tensor.requires_grad)
                ):
                    return None
                addresses.append(address)
        except (AssertionError, TypeError):
            return None
        return addresses

    def _problem(self, inputs: Sequence[Tensor | None]) -> Refusal | None:
        if current_device() != self.device:
            return self._misfit("the current GPU", f"cuda:{current_device()}", f"cuda:{self.device}")
        if len(inputs) != len(self.inputs):
            return self._misfit("inputs", str(len(inputs)), str(len(self.inputs)))
        given = [inputs[position] for position in self._given]
        problem = self._misfits(given, self._taken, "inputs")
        if problem is None and torch.is_grad_enabled():
            for tensor in given:
                if tensor.requires_grad:
                    expected = "none: call it in an autograd.Function, or under torch.no_grad()"
                    return self._misfit("inputs", "a tensor that requires a gradient", expected)
        return problem

    def _misfits(self, tensors: Sequence[Any], shards: Sequence[Shard], what: str) -> Refusal | None:
        if len(tensors) != len(shards):
            return self._misfit(what, str(len(tensors)), str(len(shards)))
        device = self.device
        for tensor, shard in zip(tensors, shards):
            if not isinstance(tensor, torch.Tensor):
                return self._misfit(shard.name, type(tensor).__name__, str(shard))
            if (
                tensor.shape != shard.shape
                or tensor.dtype is not shard.dtype
                or tensor.get_device() != device
                or not (tensor.stride() == shard.strides or _same_places(tensor, shard))
            ):
                found = f"{tensor.dtype} {list(tensor.shape)} with strides {list(tensor.stride())} on {tensor.device}"
                return self._misfit(shard.name, found, f"{shard} on cuda:{device}")
            if tensor.data_ptr() % ALIGNMENT:
                return self._misfit(shard.name, f"an address that {ALIGNMENT} does not divide", "clone the tensor")
        return None

    def _misfit(self, what: str, found: str, expected: str) -> Refusal:
        fix = "pass this rank's shard as the plan has it: plan.inputs and plan.outputs list the shards"
        return Refusal("plan-mismatch", f"{self.folder}, {what}", found, expected, fix)


def _same_places(tensor: Tensor, shard: Shard) -> bool:
    """Strides of axes of one element do not matter."""
    pairs = zip(shard.shape, tensor.stride(), shard.strides)
    return all(extent == 1 or own == wanted for extent, own, wanted in pairs)


def _fast(module: str, name: str) -> Any:
    """A private function of PyTorch, as Inductor's code calls it; None where it is not there."""
    try:
        return getattr(importlib.import_module(module), name, None)
    except ImportError:
        return None


# The number of the current GPU.
current_device: Callable[[], int] = _fast("torch._C", "_cuda_getDevice") or torch.cuda.current_device
_empty_strided_cuda = _fast("torch._C._dynamo.guards", "_empty_strided_cuda")
is_capturing: Callable[[], bool] = torch.cuda.is_current_stream_capturing


def _stream(device: int) -> int:
    return torch.cuda.current_stream(device).cuda_stream


def _unknown_layout(tensor: Any, shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
    raise AssertionError


raw_stream: Callable[[int], int] = _fast("torch._C", "_cuda_getCurrentRawStream") or _stream
# Raises AssertionError or TypeError for any but a tensor of this shape and strides.
require_layout: Callable[[Any, tuple[int, ...], tuple[int, ...]], None] = (
    _fast("torch._C._dynamo.guards", "assert_size_stride") or _unknown_layout
)


def empty(shape: tuple[int, ...], strides: tuple[int, ...], dtype: torch.dtype, device: int) -> Tensor:
    if _empty_strided_cuda is not None:
        return _empty_strided_cuda(shape, strides, dtype)  # type: ignore[no-any-return]
    return torch.empty_strided(shape, strides, dtype=dtype, device=device)
