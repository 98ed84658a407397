"""The runs of all plans of a session that are kept to run again: each for one set of addresses."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

from .bind import Action
from .cuda.gpu import Gpu

Addresses = tuple[int, ...]

# Layers of one shape share a plan, and each has its own weights: a model of 80 layers calls 8 plans with 640 sets of
# addresses in every step, and with several times as many where activations move. A graph of 8 GEMMs has 0.12 MiB.
MOST = 2048
# An entry may be dropped when the plans have been called as many times `MOST` since it ran. A loop over more sets than
# are kept then still finds most of them, whereas it would find none if each new one displaced the oldest.
STALE = 8


@dataclass
class Entry:
    """The run of one set of addresses."""

    actions: list[Action]
    # The number of the session's call that used it last.
    used: int
    # A CUgraphExec; 0 before the second run.
    graph: int = 0
    releases: list[Any] = field(default_factory=list)


class Entries:
    def __init__(self, gpu: Gpu, most: int = MOST) -> None:
        self._gpu, self._most = gpu, most
        self._by_plan: list[dict[Addresses, Entry]] = []
        self._count = 0
        # When none was stale, the call from which on it is worth a look again.
        self._next_look = 0
        self._told = False

    def of_plan(self) -> dict[Addresses, Entry]:
        """Those of a new plan, which looks them up itself."""
        made: dict[Addresses, Entry] = {}
        self._by_plan.append(made)
        return made

    def keep(self, own: dict[Addresses, Entry], addresses: Addresses, entry: Entry) -> bool:
        """False if there are too many, of which all were used lately."""
        if self._count >= self._most:
            self._drop_stale(entry.used)
        if self._count >= self._most:
            return False
        own[addresses] = entry
        self._count += 1
        return True

    def release(self, entry: Entry) -> None:
        """What the driver and the libraries hold of it. Runs that are queued are not affected."""
        if entry.graph:
            self._gpu.call("cuGraphExecDestroy", entry.graph)
        for release in entry.releases:
            release()

    def _drop_stale(self, call: int) -> None:
        if call < self._next_look:
            return
        self._next_look = call + self._most
        for own in self._by_plan:
            for addresses in [key for key, each in own.items() if call - each.used > STALE * self._most]:
                self.release(own.pop(addresses))
                self._count -= 1
        if self._count >= self._most and not self._told and self._gpu.rank == 0:
            self._told = True
            warnings.warn(
                f"braid_torch keeps graphs for {self._most} sets of tensors. Calls with others run operation by "
                "operation, with more host time: reuse tensors, or capture the loop by torch.cuda.graph",
                stacklevel=2,
            )
