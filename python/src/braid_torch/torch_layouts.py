"""How the tensors of a module's call lie on the ranks: asked of DTensors, and seen in a run as it is today."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from torch import Tensor, nn
from torch.distributed.tensor import DTensor, Replicate, Shard

from .refusal import Refusal
from .torch_planned import local

FIX = "nothing is wrong: this module stays as it is"
WHOLE = "Replicate()"


def placement_text(placements: Sequence[Any], what: str) -> str:
    """Along the one dimension of the mesh, in the words of Braid's sharding plans."""
    if len(placements) == 1:
        (only,) = placements
        if type(only) is Shard:
            return f"Shard({only.dim})"
        if type(only) is Replicate:
            return WHOLE
    raise Refusal("plan-mismatch", what, ", ".join(map(str, placements)), "Shard(axis) or Replicate()", FIX)


class Seen:
    """The placements that a module's own hooks give to plain tensors: those of SequenceParallel, for instance."""

    def __init__(self) -> None:
        self._placements: dict[tuple[int, tuple[int, ...]], Sequence[Any]] = {}

    def note(self, value: Any) -> None:
        if isinstance(value, DTensor):
            part = local(value)
            self._placements.setdefault((part.data_ptr(), tuple(part.shape)), value.placements)
        elif isinstance(value, (tuple, list)):
            for each in value:
                self.note(each)
        elif isinstance(value, dict):
            for each in value.values():
                self.note(each)

    def of(self, tensor: Tensor, what: str) -> str:
        if isinstance(tensor, DTensor):
            return placement_text(tensor.placements, what)
        found = self._placements.get((local(tensor).data_ptr(), tuple(tensor.shape)))
        return WHOLE if found is None else placement_text(found, what)


@contextlib.contextmanager
def watching(module: nn.Module) -> Iterator[Seen]:
    seen = Seen()

    def note(_: nn.Module, args: Any, kwargs: Any) -> None:
        seen.note(args)
        seen.note(kwargs)

    # After the hooks that are there, so that their DTensors are seen.
    children = [each for each in module.modules() if each is not module]
    handles = [each.register_forward_pre_hook(note, with_kwargs=True) for each in children]
    try:
        yield seen
    finally:
        for handle in handles:
            handle.remove()


def whole_shape(tensor: Tensor, placement: str, size: int) -> tuple[int, ...]:
    """Over all ranks, which have equal parts."""
    shape = list(local(tensor).shape)
    if placement != WHOLE:
        axis = int(placement.removeprefix("Shard(").removesuffix(")"))
        shape[axis] *= size
    return tuple(shape)


def placement_of_part(part: Sequence[int], whole: Sequence[int], size: int, what: str) -> str:
    """The placement that gives each rank a part of this shape."""
    if tuple(part) == tuple(whole):
        return WHOLE
    if len(part) == len(whole):
        cut = [axis for axis, (own, all_) in enumerate(zip(part, whole)) if own != all_]
        if len(cut) == 1 and part[cut[0]] * size == whole[cut[0]]:
            return f"Shard({cut[0]})"
    raise Refusal("plan-mismatch", what, f"{list(part)} on this rank", f"an equal part of {list(whole)}", FIX)
