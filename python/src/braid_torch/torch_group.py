"""A process group of PyTorch as a Group: ranks meet in its store, so that nothing is queued on a GPU."""

from __future__ import annotations

import datetime
from typing import Any

import torch.distributed as dist

from .group import Group, Solo

# For a rank that compiles kernels or opens its GPU while the others wait.
TIMEOUT = datetime.timedelta(seconds=300)


def group_of(process_group: Any = None) -> Group:
    """The default group if None; a group of one where there is none."""
    if not dist.is_initialized():
        return Solo()
    return StoreGroup(dist.group.WORLD if process_group is None else process_group)


class StoreGroup:
    """Made by all ranks of the process group in the same order."""

    # By name of the process group: how many of this class were made.
    _made: dict[str, int] = {}

    def __init__(self, process_group: Any) -> None:
        self.process_group = process_group
        self.rank: int = dist.get_rank(process_group)
        self.size: int = dist.get_world_size(process_group)
        name = process_group.group_name
        number = self._made.get(name, 0)
        self._made[name] = number + 1
        store = dist.distributed_c10d._get_default_store()
        self._store = dist.PrefixStore(f"braid/{name}/{number}", store)
        self._meetings = 0

    def all_gather(self, data: bytes) -> list[bytes]:
        if self.size == 1:
            return [data]
        self._meetings += 1
        keys = [f"{self._meetings}/{rank}" for rank in range(self.size)]
        # An empty value is not one for every store.
        self._store.set(keys[self.rank], b"+" + data)
        for rank, key in enumerate(keys):
            try:
                self._store.wait([key], TIMEOUT)
            except Exception as error:
                seconds = TIMEOUT.total_seconds()
                raise TimeoutError(
                    f"rank {self.rank} has waited {seconds:g} s for rank {rank}, which did not come: {error}"
                ) from error
        return [bytes(self._store.get(key))[1:] for key in keys]
