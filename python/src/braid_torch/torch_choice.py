"""Measures the ways to run a call, on all ranks together."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist

from .torch_others import TORCHS_OP

ROUNDS = 5
CALLS = 10
# By how much the others have to be faster than Braid's plan: by less it may be chance, and the plan takes the host less.
MARGIN = 0.01


def fastest(
    candidates: dict[str, Callable[[], Any]], group: Any, measured: dict[str, float] | None = None
) -> str:
    """The name of the fastest, by its slowest rank. Collective. `measured` gets the seconds of a call of each."""
    runs = dict(candidates)
    for name, run in candidates.items():
        try:
            for _ in range(3):
                run()
            torch.cuda.synchronize()
        except (RuntimeError, ValueError, AssertionError):
            if name != TORCHS_OP:
                raise
            # Its symmetric memory does not work here, or it refuses the operands.
            del runs[name]
    names = list(candidates)
    if len(names) == 1:
        return names[0]
    times = torch.full((len(names),), float("inf"), dtype=torch.float64)
    for _ in range(ROUNDS):
        for position, name in enumerate(names):
            dist.barrier(group)
            torch.cuda.synchronize()
            start = time.perf_counter()
            if name in runs:
                for _ in range(CALLS):
                    runs[name]()
                torch.cuda.synchronize()
                times[position] = min(float(times[position]), time.perf_counter() - start)
    slowest = times.cuda()
    dist.all_reduce(slowest, op=dist.ReduceOp.MAX, group=group)
    if measured is not None:
        measured.update({name: float(time) / CALLS for name, time in zip(names, slowest.cpu())})
    weights = [1.0 if name == "braid" else 1 + MARGIN for name in names]
    return names[int((slowest.cpu() * torch.tensor(weights, dtype=torch.float64)).argmin())]
