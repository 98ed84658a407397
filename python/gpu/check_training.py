"""
Trains a tensor-parallel MLP in loops whose tensors move, on GPUs:

    torchrun --nproc-per-node 2 python/gpu/check_training.py [JSON]

Prints a line for each loop: whether two runs have the same bits, and how many calls of the second half were graphs. Ends
with status 1 if a check fails.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

import braid_torch

WIDTH, HIDDEN, LAYERS, ROWS, STEPS = 1024, 4096, 4, 1024, 16

torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl", device_id=torch.device("cuda", torch.cuda.current_device()))
rank, world = dist.get_rank(), dist.get_world_size()
GROUP = dist.group.WORLD.group_name
OPTIONS: dict[str, Any] = {"dtype": torch.bfloat16, "device": "cuda"}
rows: list[dict[str, Any]] = []


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up = braid_torch.ColumnParallelLinear(WIDTH, HIDDEN, **OPTIONS)
        self.down = braid_torch.RowParallelLinear(HIDDEN, WIDTH, **OPTIONS)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.down(torch.relu(self.up(x)))


class Model(nn.Module):
    def __init__(self, checkpointed: bool) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.checkpointed = checkpointed

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False) if self.checkpointed else layer(x)
        return x


def counts() -> tuple[int, int]:
    plans = braid_torch.explain()
    return sum(each["runs"] for each in plans), sum(each["graphs"] for each in plans)


def train(checkpointed: bool, micro_batches: int, lengths: tuple[int, ...]) -> dict[str, Any]:
    torch.manual_seed(rank)
    model = Model(checkpointed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-4, fused=True)
    losses, before, memory = [], (0, 0), 0
    for step in range(STEPS):
        if step == STEPS // 2:
            torch.cuda.synchronize()
            before, memory = counts(), torch.cuda.mem_get_info()[0]
        for _ in range(micro_batches):
            x = torch.randn(lengths[step % len(lengths)] // world, WIDTH, **OPTIONS)
            loss = (model(x) - torch.sin(3 * x)).float().square().mean() / micro_batches
            loss.backward()
            losses.append(loss.detach())
        optimizer.step()
        optimizer.zero_grad()
    torch.cuda.synchronize()
    runs, graphs = (after - known for after, known in zip(counts(), before, strict=True))
    grown = memory - torch.cuda.mem_get_info()[0]
    return {"losses": torch.stack(losses).tolist(), "runs": runs, "graphs": graphs, "grown MiB": grown / 2**20}


def loop(checkpointed: bool, micro_batches: int, lengths: tuple[int, ...]) -> dict[str, Any]:
    first, second = (train(checkpointed, micro_batches, lengths) for _ in range(2))
    assert first["losses"] == second["losses"], "two runs differ"
    assert second["losses"][-1] < second["losses"][0], second["losses"]
    assert second["grown MiB"] < 64, second["grown MiB"]
    return {
        "loss": [second["losses"][0], second["losses"][-1]],
        "graphs of runs": f"{second['graphs']} of {second['runs']}",
    }


def several_plans() -> dict[str, Any]:
    """Three shapes in an order of chance, on two streams: they share memory."""
    operands = [
        (torch.randn(m // world, 512, **OPTIONS), torch.randn(n, 512, **OPTIONS).t())
        for m, n in ((2048, 256), (4096, 1024), (1024, 512))
    ]
    expected = [braid_torch.all_gather_matmul(a, [b], 0, GROUP, False)[1][0] for a, b in operands]
    streams = [torch.cuda.current_stream(), torch.cuda.Stream()]
    chance = torch.Generator().manual_seed(5)
    torch.cuda.synchronize()
    for _ in range(300):
        which, stream = (int(torch.randint(n, (1,), generator=chance)) for n in (3, 2))
        a, b = operands[which]
        with torch.cuda.stream(streams[stream]):
            _, (found,) = braid_torch.all_gather_matmul(a, [b], 0, GROUP, False)
            assert torch.equal(found, expected[which])
    return {"runs": 300}


def compiled(mode: str | None) -> dict[str, Any]:
    """Layers under torch.compile: outputs and gradients beside those without."""
    torch.manual_seed(rank)
    layer = Layer()
    x = torch.randn(ROWS // world, WIDTH, **OPTIONS)
    expected, gradients = results(layer, layer, x)
    faster = torch.compile(layer, mode=mode)
    for _ in range(4):
        found, others = results(layer, faster, x)
    for own, other in zip((found, *others), (expected, *gradients), strict=True):
        torch.testing.assert_close(own, other, rtol=2e-2, atol=2e-2 * float(other.abs().max()))
    return {"graph breaks": len(torch._dynamo.utils.counters["graph_break"])}


def results(layer: Layer, run: Callable[[Tensor], Tensor], x: Tensor) -> tuple[Tensor, list[Tensor]]:
    layer.zero_grad()
    torch.compiler.cudagraph_mark_step_begin()
    y = run(x)
    y.float().square().mean().backward()
    return y.detach().clone(), [parameter.grad.clone() for parameter in layer.parameters()]


def check(name: str, run: Callable[[], dict[str, Any]]) -> None:
    said: dict[str, Any] | str
    try:
        said, fine = run(), True
    except Exception:
        said, fine = traceback.format_exc(limit=4), False
    votes: list[Any] = [None] * world
    dist.all_gather_object(votes, (fine, said))
    failed = [f"rank {r}: {text}" for r, (fine, text) in enumerate(votes) if not fine]
    rows.append({"check": name, "ok": not failed, "said": failed or said})
    if rank == 0:
        print("FAIL" if failed else "ok  ", name, *(failed or [said]), flush=True)


check("plain", lambda: loop(False, 1, (ROWS,)))
check("4 micro-batches", lambda: loop(False, 4, (ROWS,)))
check("checkpointing", lambda: loop(True, 1, (ROWS,)))
check("checkpointing, 4 micro-batches, three lengths", lambda: loop(True, 4, (512, 768, 1024)))
check("several plans on two streams", several_plans)
check("layers under torch.compile", lambda: compiled(None))
check("layers under torch.compile, reduce-overhead", lambda: compiled("reduce-overhead"))

if rank == 0 and len(sys.argv) > 1:
    found = {"machine": torch.cuda.get_device_name(), "world": world, "torch": torch.__version__, "rows": rows}
    Path(sys.argv[1]).write_text(json.dumps(found, indent=1))
status = int(any(not row["ok"] for row in rows))
dist.barrier()
sys.stdout.flush()
os._exit(status)
