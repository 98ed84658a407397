"""What the plans of one group share on this rank: the GPU, kernels, libraries, and the record of refused calls."""

from __future__ import annotations

import functools
import os
import threading

from .cuda.attentions import Attentions
from .cuda.gemms import Gemms
from .cuda.gpu import Gpu
from .cuda.kernels import Kernels
from .group import Group, agree, same
from .refusal import Refusal
from .refusals import SharedRefusals


class Session:
    """Collective. Nothing of it is freed: graphs of PyTorch may hold its memory until the process ends."""

    def __init__(self, group: Group, ordinal: int) -> None:
        self.group, self._process = group, os.getpid()
        self.lock = threading.RLock()
        same(group, "the host of a rank", _host(), "a plan runs on one host: split the group by host")
        self.gpu = agree(group, "opening its GPU", lambda: Gpu(group.rank, ordinal))
        self.kernels = Kernels(self.gpu)
        self.refusals = SharedRefusals(group)
        # The caller's stream of the last run of any plan, and an event to order the next one after it.
        self.last_stream: int | None = None
        self.between = self.gpu.event()

    @functools.cached_property
    def gemms(self) -> Gemms:
        return Gemms(self.gpu)

    @functools.cached_property
    def attentions(self) -> Attentions:
        return Attentions(self.gpu)

    def require_same_process(self) -> None:
        if os.getpid() != self._process:
            fix = 'start processes with the method "spawn"'
            raise Refusal("backend-unavailable", "a process after fork", "a GPU of its parent", "its own", fix)


def _host() -> str:
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return os.uname().nodename
