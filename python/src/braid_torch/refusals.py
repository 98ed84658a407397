"""
Calls that a rank refused, told to the others through shared memory: peers learn of it without waiting in every call.

A rank that refuses still takes part in the run, with tensors of its own, so that nobody waits for ever.
"""

from __future__ import annotations

import mmap
import os
import struct
import tempfile
from pathlib import Path

from .group import Group, agree

# Of each rank: how many calls it has refused, then its last message.
COUNT = struct.Struct("<Q")
ROW_BYTES = 4096


class SharedRefusals:
    """Collective."""

    def __init__(self, group: Group) -> None:
        self._rank, self._size = group.rank, group.size
        folder = "/dev/shm" if os.path.isdir("/dev/shm") else tempfile.gettempdir()
        name = agree(group, "making shared memory", lambda: self._make(folder))
        path = group.all_gather(name.encode())[0].decode()
        self._memory = agree(group, "mapping shared memory", lambda: self._map(path))
        # Every rank has mapped it: nothing stays behind, however the processes end.
        group.all_gather(b"")
        if group.rank == 0:
            Path(path).unlink(missing_ok=True)
        self._counts = memoryview(self._memory)[: COUNT.size * self._size]
        self._seen = bytearray(self._counts)

    def _make(self, folder: str) -> str:
        if self._rank != 0:
            return ""
        descriptor, path = tempfile.mkstemp(prefix=f"braid-refusals-{os.getpid()}-", dir=folder)
        with os.fdopen(descriptor, "wb") as file:
            file.truncate(self._size * (COUNT.size + ROW_BYTES))
        return path

    def _map(self, path: str) -> mmap.mmap:
        with open(path, "r+b") as file:
            return mmap.mmap(file.fileno(), 0)

    def post(self, message: str) -> None:
        """To the others: this rank's own are raised where they arise."""
        start = COUNT.size * self._size + ROW_BYTES * self._rank
        text = message.encode()[: ROW_BYTES - 1]
        self._memory[start : start + ROW_BYTES] = text.ljust(ROW_BYTES, b"\0")
        place = COUNT.size * self._rank
        (count,) = COUNT.unpack_from(self._memory, place)
        COUNT.pack_into(self._memory, place, count + 1)
        COUNT.pack_into(self._seen, place, count + 1)

    def news(self) -> str | None:
        """The last message of another rank that has refused since this was called; None usually."""
        if self._counts == self._seen:
            return None
        now = bytes(self._counts)
        slices = (slice(COUNT.size * rank, COUNT.size * (rank + 1)) for rank in range(self._size))
        rank = next(rank for rank, own in enumerate(slices) if now[own] != self._seen[own])
        self._seen[:] = now
        start = COUNT.size * self._size + ROW_BYTES * rank
        return f"rank {rank}: " + self._memory[start : start + ROW_BYTES].rstrip(b"\0").decode(errors="replace")
