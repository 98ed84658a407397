"""
One rank of two, of which the second ends, or stops, without a call:

    RANK=R WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29611 python3 python/gpu/lost_rank.py PLAN kill|stop

The first has to end by itself, with a report that names the plan, the command and the peer.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

import torch
import torch.distributed as dist

import braid_torch

rank = int(os.environ["RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("gloo")
plan = braid_torch.load(sys.argv[1], timeout=3)
tensors = [torch.randn(part.shape, device="cuda").to(part.dtype) for part in plan.inputs]
plan(*tensors)
torch.cuda.synchronize()
if rank == 1:
    os.kill(os.getpid(), signal.SIGKILL if sys.argv[2] == "kill" else signal.SIGSTOP)
print(f"a run without its peer at {time.time():.1f}", file=sys.stderr, flush=True)
plan(*tensors)
torch.cuda.synchronize()
print("FAIL: it ended", flush=True)
