"""
Memory that other ranks map: allocated once, announced by a CUDA IPC handle, mapped once by each peer.

PyTorch's own memory is not shared: expandable segments refuse it, and a handle would share a whole segment.
"""

from __future__ import annotations

import ctypes

from ..group import Group, agree
from . import driver as cu
from .gpu import Gpu

# The driver cuts smaller allocations out of blocks of this size, and a handle shares the whole block.
SHAREABLE_BYTES = 2 << 20


def allocate_shared(gpu: Gpu, group: Group, count: int) -> list[int]:
    """By rank: the address, in this process, of as many bytes as that rank asked for. Collective. Raises Refusal."""

    def announce() -> tuple[int, bytes]:
        size = -(-count // SHAREABLE_BYTES) * SHAREABLE_BYTES
        address = gpu.allocate(size, "memory that peers reach")
        handle = cu.IpcHandle()
        if address:
            gpu.call("cuIpcGetMemHandle", ctypes.byref(handle), address)
        return address, bytes(handle)

    own, handle = agree(group, "allocating memory that peers reach", announce)
    nothing = bytes(cu.IpcHandle())
    handles = group.all_gather(handle)

    def mapped(rank: int, given: bytes) -> int:
        if rank == group.rank or given == nothing:
            return own if rank == group.rank else 0
        peer = cu.IpcHandle.from_buffer_copy(given)
        address: int = gpu.out("cuIpcOpenMemHandle_v2", cu.U64, peer, cu.CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)
        return address

    return agree(group, "mapping peers' memory", lambda: [mapped(*each) for each in enumerate(handles)])
