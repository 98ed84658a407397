"""What the plans of one group share on this rank: the GPU, kernels, libraries, and the record of refused calls."""

from __future__ import annotations

import contextlib
import functools
import os
import threading
from collections.abc import Iterator

from .cuda.attentions import Attentions
from .cuda.gemms import Gemms
from .cuda.gpu import Gpu
from .cuda.heap import allocate_shared
from .cuda.kernels import Kernels
from .entries import Entries
from .group import Group, agree
from .places import WORD_BYTES, aligned
from .refusal import Refusal
from .refusals import SharedRefusals
from .watch import Watch

# What a rank allocates for the words of many plans: the least that can be shared.
WORDS_BYTES = 2 << 20


class Session:
    """Collective. Nothing of it is freed: graphs of PyTorch may hold its memory until the process ends."""

    def __init__(self, group: Group, ordinal: int) -> None:
        self.group, self._process = group, os.getpid()
        self.lock = threading.RLock()
        _require_one_host(group)
        self.gpu = agree(group, "opening its GPU", lambda: Gpu(group.rank, ordinal))
        self.kernels, self.entries = Kernels(self.gpu), Entries(self.gpu)
        self.refusals, self.watch = SharedRefusals(group), Watch()
        self._symmetric, self._symmetric_bytes = [0] * group.size, [0] * group.size
        self._words: list[int] = []
        self._words_used = 0
        # By name: address and bytes.
        self._blocks: dict[str, tuple[int, int]] = {}
        # Of all plans: every rank makes the same ones in the same order.
        self.calls = 0
        # The caller's stream of the last run of any plan, and an event to order the next one after it.
        self.last_stream: int | None = None
        self.between = self.gpu.event()

    def block(self, name: str, count: int) -> int:
        """
        The address of memory that all plans share under this name. Plans that need more than there is get a larger
        block; those before keep theirs.
        """
        known = self._blocks.get(name)
        if known is None or known[1] < count:
            known = self._blocks[name] = (self.gpu.allocate(count, name), count)
        return known[0]

    def symmetric(self, counts: list[int]) -> list[int]:
        """
        By rank: the address of at least as many bytes that its peers reach. All plans share them: a run begins with
        signals that its own memory is free, and ends when no peer uses it any more. Collective.
        """
        if any(count > given for count, given in zip(counts, self._symmetric_bytes)):
            needed = [max(*each) for each in zip(counts, self._symmetric_bytes)]
            # Both change together, or, where a rank has too little memory, neither does.
            self._symmetric = allocate_shared(self.gpu, self.group, needed[self.group.rank])
            self._symmetric_bytes = needed
        return self._symmetric

    def words(self, counts: list[int]) -> list[int]:
        """By rank: the address of so many words that it waits on, which no other plan has. Collective."""
        size = aligned(WORD_BYTES * max(counts, default=0))
        if self._words_used + size > WORDS_BYTES or not self._words:
            self._words = allocate_shared(self.gpu, self.group, max(WORDS_BYTES, size))
            self._words_used = 0
        start, self._words_used = self._words_used, self._words_used + size
        return [address + start for address in self._words]

    @functools.cached_property
    def gemms(self) -> Gemms:
        return Gemms(self.gpu)

    @contextlib.contextmanager
    def without_trials(self, has_gemms: bool) -> Iterator[None]:
        """Algorithms of GEMMs are not tried out meanwhile: nothing may run while PyTorch captures a graph."""
        if has_gemms:
            self.gemms.may_try = False
        try:
            yield
        finally:
            if has_gemms:
                self.gemms.may_try = True

    @functools.cached_property
    def attentions(self) -> Attentions:
        return Attentions(self.gpu)

    def require_same_process(self) -> None:
        if os.getpid() != self._process:
            fix = 'start processes with the method "spawn"'
            raise Refusal("backend-unavailable", "a process after fork", "a GPU of its parent", "its own", fix)


def _require_one_host(group: Group) -> None:
    hosts = [each.decode() for each in group.all_gather(_host().encode())]
    other = next((rank for rank, host in enumerate(hosts) if host != hosts[0]), None)
    if other is not None:
        found, fix = f"rank {other} is on another host than rank 0", "split the group by host"
        raise Refusal("backend-unavailable", "the process group", found, "ranks of one host", fix)


def _host() -> str:
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return os.uname().nodename
