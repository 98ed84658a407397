"""The memory of a rank's operations: where each symbolic address of a plan lies in this process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .cuda.gpu import Gpu
from .cuda.heap import allocate_shared
from .group import Group, agree

Json = dict[str, Any]

ALIGNMENT = 256
WORD_BYTES, GATE_BYTES = 4, 8


def aligned(count: int) -> int:
    return -(-count // ALIGNMENT) * ALIGNMENT


class Places:
    """Collective. Everything but the caller's tensors: those come with each run."""

    def __init__(self, gpu: Gpu, group: Group, own: Json, progress: int) -> None:
        memory, rank = own["memory"], own["rank"]
        self._symmetric, self._progress = memory["symmetricBytes"], progress
        self._slots = aligned(memory["words"][rank] * WORD_BYTES)
        self.slot_bytes = self._slots + memory["gates"] * GATE_BYTES
        self._temporary = agree(
            group, "allocating temporaries", lambda: gpu.allocate(memory["temporaryBytes"], "temporaries")
        )
        self._peers = allocate_shared(gpu, group, self._symmetric[rank] + self.slot_bytes)
        # The words that this rank waits on, and its gates.
        self.slots = self._words(rank)
        self._gates = self.slots + self._slots
        self._scratch: list[int] = []
        self._workspaces: list[int] = []

    def add_streams(self, scratch: list[int], workspaces: list[int]) -> None:
        self._scratch, self._workspaces = scratch, workspaces

    def _words(self, rank: int) -> int:
        return self._peers[rank] + self._symmetric[rank]

    def of(self, address: Json, tensors: Json) -> int:
        """`tensors`: the caller's addresses, by space."""
        space = address["space"]
        if space in ("in", "out"):
            of_space: Sequence[int] = tensors[space]
            return of_space[address["tensor"]] + int(address["offset"])
        if space == "temporary":
            return self._temporary + int(address["offset"])
        if space == "symmetric":
            return self._peers[address["rank"]] + int(address["offset"])
        if space == "word":
            return self._words(address["rank"]) + int(address["index"]) * WORD_BYTES
        if space == "gate":
            return self._gates + int(address["index"]) * GATE_BYTES
        if space == "progress":
            return self._progress + WORD_BYTES * int(address["stream"])
        if space == "scratch":
            return self._scratch[address["stream"]] + int(address["offset"])
        if space == "workspace":
            return self._workspaces[address["stream"]]
        raise AssertionError(space)
