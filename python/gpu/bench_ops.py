"""
Times braid_torch's ops and linear layers beside PyTorch's: torchrun --nproc-per-node N python/gpu/bench_ops.py [JSON [ONLY]]

ONLY: part of the names of the rows to measure, such as "few rows".

Milliseconds are of calls back to back, on the slowest rank, median of rounds in which all take turns; the host's
microseconds are those of one call meanwhile.
"""

from __future__ import annotations

import functools
import json
import math
import os
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

import torch
import torch.distributed as dist
from timing import once
from torch import Tensor

import braid_torch
from braid_torch import torch_ops, torch_others
from braid_torch.torch_linear import column_parallel_linear, row_parallel_linear

Run = Callable[[], Any]
ROUNDS = 7
MILLISECONDS_A_ROUND = 15.0
DTYPE = torch.bfloat16
ONLY = sys.argv[2] if len(sys.argv) > 2 else ""

torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl", device_id=torch.device("cuda", torch.cuda.current_device()))
world, rank, group = dist.get_world_size(), dist.get_rank(), dist.group.WORLD
GROUP = group.group_name
rows: list[dict[str, Any]] = []


def randn(*shape: int) -> Tensor:
    return torch.randn(*shape, device="cuda", dtype=DTYPE) / shape[-1] ** 0.5


def measured(name: str, runs: dict[str, Run]) -> None:
    times: dict[str, list[float]] = {each: [] for each in runs}
    hosts: dict[str, list[float]] = {each: [] for each in runs}
    counts = {}
    for each, run in list(runs.items()):
        try:
            for _ in range(3):
                run()
            counts[each] = max(2, min(50, int(MILLISECONDS_A_ROUND / once(run, 3)[0])))
        except RuntimeError as error:
            if each == "braid":
                raise
            print(f"{name}: {each}: {error}", file=sys.stderr)
            del runs[each]
    for _ in range(ROUNDS):
        for each, run in runs.items():
            milliseconds, host = once(run, counts[each])
            times[each].append(milliseconds)
            hosts[each].append(host)
    row = {"name": name, "ms": {each: statistics.median(times[each]) for each in runs}}
    rows.append({**row, "host us": {each: statistics.median(hosts[each]) for each in runs}})
    if rank == 0:
        cells = [f"{each} {ms:.3f} ms" for each, ms in row["ms"].items()]
        ratio = (
            min(ms for each, ms in row["ms"].items() if each not in ("braid", "its plan", "mm")) / row["ms"]["braid"]
        )
        fused = row["ms"].get("torch's op", math.nan) / row["ms"]["braid"]
        host = ", ".join(f"{statistics.median(hosts[each]):.0f}" for each in runs)
        print(f"{name:34} {', '.join(cells)}; best/braid {ratio:.3f}, op/braid {fused:.3f}; host {host} us", flush=True)


def ways(all_ways: dict[str, torch_others.Way], a: Tensor, weights: list[Tensor]) -> dict[str, Run]:
    return {name: functools.partial(way, a, weights) for name, way in all_ways.items()}


def planned(a: Tensor, weights: list[Tensor]) -> dict[str, Run]:
    """The plan of the last call, whether it was the fastest or not."""
    key = list(torch_ops._measured)[-1]
    way = torch_ops._measured[key].get("braid")
    return {} if way is None else {"its plan": functools.partial(way, a, weights)}


def gather(m: int, k: int, columns: tuple[int, ...], label: str = "") -> None:
    name = f"AG {label} {m} x {k} x {'+'.join(map(str, columns))}"
    if ONLY not in name:
        return
    a = randn(m // world, k)
    weights = [randn(n, k).t() for n in columns]
    whole = randn(m, k)
    others = ways(torch_others.gather_ways(0, group, False), a, weights)
    run = {"braid": lambda: braid_torch.all_gather_matmul(a, weights, 0, GROUP, False)}
    run["braid"]()
    run |= {**planned(a, weights), **others}
    run["mm"] = lambda: [torch.mm(whole, weight) for weight in weights]
    measured(name, run)


def scatter(m: int, k: int, n: int, label: str = "") -> None:
    name = f"RS {label} {m} x {k} x {n}"
    if ONLY not in name:
        return
    a, b = randn(m, k), randn(n, k).t()
    others = ways(torch_others.scatter_ways("sum", 0, group), a, [b])
    run = {"braid": lambda: braid_torch.matmul_reduce_scatter(a, b, "sum", 0, GROUP)}
    run["braid"]()
    run |= {**planned(a, [b]), **others}
    run["mm"] = lambda: torch.mm(a, b)
    measured(name, run)


def reduce(m: int, k: int, n: int, label: str = "") -> None:
    name = f"AR {label} {m} x {k} x {n}"
    if ONLY not in name:
        return
    a, b = randn(m, k), randn(n, k).t()

    def library() -> Tensor:
        result = torch.mm(a, b)
        dist.all_reduce(result)
        return result

    run = {"braid": lambda: braid_torch.matmul_all_reduce(a, b, "sum", GROUP), "mm and all_reduce": library}
    run["mm"] = lambda: torch.mm(a, b)
    measured(name, run)


def quantized(x: Tensor, rowwise: bool) -> tuple[Tensor, Tensor]:
    peak = x.abs().amax(-1, keepdim=True) if rowwise else x.abs().max()
    scale = (peak / torch.finfo(torch.float8_e4m3fn).max).float()
    return (x / scale).to(torch.float8_e4m3fn), scale


def same(found: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(found, expected, rtol=2e-2, atol=2e-2 * float(expected.abs().max()))


def scaled(op: str, m: int, k: int, n: int, rowwise: bool = True, fast: bool = False) -> None:
    """The two ops of 8-bit floats: `op` is AG or RS."""
    name = f"{op} fp8 {'row' if rowwise else 'tensor'}{' fast' if fast else ''} {m} x {k} x {n}"
    if ONLY not in name:
        return
    gathers = op == "AG"
    whole, of_whole = quantized(randn(m, k), rowwise)
    a, of_a = quantized(randn(m // world, k), rowwise) if gathers else (whole, of_whole)
    w, of_w = quantized(randn(n, k), rowwise)
    b, of_b = w.t(), of_w.t() if rowwise else of_w
    run: dict[str, Run]
    if gathers:
        others = ways(torch_others.scaled_gather_ways(0, group, rowwise, [DTYPE], [fast]), a, [b, of_a, of_b])
        gather8 = torch_ops.all_gather_scaled_matmul
        run = {"braid": lambda: gather8(a, [b], of_a, [of_b], 0, GROUP, [DTYPE], [fast])}
        same(run["braid"]()[1][0], others["all_gather and _scaled_mm"]()[1][0])
    else:
        others = ways(torch_others.scaled_scatter_ways("sum", 0, group, DTYPE, fast), a, [b, of_a, of_b])
        scatter8 = torch_ops.scaled_matmul_reduce_scatter
        run = {"braid": lambda: scatter8(a, b, of_a, of_b, "sum", 0, GROUP, DTYPE, fast)}
        same(run["braid"](), others["_scaled_mm and reduce_scatter"]())
    run |= {**planned(a, [b, of_a, of_b]), **others}
    run["mm"] = lambda: torch._scaled_mm(whole, b, of_whole, of_b, out_dtype=DTYPE, use_fast_accum=fast)
    measured(name, run)


class TitanColumn(torch.autograd.Function):
    """As torchtitan's AllGatherLinear: keeps a slice of the gathered columns, and gathers its transposed for dw."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, w: Tensor, op: Any) -> Tensor:
        whole, (y,) = op[0](x, [w.t()], 0, GROUP, return_A=True)
        ctx.save_for_backward(whole.chunk(world, dim=-1)[rank].contiguous(), w)
        ctx.op = op
        return y

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> Any:
        part, w = ctx.saved_tensors
        dx = ctx.op[1](dy, w, "sum", 0, GROUP)
        _, (dw,) = ctx.op[0](part.t().contiguous(), [dy], 0, GROUP, return_A=False)
        return dx, dw.t().contiguous(), None


class TitanRow(torch.autograd.Function):
    """As torchtitan's LinearReduceScatter."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, w: Tensor, op: Any) -> Tensor:
        ctx.save_for_backward(x, w)
        ctx.op = op
        return op[1](x, w.t(), "sum", 0, GROUP)

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> Any:
        x, w = ctx.saved_tensors
        whole, (dx,) = ctx.op[0](dy, [w], 0, GROUP, return_A=True)
        return dx, torch.mm(whole.t(), x, out_dtype=torch.float32).to(w.dtype), None


class NcclColumn(torch.autograd.Function):
    """In Megatron's order: the gather for dw runs beside the matmul for dx, the scatter of dx beside that for dw."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, w: Tensor) -> Tensor:
        ctx.save_for_backward(x, w)
        whole = x.new_empty(world * x.shape[0], x.shape[1])
        dist.all_gather_into_tensor(whole, x)
        return torch.mm(whole, w.t())

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> Any:
        x, w = ctx.saved_tensors
        whole = x.new_empty(world * x.shape[0], x.shape[1])
        gathering = dist.all_gather_into_tensor(whole, x, async_op=True)
        partial = torch.mm(dy, w)
        gathering.wait()
        dx = torch.empty_like(x)
        scattering = dist.reduce_scatter_tensor(dx, partial, async_op=True)
        dw = torch.mm(dy.t(), whole)
        scattering.wait()
        return dx, dw


class NcclRow(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, w: Tensor) -> Tensor:
        ctx.save_for_backward(x, w)
        partial = torch.mm(x, w.t())
        y = partial.new_empty(partial.shape[0] // world, partial.shape[1])
        dist.reduce_scatter_tensor(y, partial)
        return y

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> Any:
        x, w = ctx.saved_tensors
        whole = dy.new_empty(world * dy.shape[0], dy.shape[1])
        dist.all_gather_into_tensor(whole, dy)
        return torch.mm(whole, w), torch.mm(whole.t(), x)


def layers(m: int, width: int, hidden: int, label: str) -> None:
    """Forward and backward of a column-parallel and of a row-parallel linear."""
    op = [torch_others.torchs(name) for name in ("_fused_all_gather_matmul", "_fused_matmul_reduce_scatter")]
    for name, shape, sizes, ways in (
        ("column", (m // world, width), (hidden // world, width), (column_parallel_linear, TitanColumn, NcclColumn)),
        ("row", (m, hidden // world), (width, hidden // world), (row_parallel_linear, TitanRow, NcclRow)),
    ):
        x, w = randn(*shape).requires_grad_(), randn(*sizes).requires_grad_()
        own, titan, nccl = ways
        dy = torch.ones_like(own(x, w, GROUP))

        def step(y: Tensor) -> None:
            torch.autograd.grad(y, (x, w), dy)

        run: dict[str, Run] = {
            "braid": lambda: step(own(x, w, GROUP)),
            "torch's op": lambda: step(titan.apply(x, w, op)),
            "NCCL": lambda: step(nccl.apply(x, w)),
        }
        expected = torch.autograd.grad(nccl.apply(x, w), (x, w), dy)
        for found, other in zip(torch.autograd.grad(own(x, w, GROUP), (x, w), dy), expected, strict=True):
            torch.testing.assert_close(found, other, rtol=3e-2, atol=3e-2 * float(other.abs().max()))
        measured(f"{name} forward+backward {label} {m}, {width}, {hidden}", run)


torch.manual_seed(rank)
SIX = (
    (32768, 16384, 8192),
    (8192, 8192, 8192),
    (16384, 16384, 2048),
    (2048, 8192, 8192),
    (8192, 1024, 8192),
    (16384, 2048, 1024),
)
for m, k, n in SIX:
    scaled("AG", m, k, n)
    scaled("RS", m, k, n)
for op in ("AG", "RS"):
    scaled(op, 8192, 8192, 8192, False)
    scaled(op, 8192, 8192, 8192, True, True)
LLAMA = {"8B": (4096, 14336, 1024), "70B": (8192, 28672, 1024)}
for m, k, n in SIX:
    gather(m, k, (n,))
for m, k, n in SIX:
    scatter(m, k, n)
for name, (width, hidden, shared) in LLAMA.items():
    for m in (2048, 8192):
        gather(m, width, ((width + 2 * shared) // world,), f"{name} qkv")
        gather(m, width, (hidden // world, hidden // world), f"{name} w1, w3")
        scatter(m, width // world, width, f"{name} wo")
        scatter(m, hidden // world, width, f"{name} w2")
for m in (2, 16, 64, 128, 256, 512, 1024):
    gather(m, 8192, (28672 // world,), "few rows")
    scatter(m, 28672 // world, 8192, "few rows")
    reduce(m, 28672 // world, 8192, "few rows")
for m in (2048, 8192):
    reduce(m, 28672 // world, 8192, "70B w2")
if ONLY in "column row forward+backward":
    layers(8192, 8192, 28672, "70B")
    layers(8192, 4096, 14336, "8B")

if rank == 0:
    for start, over in (
        ("AG", "torch's op"),
        ("RS", "torch's op"),
        ("column", "torch's op"),
        ("row", "torch's op"),
        ("column", "NCCL"),
        ("row", "NCCL"),
    ):
        ratios = [
            row["ms"][over] / row["ms"]["braid"] for row in rows if row["name"].startswith(start) and over in row["ms"]
        ]
        if ratios:
            mean = statistics.geometric_mean(ratios)
            print(f"{start}: {mean:.3f} times {over}, least {min(ratios):.3f}, {len(ratios)} shapes", flush=True)
    if len(sys.argv) > 1:
        nccl = ".".join(map(str, torch.cuda.nccl.version()))
        machine = f"{world} x {torch.cuda.get_device_name()}, PyTorch {torch.__version__}, NCCL {nccl}"
        chosen = braid_torch.choices()
        Path(sys.argv[1]).write_text(json.dumps({"machine": machine, "rows": rows, "choices": chosen}, indent=1))
dist.barrier()
sys.stdout.flush()
os._exit(0)
