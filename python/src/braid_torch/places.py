"""The memory of a rank's operations: where each symbolic address of a plan lies in this process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]

ALIGNMENT = 256
WORD_BYTES, GATE_BYTES = 4, 8


@dataclass(frozen=True)
class Shared:
    """Addresses in memory that the plans of a session share. Runs follow each other, so only words are a plan's own."""

    # By rank, in this process.
    symmetric: list[int]
    words: list[int]
    temporary: int
    # By stream.
    scratch: list[int]
    workspaces: list[int]


def aligned(count: int) -> int:
    return -(-count // ALIGNMENT) * ALIGNMENT


class Places:
    """Everything but the caller's tensors, which come with each run."""

    def __init__(self, own: Json, shared: Shared, gates: int, progress: int) -> None:
        self._shared, self._gates, self._progress = shared, gates, progress
        self._rank = own["rank"]

    @property
    def words(self) -> int:
        """The address of the words that this rank waits on."""
        return self._shared.words[self._rank]

    def of(self, address: Json, tensors: Json) -> int:
        """`tensors`: the caller's addresses, by space."""
        space = address["space"]
        if space in ("in", "out"):
            of_space: Sequence[int] = tensors[space]
            return of_space[address["tensor"]] + int(address["offset"])
        if space == "temporary":
            return self._shared.temporary + int(address["offset"])
        if space == "symmetric":
            return self._shared.symmetric[address["rank"]] + int(address["offset"])
        if space == "word":
            return self._shared.words[address["rank"]] + int(address["index"]) * WORD_BYTES
        if space == "gate":
            return self._gates + int(address["index"]) * GATE_BYTES
        if space == "progress":
            return self._progress + WORD_BYTES * int(address["stream"])
        if space == "scratch":
            return self._shared.scratch[address["stream"]] + int(address["offset"])
        if space == "workspace":
            return self._shared.workspaces[address["stream"]]
        raise AssertionError(space)
