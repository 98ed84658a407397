"""
Compares plans run by braid_torch with the same plans run by Braid's own executor: bits of outputs, and device time.

    BRAID_COMPILER="npx braid" torchrun --nproc-per-node N python/gpu/compare_executors.py JSON PLAN...

`braid --script` of the offline bundle runs the executor's side, scripts/gpu/time-plan.ts. Both hold the GPUs; rows of
runs take turns.
"""

from __future__ import annotations

import json
import math
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

import torch
import torch.distributed as dist
from torch import Tensor

import braid_torch

ROUNDS = 7
# Ranks begin a row at different times.
MILLISECONDS_A_ROUND = 250.0
PATIENCE = 120.0

rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
# gloo: a rank that waits leaves its GPU to the other executor.
dist.init_process_group("cpu:gloo,cuda:nccl", device_id=torch.device("cuda", torch.cuda.current_device()))
gloo = dist.new_group(backend="gloo")


def wait_for(file: Path, process: subprocess.Popen[bytes]) -> str:
    end = time.monotonic() + PATIENCE
    while not file.exists():
        if time.monotonic() > end or process.poll() is not None:
            raise RuntimeError(f"no {file.name} from Braid's executor in {PATIENCE:.0f} s, or it ended")
        time.sleep(0.002)
    return file.read_text()


def everywhere(value: Any) -> Any:
    """What rank 0 has."""
    box = [value]
    dist.broadcast_object_list(box, 0, group=gloo)
    return box[0]


def row(plan: Any, inputs: list[Tensor], outs: list[Tensor], runs: int) -> float:
    """Device milliseconds of one run on the slowest rank."""
    for _ in range(3):
        plan(*inputs, out=outs)
    torch.cuda.synchronize()
    dist.barrier(group=gloo)
    # Ranks meet in a run.
    plan(*inputs, out=outs)
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for _ in range(runs):
        plan(*inputs, out=outs)
    end.record()
    torch.cuda.synchronize()
    slowest = torch.tensor([start.elapsed_time(end) / runs], dtype=torch.float64)
    dist.all_reduce(slowest, op=dist.ReduceOp.MAX, group=gloo)
    return float(slowest)


def compare(folder: str) -> dict[str, Any]:
    shared = Path(everywhere(tempfile.mkdtemp() if rank == 0 else None))
    process: Any = None
    if rank == 0:
        command = [*shlex.split(os.environ["BRAID_COMPILER"]), "--script", "scripts/gpu/time-plan.ts"]
        own = {name: value for name, value in os.environ.items() if name not in ("RANK", "LOCAL_RANK", "WORLD_SIZE")}
        process = subprocess.Popen([*command, str(world), str(Path(folder).resolve()), str(shared)], env=own)
        wait_for(shared / "answer--1", process)
    dist.barrier(group=gloo)
    plan = braid_torch.load(folder)

    def stored(shard: Any) -> Tensor:
        kind = "in" if shard.role == "input" else "out"
        raw = bytearray((shared / f"{kind}-{rank}-{shard.position}").read_bytes())
        return torch.frombuffer(raw, dtype=shard.dtype).cuda().as_strided(shard.shape, shard.strides)

    inputs = [stored(shard) for shard in plan.inputs if shard is not None]
    expected = [stored(shard) for shard in plan.outputs if shard is not None]
    outs = [torch.empty_strided(each.shape, each.stride(), dtype=each.dtype, device="cuda") for each in expected]
    same = []
    for _ in range(3):
        plan(*inputs, out=outs)
        same.append(all(torch.equal(own, other) for own, other in zip(outs, expected, strict=True)))
    votes: list[Any] = [None] * world
    dist.all_gather_object(votes, all(same), group=gloo)
    runs = everywhere(max(3, min(2000, int(MILLISECONDS_A_ROUND / row(plan, inputs, outs, 5)))))
    own, other = [], []
    for turn in range(ROUNDS):
        own.append(row(plan, inputs, outs, runs))
        if rank == 0:
            part = shared / "part"
            part.write_text(str(runs))
            part.rename(shared / f"ask-{turn}")
            other.append(max(map(float, wait_for(shared / f"answer-{turn}", process).split())))
        dist.barrier(group=gloo)
    if rank == 0:
        (shared / f"ask-{ROUNDS}").write_text("0")
        process.wait(PATIENCE)
    dist.barrier(group=gloo)
    found = {"plan": Path(folder).name, "same bits": all(votes), "runs in a row": runs}
    if rank == 0:
        ratio = statistics.median(a / b for a, b in zip(own, other, strict=True))
        found |= {"ms": statistics.median(own), "executor ms": statistics.median(other), "ratio": ratio}
    return found


rows = []
for folder in sys.argv[2:]:
    rows.append(compare(folder))
    if rank == 0:
        print(json.dumps(rows[-1]), flush=True)
if rank == 0:
    mean = math.exp(statistics.fmean(math.log(each["ratio"]) for each in rows))
    print(f"device time over the executor's: {mean:.4f}, {len(rows)} plans", flush=True)
    machine = f"{world} x {torch.cuda.get_device_name()}, PyTorch {torch.__version__}"
    Path(sys.argv[1]).write_text(json.dumps({"machine": machine, "mean": mean, "rows": rows}, indent=1))
dist.barrier(group=gloo)
sys.stdout.flush()
os._exit(int(not all(each["same bits"] for each in rows)))
