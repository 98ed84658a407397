"""The functions of libcuda.so.1 that Braid calls, under the names that the library exports, and their constants."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any

from .libraries import load

I32, U8, U32, U64, SIZE = ctypes.c_int, ctypes.c_uint8, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_size_t
OUT32, OUT64, OUTSIZE = ctypes.POINTER(I32), ctypes.POINTER(U64), ctypes.POINTER(SIZE)
TEXT, BYTES = ctypes.POINTER(ctypes.c_char_p), ctypes.c_void_p


class IpcHandle(ctypes.Structure):
    _fields_ = (("bytes", ctypes.c_char * 64),)


PROTOTYPES: dict[str, tuple[Any, ...]] = {
    "cuInit": (U32,),
    "cuDriverGetVersion": (OUT32,),
    "cuGetErrorName": (I32, TEXT),
    "cuGetErrorString": (I32, TEXT),
    "cuDeviceGetCount": (OUT32,),
    "cuDeviceGet": (OUT32, I32),
    "cuDeviceGetName": (BYTES, I32, I32),
    "cuDeviceGetAttribute": (OUT32, I32, I32),
    "cuDevicePrimaryCtxRetain": (OUT64, I32),
    "cuCtxSetCurrent": (U64,),
    "cuCtxGetStreamPriorityRange": (OUT32, OUT32),
    "cuMemGetInfo_v2": (OUTSIZE, OUTSIZE),
    "cuMemAlloc_v2": (OUT64, SIZE),
    "cuMemFree_v2": (U64,),
    "cuMemHostAlloc": (OUT64, SIZE, U32),
    "cuIpcGetMemHandle": (ctypes.POINTER(IpcHandle), U64),
    "cuIpcOpenMemHandle_v2": (OUT64, IpcHandle, U32),
    "cuMemsetD8Async": (U64, U8, SIZE, U64),
    "cuMemcpyHtoDAsync_v2": (U64, BYTES, SIZE, U64),
    "cuMemcpyDtoHAsync_v2": (BYTES, U64, SIZE, U64),
    "cuMemcpyDtoDAsync_v2": (U64, U64, SIZE, U64),
    "cuMemcpy2DAsync_v2": (BYTES, U64),
    "cuStreamCreateWithPriority": (OUT64, U32, I32),
    "cuStreamQuery": (U64,),
    "cuStreamWaitEvent": (U64, U64, U32),
    "cuStreamBatchMemOp_v2": (U64, U32, BYTES, U32),
    "cuStreamBeginCapture_v2": (U64, I32),
    "cuStreamEndCapture": (U64, OUT64),
    "cuEventCreate": (OUT64, U32),
    "cuEventRecord": (U64, U64),
    "cuGraphInstantiateWithFlags": (OUT64, U64, U64),
    "cuGraphUpload": (U64, U64),
    "cuGraphLaunch": (U64, U64),
    "cuGraphExecDestroy": (U64,),
    "cuGraphDestroy": (U64,),
    "cuModuleLoadData": (OUT64, BYTES),
    "cuModuleGetFunction": (OUT64, U64, ctypes.c_char_p),
    "cuFuncSetAttribute": (U64, I32, I32),
    "cuLaunchKernel": (U64, *(U32,) * 7, U64, BYTES, U64),
}

CUDA_ERROR_OUT_OF_MEMORY = 2
CUDA_ERROR_NOT_READY = 600

CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16
CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75
CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76

CU_MEMHOSTALLOC_PORTABLE = 1
CU_MEMHOSTALLOC_DEVICEMAP = 2
CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS = 1

CU_STREAM_NON_BLOCKING = 1
CU_STREAM_CAPTURE_MODE_RELAXED = 2
CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY = 8
CU_EVENT_DISABLE_TIMING = 2


class GpuError(RuntimeError):
    """A call of the driver or a library that failed: `call` is its name, `status` its number."""

    def __init__(self, rank: int, call: str, status: int, name: str, text: str) -> None:
        super().__init__(f"gpu-call-failed: rank {rank}: {call} returned {name} ({status}): {text}")
        self.rank, self.call, self.status = rank, call, status


@functools.cache
def driver() -> Any:
    """The library, with the types of its functions set. Raises Refusal."""
    library = load("CUDA driver")
    for name, types in PROTOTYPES.items():
        function = getattr(library, name)
        function.argtypes, function.restype = types, I32
    return library


def checker(rank: int) -> Callable[[int, str], None]:
    """Raises GpuError for a status that is not 0."""
    raw = driver()

    def check(status: int, call: str) -> None:
        if status == 0:
            return
        name, text = ctypes.c_char_p(), ctypes.c_char_p()
        raw.cuGetErrorName(status, ctypes.byref(name))
        raw.cuGetErrorString(status, ctypes.byref(text))
        raise GpuError(rank, call, status, (name.value or b"").decode(), (text.value or b"").decode())

    return check
