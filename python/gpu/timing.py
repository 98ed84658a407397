"""Times of calls on all ranks, for the scripts beside this file."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist


def slowest(value: float) -> float:
    """The greatest of the ranks' values."""
    each = torch.tensor([value], device="cuda", dtype=torch.float64)
    dist.all_reduce(each, op=dist.ReduceOp.MAX)
    return float(each)


def once(run: Callable[[], Any], calls: int) -> tuple[float, float]:
    """Milliseconds of one call on the slowest rank, and the host's microseconds."""
    dist.barrier()
    torch.cuda.synchronize()
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begun = time.perf_counter()
    start.record()
    for _ in range(calls):
        run()
    end.record()
    host = 1e6 * (time.perf_counter() - begun) / calls
    torch.cuda.synchronize()
    return slowest(start.elapsed_time(end) / calls), slowest(host)
