"""Graphs that the driver captures, and the end of what is queued."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable

from . import driver as cu
from .gpu import Gpu


def captured(gpu: Gpu, stream: int, issue: Callable[[], None]) -> int:
    """A CUgraphExec of what `issue` queues on the stream, which is not run."""
    gpu.call("cuStreamBeginCapture_v2", stream, cu.CU_STREAM_CAPTURE_MODE_RELAXED)
    try:
        issue()
    except BaseException:
        # Ends the capture and drops what it holds.
        gpu.raw.cuStreamEndCapture(stream, ctypes.byref(cu.U64()))
        raise
    graph: int = _end(gpu, stream)
    try:
        flags = cu.CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY
        made: int = gpu.out("cuGraphInstantiateWithFlags", cu.U64, graph, flags)
        gpu.call("cuGraphUpload", made, stream)
        return made
    finally:
        gpu.call("cuGraphDestroy", graph)


def _end(gpu: Gpu, stream: int) -> int:
    graph = cu.U64()
    gpu.call("cuStreamEndCapture", stream, ctypes.byref(graph))
    return graph.value


def wait_until_idle(gpu: Gpu, stream: int, seconds: float) -> None:
    """Raises TimeoutError."""
    end = time.monotonic() + seconds
    while (status := gpu.raw.cuStreamQuery(stream)) == cu.CUDA_ERROR_NOT_READY:
        if time.monotonic() > end:
            raise TimeoutError(f"rank {gpu.rank}: the GPU does not finish a memset within {seconds:g} s")
        time.sleep(0.0005)
    gpu.check(status, "cuStreamQuery")
