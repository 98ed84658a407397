"""
Memory that other ranks map: allocated once, announced by a CUDA IPC handle, mapped once by each peer.

PyTorch's own memory is not shared: expandable segments refuse it, and a handle would share a whole segment.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator

from ..group import Group, agree
from ..refusal import Refusal
from . import driver as cu
from .gpu import Gpu

# The driver cuts smaller allocations out of blocks of this size, and a handle shares the whole block.
SHAREABLE_BYTES = 2 << 20


def allocate_shared(gpu: Gpu, group: Group, count: int) -> list[int]:
    """By rank: the address, in this process, of as many bytes as that rank asked for. Collective. Raises Refusal."""
    size = -(-count // SHAREABLE_BYTES) * SHAREABLE_BYTES
    allocated: list[int] = []

    def announce() -> tuple[int, bytes]:
        allocated.append(gpu.allocate(size, "memory that peers reach"))
        handle = cu.IpcHandle()
        if allocated[0]:
            with _explained(gpu):
                gpu.call("cuIpcGetMemHandle", ctypes.byref(handle), allocated[0])
        return allocated[0], bytes(handle)

    try:
        own, handle = agree(group, "allocating memory that peers reach", announce)
    except Exception:
        # Another rank has too little. Nobody has mapped this one's yet.
        if allocated and allocated[0]:
            gpu.call("cuMemFree_v2", allocated[0])
        raise
    nothing = bytes(cu.IpcHandle())
    handles = group.all_gather(handle)

    def mapped(rank: int, given: bytes) -> int:
        if rank == group.rank or given == nothing:
            return own if rank == group.rank else 0
        peer = cu.IpcHandle.from_buffer_copy(given)
        with _explained(gpu):
            address: int = gpu.out("cuIpcOpenMemHandle_v2", cu.U64, peer, cu.CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)
        return address

    return agree(group, "mapping peers' memory", lambda: [mapped(*each) for each in enumerate(handles)])


@contextlib.contextmanager
def _explained(gpu: Gpu) -> Iterator[None]:
    """A driver that refuses to share memory is no fault of this package: PyTorch's own ways still run."""
    try:
        yield
    except cu.GpuError as error:
        expected = "GPUs of one host that reach each other's memory by CUDA IPC"
        fix = "nvidia-smi topo -p2p r shows which do; containers need a common IPC namespace (--ipc=host)"
        raise Refusal("backend-unavailable", f"rank {gpu.rank}, {gpu.name}", str(error), expected, fix) from error
