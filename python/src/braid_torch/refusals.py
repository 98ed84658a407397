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

# Of each rank: how many calls it has refused; then of each rank: the number of the last one; then its message.
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
        # The calls that this rank has refused itself, while others may not have come to them.
        self._own: set[int] = set()

    def _make(self, folder: str) -> str:
        if self._rank != 0:
            return ""
        descriptor, path = tempfile.mkstemp(prefix=f"braid-refusals-{os.getpid()}-", dir=folder)
        with os.fdopen(descriptor, "wb") as file:
            file.truncate(self._size * (2 * COUNT.size + ROW_BYTES))
        return path

    def _map(self, path: str) -> mmap.mmap:
        with open(path, "r+b") as file:
            return mmap.mmap(file.fileno(), 0)

    def post(self, message: str, call: int) -> None:
        """To the others: this rank's own are raised where they arise. `call`: its number, the same on all ranks."""
        self._own.add(call)
        start = self._row(self._rank)
        text = message.encode()[: ROW_BYTES - 1]
        self._memory[start : start + ROW_BYTES] = text.ljust(ROW_BYTES, b"\0")
        COUNT.pack_into(self._memory, COUNT.size * (self._size + self._rank), call)
        # Last, for readers that do not wait.
        place = COUNT.size * self._rank
        (count,) = COUNT.unpack_from(self._memory, place)
        COUNT.pack_into(self._memory, place, count + 1)
        COUNT.pack_into(self._seen, place, count + 1)

    def news(self, call: int) -> tuple[int, str] | None:
        """
        The number and message of a call that another rank has refused, up to this one, since this was last asked; None
        usually. A rank that is ahead is heard when this one has come as far, and not if it has refused that call too.
        """
        if self._counts == self._seen:
            return None
        found = None
        for rank in range(self._size):
            place = slice(COUNT.size * rank, COUNT.size * (rank + 1))
            count = bytes(self._counts[place])
            (refused,) = COUNT.unpack_from(self._memory, COUNT.size * (self._size + rank))
            if count == self._seen[place] or refused > call:
                continue
            self._seen[place] = count
            if refused not in self._own:
                start = self._row(rank)
                text = self._memory[start : start + ROW_BYTES].rstrip(b"\0").decode(errors="replace")
                found = refused, f"rank {rank}: {text}"
        return found

    def _row(self, rank: int) -> int:
        return 2 * COUNT.size * self._size + ROW_BYTES * rank
