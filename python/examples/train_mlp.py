"""
Trains a tensor-parallel MLP for 100 steps, twice with Braid and once with NCCL's collectives:

    torchrun --nproc-per-node 2 python/examples/train_mlp.py

Prints the losses, whether both runs with Braid have the same bits, how far NCCL's are, and the times of a step.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

import braid_torch

ROWS, WIDTH, HIDDEN, STEPS = 4096, 4096, 16384, 100


class Gathered(torch.autograd.Function):
    """A gather of rows by NCCL, whose gradient is scattered."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        whole = x.new_empty(x.shape[0] * dist.get_world_size(), *x.shape[1:])
        dist.all_gather_into_tensor(whole, x.contiguous())
        return whole

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        part = gradient.new_empty(gradient.shape[0] // dist.get_world_size(), *gradient.shape[1:])
        dist.reduce_scatter_tensor(part, gradient.contiguous())
        return part


class Scattered(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return Gathered.backward(ctx, x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return Gathered.forward(ctx, gradient)


class NcclMlp(nn.Module):
    def __init__(self, up: Tensor, down: Tensor) -> None:
        super().__init__()
        self.up, self.down = nn.Parameter(up.clone()), nn.Parameter(down.clone())

    def forward(self, x: Tensor) -> Tensor:
        hidden = torch.relu(Gathered.apply(x) @ self.up.t())
        return Scattered.apply(hidden @ self.down.t())


class BraidMlp(nn.Module):
    def __init__(self, up: Tensor, down: Tensor) -> None:
        super().__init__()
        options = {"dtype": up.dtype, "device": up.device}
        self.up = braid_torch.ColumnParallelLinear(WIDTH, HIDDEN, **options)
        self.down = braid_torch.RowParallelLinear(HIDDEN, WIDTH, **options)
        with torch.no_grad():
            self.up.weight.copy_(up)
            self.down.weight.copy_(down)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(torch.relu(self.up(x)))


def train(kind: type[nn.Module]) -> tuple[list[float], float]:
    """The losses, and the milliseconds of a step in the second half."""
    torch.manual_seed(1)
    world, rank = dist.get_world_size(), dist.get_rank()
    options = {"device": "cuda", "dtype": torch.bfloat16}
    up = torch.randn(HIDDEN, WIDTH, **options).chunk(world)[rank] / WIDTH**0.5
    down = torch.randn(WIDTH, HIDDEN, **options).chunk(world, dim=1)[rank].contiguous() / HIDDEN**0.5
    model = kind(up, down)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    x = torch.randn(ROWS, WIDTH, **options).chunk(world)[rank].contiguous()
    target = torch.sin(3 * x).roll(1, dims=1)
    losses, start = [], 0.0
    for step in range(STEPS):
        if step == STEPS // 2:
            torch.cuda.synchronize()
            start = time.perf_counter()
        loss = (model(x) - target).float().square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    torch.cuda.synchronize()
    milliseconds = 1000 * (time.perf_counter() - start) / (STEPS - STEPS // 2)
    whole = torch.stack(losses)
    dist.all_reduce(whole, op=dist.ReduceOp.AVG)
    return whole.tolist(), milliseconds


def main() -> None:
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl", device_id=torch.device("cuda", torch.cuda.current_device()))
    (first, by_braid), (second, _), (nccl, by_nccl) = train(BraidMlp), train(BraidMlp), train(NcclMlp)
    if dist.get_rank() == 0:
        difference = max(abs(a - b) / b for a, b in zip(first, nccl, strict=True))
        print(f"loss {first[0]:.4f} to {first[-1]:.4f}; both runs with Braid equal: {first == second}")
        print(f"NCCL's losses differ by at most {difference:.2e} of themselves")
        print(f"a step: {by_braid:.2f} ms with Braid, {by_nccl:.2f} ms with NCCL, {by_nccl / by_braid:.2f} times")
        for choice in braid_torch.choices():
            print(f"  {choice['call']}: {choice['runs']}")
    dist.barrier()
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
