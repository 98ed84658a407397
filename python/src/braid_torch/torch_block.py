"""
A module that was parallelized, as its forward: it calls plans where these are right and faster, and what was there
before otherwise. The first call of each shape decides, on all ranks together.
"""

from __future__ import annotations

import contextlib
import copy
import json
import os
import re
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.tensor import DTensor

from .compiled import Model, model_plans
from .group import agree, same
from .refusal import Refusal
from .torch_arguments import Form, flatten, rebuild
from .torch_choice import fastest
from .torch_layouts import WHOLE, placement_of_part, placement_text, watching, whole_shape
from .torch_plan import is_capturing, load, session_of
from .torch_planned import COTANGENT, Planned, bind, local
from .torch_twin import Exported, Whole, export

# "off": everything stays as it is; "always": plans run unless their values are wrong, without being timed; otherwise
# they run where they are right and faster.
SWITCH = "BRAID_PARALLELIZE"
# Calls of a module for which plans are made: a loop with a new length in every step would compile in every step.
MOST_CALLS = 64
# By which plans may differ from what runs today, as a relative norm: both have rounding errors.
BOUNDS = {torch.bfloat16: 0.03, torch.float16: 0.01, torch.float32: 5e-3, torch.float64: 1e-6}
# Of linears in floats of 8 bits: products err by a few percent, and some of them follow each other.
BOUND_OF_FP8 = 0.25
# A plan of the forward pass alone, beside the first one, and the rows from which on it is made.
OVER_DEVICES = "braid, rows over devices"
FEWEST_ROWS = 256
# Of the module in its file.
PREFIX = "module."


@dataclass(frozen=True)
class Settings:
    """Of a whole model."""

    mesh: Any
    save: str | int
    fp8: str | None = None

    @property
    def group(self) -> Any:
        return self.mesh.get_group()


@dataclass
class Choice:
    """What runs for a call, and why."""

    call: str
    runs: str
    reason: str
    planned: Planned | None = None
    # By what was compared and timed.
    error: float | None = None
    microseconds: dict[str, float] = field(default_factory=dict)


# By contents of plans: equal modules share one.
_shared: dict[str, Choice] = {}
_told: set[str] = set()


class _Last:
    """The call before, which most calls are like: to see that takes a fifth of the time of looking a choice up."""

    def __init__(
        self, planned: Planned, training: bool, form: Form, gradients: bool, tensors: list[Tensor], own: list[Tensor]
    ) -> None:
        self.planned, self._mode, self._form = planned, (training, gradients), form
        self._arguments = [(type(each), each.shape, each.dtype, each.requires_grad) for each in tensors]
        self._own, self._wanted = own, [(each.dtype, each.requires_grad) for each in own]

    def fits(self, module: nn.Module, form: Form, gradients: bool, tensors: list[Tensor], own: list[Tensor]) -> bool:
        if self._mode != (module.training, gradients) or self._form != form:
            return False
        for each, (kind, shape, dtype, wanted) in zip(tensors, self._arguments):
            if type(each) is not kind or each.dtype is not dtype or each.requires_grad is not wanted or each.shape != shape:
                return False
        for each, known, (dtype, wanted) in zip(own, self._own, self._wanted):
            if each is not known or each.dtype is not dtype or each.requires_grad is not wanted:
                return False
        return len(own) == len(self._own)


class Block:
    """The forward of one module."""

    def __init__(self, module: nn.Module, path: str, twin: nn.Module | str, settings: Settings) -> None:
        # A text instead of a twin says why there is none.
        self.module, self.path, self.twin, self.settings = module, path, twin, settings
        self.choices: dict[Any, Choice] = {}
        self._own_forward = module.__dict__.get("forward")
        self._slots: list[tuple[dict[str, Any], str]] | None = None
        self._last: _Last | None = None
        self._names: list[str] = []

    def __deepcopy__(self, memo: dict[int, Any]) -> Block:
        made = Block.__new__(Block)
        made.__dict__.update(self.__dict__)
        made.module, made._slots, made._last = copy.deepcopy(self.module, memo), None, None
        return made

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        # The wrapper of `disable` takes as long as a launch.
        return self._run_uncompiled(args, kwargs) if torch.compiler.is_compiling() else self._run(args, kwargs)

    @torch.compiler.disable
    def _run_uncompiled(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self._run(args, kwargs)

    def _run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        try:
            tensors, form = flatten((args, kwargs))
        except Refusal as refusal:
            self._tell(refusal.found)
            return self.today(args, kwargs)
        own = self._tensors()
        gradients = torch.is_grad_enabled()
        last = self._last
        if last is not None and last.fits(self.module, form, gradients, tensors, own):
            return last.planned([*tensors, *own])
        key = (
            form,
            tuple([(each.shape, each.dtype, gradients and each.requires_grad, isinstance(each, DTensor)) for each in tensors]),
            self.module.training,
            tuple([(each.dtype, each.requires_grad) for each in own]) if gradients else own and own[0].dtype,
        )
        choice = self.choices.get(key)
        if choice is None:
            choice = self._choose(key, tensors, own, form)
            if choice is None:
                return self.today(args, kwargs)
        if choice.planned is None:
            return self.today(args, kwargs)
        self._last = _Last(choice.planned, self.module.training, form, gradients, tensors, own)
        return choice.planned([*tensors, *own])

    def today(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What runs without Braid."""
        if self._own_forward is not None:
            return self._own_forward(*args, **kwargs)
        return type(self.module).forward(self.module, *args, **kwargs)

    def _tensors(self) -> list[Tensor]:
        """Parameters and buffers, which other wrappers may have replaced since the last call."""
        if self._slots is None:
            self._slots, self._names, seen = [], [], set()
            for kind in ("_parameters", "_buffers"):
                for path, each in self.module.named_modules():
                    for name, tensor in getattr(each, kind).items():
                        if tensor is not None and id(tensor) not in seen:
                            seen.add(id(tensor))
                            self._slots.append((getattr(each, kind), name))
                            self._names.append(f"{PREFIX}{path}.{name}" if path else f"{PREFIX}{name}")
        return [slots[name] for slots, name in self._slots]

    def _choose(self, key: Any, tensors: list[Tensor], own: list[Tensor], form: Form) -> Choice | None:
        """Collective. None for a call that is not decided now."""
        obstacle = self._obstacle(tensors, own)
        if obstacle is not None:
            self._tell(obstacle)
            return None
        call = ", ".join(f"{str(each.dtype).removeprefix('torch.')}{list(each.shape)}" for each in tensors)
        call += " with gradients" if torch.is_grad_enabled() else ""
        ranks = session_of(self.settings.group).group
        same(ranks, f"the call of {self.path}", f"{call} {form}", "call the model with the same shapes on all ranks")
        try:
            choice = self._decided(call, tensors, own, form)
        except TimeoutError:
            raise
        except Exception as error:  # noqa: BLE001  (of all ranks together, by `agree`)
            choice = Choice(call, "today", _line(error))
        if choice.planned is None:
            self._tell(f"{choice.reason} ({call})")
        self.choices[key] = choice
        return choice

    def _obstacle(self, tensors: Sequence[Tensor], own: Sequence[Tensor]) -> str | None:
        """Known without running anything, and alike on all ranks."""
        if isinstance(self.twin, str):
            return self.twin
        if not any(isinstance(each, DTensor) for each in own):
            return "none of its parameters is sharded"
        if not all(local(each).is_cuda for each in (*tensors, *own)):
            return "plans are for GPUs, and its tensors are elsewhere"
        if torch.is_autocast_enabled("cuda"):
            return "torch.autocast is on: convert the model to bfloat16 instead"
        if is_capturing():
            return "its first call is inside a capture: call it once before"
        if len(self.choices) >= MOST_CALLS:
            return f"it was called with {MOST_CALLS} other shapes: pad to fewer lengths"
        return None

    def _decided(self, call: str, tensors: list[Tensor], own: list[Tensor], form: Form) -> Choice:
        self._require_no_dropout()
        with _apart(own[len(list(self.module.parameters())) :]):
            parts, results_form, wraps, placements = self._observed(tensors, form)
            made = self._plans(call, tensors, own, form, placements, parts)
            if made["key"] in _shared:
                return _shared[made["key"]]
            names = [*made["arguments"], *self._names]
            ranks = session_of(self.settings.group).group
            planned: dict[str, Planned] = {}
            for kind, folders in made["folders"].items():

                def bound(plans: Sequence[Any]) -> Planned:
                    backward = plans[1] if len(plans) > 1 else None
                    return bind(plans[0], backward, names, [*tensors, *own], len(parts), results_form, wraps)

                # Refused on all ranks or on none; without the second one there is the first.
                with contextlib.suppress(*([] if kind == "braid" else [Refusal])):
                    plans = [load(folder, self.settings.group) for folder in folders]
                    planned[kind] = agree(ranks, f"binding the plans of {self.path}", lambda: bound(plans))
            choice = _shared[made["key"]] = self._compared(call, planned, tensors, own, form)
            return choice

    def _require_no_dropout(self) -> None:
        """Known before anything is exported."""
        for path, each in self.module.named_modules():
            if isinstance(each, nn.modules.dropout._DropoutNd) and each.training and each.p > 0:
                found = f"dropout in training, in {path or 'the module itself'}"
                raise Refusal("export-failed", self.path, found, "no dropout, or p = 0", "nothing is wrong: it runs as before")

    def _observed(self, tensors: list[Tensor], form: Form) -> tuple[list[Tensor], Form, list[Any], list[str]]:
        """A run as it is today: its results, and how its arguments lie on the ranks."""
        given = [each.detach().requires_grad_(each.requires_grad) for each in tensors]
        with watching(self.module) as seen, torch.no_grad():
            args, kwargs = rebuild(form, given)
            results, results_form = flatten(self.today(args, kwargs))
        wraps = [(each.device_mesh, each.placements) if isinstance(each, DTensor) else None for each in results]
        placements = [seen.of(each, f"{self.path}, argument {i}") for i, each in enumerate(given)]
        return results, results_form, wraps, placements

    def _plans(
        self,
        call: str,
        tensors: list[Tensor],
        own: list[Tensor],
        form: Form,
        placements: list[str],
        parts: list[Tensor],
    ) -> Any:
        """
        Collective: rank 0 exports and compiles. The folders of plans by what they are called, and the names of the
        arguments in the file.
        """
        session = session_of(self.settings.group)
        ranks, size = session.group, session.group.size

        def make() -> str:
            if ranks.rank != 0:
                return ""
            wholes = [Whole(whole_shape(each, place, size), each.dtype) for each, place in zip(tensors, placements)]
            with tempfile.TemporaryDirectory(prefix="braid-export-") as folder:
                kept = os.environ.get("BRAID_EXPORTS", "")
                file = Path(kept or folder) / f"{type(self.module).__name__}-{len(_shared)}-{len(self.choices)}.pt2"
                device = local(own[0]).device.type
                assert isinstance(self.twin, nn.Module)
                exported = export(self.twin, self.module, form, wholes, file, device)
                lines = self._sharding(exported, own, placements, parts, size)
                halves = _halves(exported, self._wanted(exported, tensors, own), self.settings.save)

                def plans(lines: dict[str, Any]) -> list[str]:
                    model = Model(exported.file, exported.digest, json.dumps(lines))
                    return [str(each) for each in model_plans(type(self.module).__name__, model, halves, session.gpu, size)]

                folders = {"braid": plans(lines)}
                shared = None if len(halves) > 1 else over_devices(lines, exported.outputs, size)
                if shared is not None:
                    # Where rows or heads do not divide, there is the first one.
                    with contextlib.suppress(Refusal):
                        folders[OVER_DEVICES] = plans(shared)
            made = {"folders": folders, "arguments": exported.arguments}
            return json.dumps({"key": json.dumps(made), **made})

        text = agree(ranks, f"compiling {self.path}", make)
        return json.loads(ranks.all_gather(text.encode())[0])

    def _sharding(
        self, exported: Exported, own: list[Tensor], placements: list[str], parts: list[Tensor], size: int
    ) -> dict[str, Any]:
        """How the tensors of the file lie on the ranks, as a sharding plan of Braid."""
        lines: dict[str, Any] = {"mesh": {"tp": size}, **({"fp8": self.settings.fp8} if self.settings.fp8 else {})}
        for name, tensor in zip(self._names, own):
            if isinstance(tensor, DTensor) and name in exported.used:
                place = placement_text(tensor.placements, name)
                if place != WHOLE:
                    lines[name] = [place]
        lines["inputs"] = {name: [place] for name, place in zip(exported.arguments, placements)}
        outputs = ["y"] if len(parts) == 1 else [f"out{i}" for i in range(len(parts))]
        lines["outputs"] = {
            name: [placement_of_part(local(part).shape, whole, size, f"{self.path}, result {name}")]
            for name, part, whole in zip(outputs, parts, exported.outputs)
        }
        return lines

    def _wanted(self, exported: Exported, tensors: list[Tensor], own: list[Tensor]) -> list[str]:
        """The names of what gradients are wanted of."""
        if not torch.is_grad_enabled():
            return []
        named = zip((*exported.arguments, *self._names), (*tensors, *own))
        return [name for name, each in named if each.requires_grad and name in exported.used]

    def _compared(
        self, call: str, planned: dict[str, Planned], tensors: list[Tensor], own: list[Tensor], form: Form
    ) -> Choice:
        """Runs all ways. Collective."""

        def way(each: Planned) -> Callable[[], list[Tensor]]:
            return lambda: _step(lambda given: each([*given, *own]), tensors, own)

        ways = {name: way(each) for name, each in planned.items()}
        ways["today"] = lambda: _step(lambda given: self.today(*rebuild(form, given)), tensors, own)
        wanted, bound = ways["today"](), BOUNDS.get(local(own[0]).dtype, 0.0)
        bound = bound if self.settings.fp8 is None else BOUND_OF_FP8
        worst = torch.tensor([_difference(ways[name](), wanted) for name in planned], device="cuda", dtype=torch.float64)
        dist.all_reduce(worst, op=dist.ReduceOp.MAX, group=self.settings.group)
        errors = dict(zip(planned, worst.tolist()))
        right = [name for name, error in errors.items() if error <= bound]
        if not right:
            error = min(errors.values())
            return Choice(call, "today", f"the plan's values differ by {error:.2g}, more than {bound:g}", error=error)
        always = os.environ.get(SWITCH) == "always"
        timed = [*right, *([] if always else ["today"])]
        times: dict[str, float] = {}
        name = timed[0] if len(timed) == 1 else fastest({each: ways[each] for each in timed}, self.settings.group, times)
        micros = {each: round(seconds * 1e6, 1) for each, seconds in times.items()}
        text = ", ".join(f"{each} {value:g} us" for each, value in micros.items())
        if name == "today":
            return Choice(call, "today", f"the plan is not faster: {text}", None, errors[right[0]], micros)
        reason = f"{SWITCH}=always{f', {text}' if text else ''}" if always else f"measured: {text}"
        return Choice(call, "braid", reason, planned[name], errors[name], micros)

    def _tell(self, reason: str) -> None:
        """Once, on the first rank."""
        text = f"braid_torch.parallelize leaves {self.path} ({type(self.module).__name__}) as it is: {reason}"
        kind = f"{type(self.module).__name__} {reason}"
        if kind not in _told and dist.get_rank(self.settings.group) == 0:
            warnings.warn(text, stacklevel=5)
        _told.add(kind)


def _halves(exported: Exported, wanted: Sequence[str], save: str | int) -> list[list[str]]:
    if not wanted:
        return [[]]
    given = f"--gradients={COTANGENT}={','.join(wanted)}"
    return [[given, f"--half={half}:{save}"] for half in ("forward", "backward")]


def over_devices(lines: dict[str, Any], outputs: Sequence[Sequence[int]], size: int) -> dict[str, Any] | None:
    """
    The ranks share the rows between the linear maps although the caller has whole ones: an all-reduce becomes a
    reduce-scatter and a gather, which GEMMs hide. None where rows are few or shared anyway, or nothing is reduced.
    """
    placed = [place for kind in ("inputs", "outputs") for places in lines[kind].values() for place in places]
    reduced = [name.removesuffix(".weight") for name, place in lines.items() if place == ["Shard(1)"]]
    if len(outputs) != 1 or len(outputs[0]) < 2 or not reduced or any(each != WHOLE for each in placed):
        return None
    axis = len(outputs[0]) - 2
    if outputs[0][axis] % size or outputs[0][axis] < FEWEST_ROWS:
        return None
    others = {name: place for name, place in lines.items() if name != "outputs"}
    between = {name: [f"Shard({axis})"] for name in reduced}
    return {**others, "activations": between, PREFIX.removesuffix("."): "all_reduce"}


def _line(error: Exception) -> str:
    """One line of an error."""
    if isinstance(error, Refusal):
        # Without the folder of the export: blocks that fail alike say so once.
        found = re.sub(r"\S*/(?=[\w.-]+\.pt2)", "", error.found)
        return " ".join(f"{error.code}: {found} (expected {error.expected})".split())[:600]
    return " ".join(f"{type(error).__name__}: {error}".split())[:600]


@contextlib.contextmanager
def _apart(buffers: Sequence[Tensor]) -> Iterator[None]:
    """
    Runs inside leave no trace: not in random numbers, buffers, gradients, or what a checkpoint around the call counts.
    """
    kept = [(each, each._version, each.clone()) for each in buffers]
    identity = torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, lambda tensor: tensor)
    try:
        with identity, torch.random.fork_rng(devices=[torch.cuda.current_device()]):
            yield
    finally:
        with torch.no_grad():
            for buffer, version, values in kept:
                if buffer._version != version:
                    buffer.copy_(values)


def _step(run: Callable[[list[Tensor]], Any], tensors: Sequence[Tensor], own: Sequence[Tensor]) -> list[Tensor]:
    """The results of a call and the gradients of what requires them."""
    if not torch.is_grad_enabled():
        return flatten(run(list(tensors)))[0]
    given = [each.detach().requires_grad_(each.requires_grad) for each in tensors]
    results = flatten(run(given))[0]
    wanted = [each for each in (*given, *own) if each.requires_grad]
    differentiable = [each for each in results if each.requires_grad]
    if not wanted or not differentiable:
        return results
    # The results themselves: equal on ranks that have equal results.
    cotangents = [each.detach() for each in differentiable]
    found = torch.autograd.grad(differentiable, wanted, cotangents, allow_unused=True)
    return [*results, *[_placed(each, like) for each, like in zip(found, wanted) if each is not None]]


def _placed(gradient: Tensor, like: Tensor) -> Tensor:
    """A gradient that is still a sum over the ranks, added."""
    if isinstance(gradient, DTensor) and isinstance(like, DTensor) and gradient.placements != like.placements:
        return gradient.redistribute(placements=like.placements)
    return gradient


def _difference(own: Sequence[Tensor], wanted: Sequence[Tensor]) -> float:
    """The largest relative norm; infinite for results of another shape, and for what is not finite."""
    if len(own) != len(wanted):
        return float("inf")
    worst = 0.0
    for one, other in zip(map(local, own), map(local, wanted)):
        if one.shape != other.shape:
            return float("inf")
        a, b = (each.detach().to(torch.complex128 if each.is_complex() else torch.float64) for each in (one, other))
        size = float(b.abs().square().sum().sqrt())
        difference = float((a - b).abs().square().sum().sqrt()) / max(size, 1e-30)
        worst = max(worst, difference if difference == difference else float("inf"))
    return worst


