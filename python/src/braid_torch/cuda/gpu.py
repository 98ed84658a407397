"""One rank's GPU: its primary context, which PyTorch uses too, and its properties."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from ..refusal import Refusal
from . import driver as cu


class Gpu:
    """Raises Refusal and GpuError. The context is current on the thread that opens it."""

    def __init__(self, rank: int, ordinal: int) -> None:
        self.rank, self.ordinal = rank, ordinal
        # Frees memory that this process keeps without using it; PyTorch's allocator does.
        self.reclaim: Callable[[], None] | None = None
        self.raw: Any = cu.driver()
        self.check: Callable[[int, str], None] = cu.checker(rank)
        self.call("cuInit", 0)
        count = self.out("cuDeviceGetCount", cu.I32)
        if ordinal >= count:
            found = f"{count} GPUs; rank {rank} needs GPU {ordinal}"
            fix = "start as many processes as this machine has GPUs, or check CUDA_VISIBLE_DEVICES"
            raise Refusal("backend-unavailable", f"rank {rank}", found, f"at least {ordinal + 1}", fix)
        self.device: int = self.out("cuDeviceGet", cu.I32, ordinal)
        # Never released: PyTorch and the libraries keep state in it.
        self.context: int = self.out("cuDevicePrimaryCtxRetain", cu.U64, self.device)
        self.make_current()
        name = ctypes.create_string_buffer(256)
        self.call("cuDeviceGetName", name, len(name), self.device)
        self.name = name.value.decode()
        major = self._attribute(cu.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)
        self.capability = 10 * major + self._attribute(cu.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)
        self.multiprocessors = self._attribute(cu.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
        self.driver_version: int = self.out("cuDriverGetVersion", cu.I32)
        least, greatest = cu.I32(), cu.I32()
        self.call("cuCtxGetStreamPriorityRange", ctypes.byref(least), ctypes.byref(greatest))
        self.least, self.greatest = least.value, greatest.value

    def call(self, name: str, *values: Any) -> None:
        self.check(getattr(self.raw, name)(*values), name)

    def out(self, name: str, kind: Any, *values: Any) -> Any:
        """The value that the function writes into its first parameter."""
        value = kind()
        self.call(name, ctypes.byref(value), *values)
        return value.value

    def make_current(self) -> None:
        """Once per call: another library may have changed it, and a new thread has none."""
        status = self.raw.cuCtxSetCurrent(self.context)
        if status:
            self.check(status, "cuCtxSetCurrent")

    def allocate(self, count: int, what: str) -> int:
        """The address of device memory; 0 for no bytes. Raises Refusal if there is too little."""
        if count == 0:
            return 0
        address = cu.U64()
        status = self.raw.cuMemAlloc_v2(ctypes.byref(address), count)
        if status == cu.CUDA_ERROR_OUT_OF_MEMORY and self.reclaim is not None:
            self.reclaim()
            status = self.raw.cuMemAlloc_v2(ctypes.byref(address), count)
        if status == cu.CUDA_ERROR_OUT_OF_MEMORY:
            free, total = cu.SIZE(), cu.SIZE()
            self.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
            found = (
                f"{count / 2**30:.2f} GiB for {what}; {free.value / 2**30:.2f} of {total.value / 2**30:.2f} GiB free"
            )
            fix = "use smaller sizes, or fewer shapes: every plan keeps its memory until the process ends"
            raise Refusal("gpu-memory", f"rank {self.rank}, {self.name}", found, "enough free memory", fix)
        self.check(status, "cuMemAlloc")
        return address.value

    def pinned(self, count: int) -> int:
        """The address of zeroed host memory that the GPU writes."""
        flags = cu.CU_MEMHOSTALLOC_PORTABLE | cu.CU_MEMHOSTALLOC_DEVICEMAP
        address: int = self.out("cuMemHostAlloc", cu.U64, count, flags)
        ctypes.memset(address, 0, count)
        return address

    def stream(self, priority: int) -> int:
        """0 is the highest. A GPU has few priorities; all below its lowest are the same."""
        level = min(self.least, self.greatest + priority)
        made: int = self.out("cuStreamCreateWithPriority", cu.U64, cu.CU_STREAM_NON_BLOCKING, level)
        return made

    def event(self) -> int:
        made: int = self.out("cuEventCreate", cu.U64, cu.CU_EVENT_DISABLE_TIMING)
        return made

    def _attribute(self, number: int) -> int:
        value: int = self.out("cuDeviceGetAttribute", cu.I32, number, self.device)
        return value
