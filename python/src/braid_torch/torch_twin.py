"""
A module as torch.export can trace it: without values, shards and hooks, and with the tensors of a call as its only
arguments. Its sizes are those of whole tensors.
"""

from __future__ import annotations

import copy
import hashlib
import itertools
import zipfile
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MethodType
from typing import Any

import torch
from torch import Tensor, nn

from .refusal import Refusal
from .torch_arguments import Form, flatten, rebuild

HOOKS = (
    "_forward_hooks", "_forward_hooks_with_kwargs", "_forward_hooks_always_called", "_forward_pre_hooks",
    "_forward_pre_hooks_with_kwargs", "_backward_hooks", "_backward_pre_hooks", "_non_full_backward_hooks",
)  # fmt: skip
EXPORT_FIX = "nothing is wrong: this module stays as it is. Braid takes what torch.export.export takes"


def twin_of(module: nn.Module) -> nn.Module:
    """A copy on the meta device. Made before other wrappers, such as fully_shard, change the module."""
    memo: dict[int, Any] = {}
    for tensor in itertools.chain(module.parameters(), module.buffers()):
        memo[id(tensor)] = _like(tensor, tensor.dtype, "meta")
    for each in module.modules():
        if _is_wrapped(each):
            memo[id(each.__dict__["forward"])] = object()
        for name in HOOKS:
            # Hooks may hold process groups, which no copy has.
            hooks = each.__dict__.get(name)
            if hooks is not None:
                memo[id(hooks)] = OrderedDict()
    twin = copy.deepcopy(module, memo)
    for own, each in zip(twin.modules(), module.modules()):
        if _is_wrapped(each):
            del own.__dict__["forward"]
    return twin


def _is_wrapped(module: nn.Module) -> bool:
    """
    By a function in place of its method, as Hugging Face's tp_plan does. A copy would call the module it was made for.
    """
    return not isinstance(module.__dict__.get("forward", module.forward), MethodType)


def _like(tensor: Tensor, dtype: torch.dtype, device: str) -> Tensor:
    # The shape of a DTensor is that of the whole tensor.
    made = torch.empty(tuple(tensor.shape), dtype=dtype, device=device)
    return nn.Parameter(made, tensor.requires_grad) if isinstance(tensor, nn.Parameter) else made


@dataclass(frozen=True)
class Whole:
    """A tensor argument of a call, over all ranks."""

    shape: tuple[int, ...]
    dtype: torch.dtype


@dataclass(frozen=True)
class Exported:
    """What one file of torch.export has."""

    file: Path
    # Of the graph: two modules with one of these compute the same.
    digest: str
    # The name of each tensor argument in the file.
    arguments: tuple[str, ...]
    # The names of arguments and parameters that the graph reads.
    used: frozenset[str]
    # The shape of each tensor that the module returns, over all ranks, and how they make up its result.
    outputs: tuple[tuple[int, ...], ...]
    form: Form


class _Flat(nn.Module):
    """The module with tensors alone as arguments and results."""

    def __init__(self, module: nn.Module, form: Form, are_complex: Sequence[bool], forms: list[Form]) -> None:
        super().__init__()
        self.module, self.form, self.are_complex, self.forms = module, form, tuple(are_complex), (forms.append,)

    def forward(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        whole = [torch.view_as_complex(each) if pair else each for each, pair in zip(tensors, self.are_complex)]
        args, kwargs = rebuild(self.form, whole)
        results, form = flatten(self.module(*args, **kwargs))
        (append,) = self.forms
        append(form)
        return tuple(results)


def export(
    twin: nn.Module, module: nn.Module, form: Form, arguments: Sequence[Whole], file: Path, device: str
) -> Exported:
    """
    Writes the module's graph for arguments of these sizes. `module` has the dtypes and modes of now. Raises Refusal,
    and whatever torch.export raises.
    """
    failure: Exception | None = None
    for attempt in (_fakes(device), _metas()):
        try:
            return _export(attempt, twin, module, form, arguments, file)
        except Exception as error:  # noqa: PERF203
            failure = failure or error
    if isinstance(failure, Refusal) or failure is None:
        raise failure or AssertionError
    lines = str(failure).strip().splitlines() or [type(failure).__name__]
    raise Refusal("export-failed", "torch.export", lines[0][:300], "a module that can be exported", EXPORT_FIX) from failure


Make = Callable[[tuple[int, ...], torch.dtype], Tensor]


def _fakes(device: str) -> Make:
    """Tensors of the real device that have no memory."""
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    mode = FakeTensorMode(shape_env=ShapeEnv(tracked_fakes=[]), allow_non_fake_inputs=True)

    def make(shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        with mode:
            return torch.empty(shape, dtype=dtype, device=device)

    return make


def _metas() -> Make:
    return lambda shape, dtype: torch.empty(shape, dtype=dtype, device="meta")


def _export(
    make: Make, twin: nn.Module, module: nn.Module, form: Form, arguments: Sequence[Whole], file: Path
) -> Exported:
    own = _with_tensors(twin, module, make)
    forms: list[Form] = []
    pairs = [each.dtype.is_complex for each in arguments]
    given = [
        make((*each.shape, 2), each.dtype.to_real()) if pair else make(each.shape, each.dtype)
        for each, pair in zip(arguments, pairs)
    ]
    with torch.enable_grad():
        program = torch.export.export(_Flat(own, form, pairs, forms), tuple(given), strict=False)
    signature = program.graph_signature
    for changed in (signature.buffers_to_mutate, getattr(signature, "user_inputs_to_mutate", {})):
        if changed:
            found = f"it changes {', '.join(changed.values())}"
            raise Refusal("export-failed", "torch.export", found, "a module that changes no tensor", EXPORT_FIX)
    names = [each for each in signature.user_inputs if isinstance(each, str)]
    outputs = tuple(tuple(int(size) for size in value.shape) for value in _values(program))
    torch.export.save(program, file)
    return Exported(file, digest_of(file), tuple(names), _used(program), outputs, forms[-1])


def _used(program: Any) -> frozenset[str]:
    nodes = {each.name: each for each in program.graph.nodes if each.op == "placeholder"}
    own = {**program.graph_signature.inputs_to_parameters, **program.graph_signature.inputs_to_buffers}
    return frozenset(own.get(name, name) for name, node in nodes.items() if node.users)


def _values(program: Any) -> list[Tensor]:
    """Of the outputs, in order."""
    (node,) = [each for each in program.graph.nodes if each.op == "output"]
    return [each.meta["val"] for each in node.args[0]]


def _with_tensors(twin: nn.Module, module: nn.Module, make: Make) -> nn.Module:
    memo: dict[int, Any] = {}
    for empty, now in zip(
        itertools.chain(twin.parameters(), twin.buffers()), itertools.chain(module.parameters(), module.buffers())
    ):
        made = make(tuple(empty.shape), now.dtype)
        memo[id(empty)] = nn.Parameter(made, now.requires_grad) if isinstance(empty, nn.Parameter) else made
    own = copy.deepcopy(twin, memo)
    for each, other in zip(own.modules(), module.modules()):
        each.training = other.training
    return own


def digest_of(file: Path) -> str:
    """Of the graph alone. Files have numbers and times of their own."""
    with zipfile.ZipFile(file) as archive:
        graphs = [name for name in archive.namelist() if "/models/" in name]
        return hashlib.sha256(b"\0".join(archive.read(name) for name in sorted(graphs))).hexdigest()
