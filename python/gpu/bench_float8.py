"""
Times forward passes of Llama-3 blocks in 8-bit floats with scales of rows, TP + SP, as `parallelize(fp8="rowwise")` runs
them and as torch.compile does:

    torchrun --nproc-per-node N python/gpu/bench_float8.py JSON [LENGTH..]

Both quantize what the linears read, weights too, in each call. PyTorch's side gathers the quantized tokens; it is
compiled with and without async-TP, with and without fast accumulation, and the fastest counts. Values are compared
first. Milliseconds are of calls back to back on the slowest rank, the median of rounds in which all of one setting take turns.
"""

from __future__ import annotations

import functools
import json
import os
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parents[1] / folder) for folder in ("src", "examples")]

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol
import torch.nn.functional as F  # noqa: N812
from timing import once, slowest
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from train_llama import Llama, Sizes, rotations, torchtitans_plan, turned

import braid_torch

ROUNDS = 7
MILLISECONDS_A_ROUND = 60.0
E4M3 = torch.float8_e4m3fn
MODELS = {
    "Llama-3 8B": Sizes(layers=2, words=512),
    "Llama-3 70B": Sizes(width=8192, heads=64, kv_heads=8, hidden=28672, layers=1, words=512),
}

torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl", device_id=torch.device("cuda", torch.cuda.current_device()))
world, rank, group = dist.get_world_size(), dist.get_rank(), dist.group.WORLD
assert group is not None
MESH = init_device_mesh("cuda", (world,), mesh_dim_names=("tp",))


def quantized(x: Tensor) -> tuple[Tensor, Tensor]:
    scale = x.float().abs().amax(-1, keepdim=True).clamp_min(1e-12) / 448.0
    return (x.float() / scale).clamp(-448.0, 448.0).to(E4M3), scale


def product(x: Tensor, scale: Tensor, weight: Tensor, fast: bool) -> Tensor:
    w, of_w = quantized(weight)
    return torch._scaled_mm(x, w.t(), scale_a=scale, scale_b=of_w.t(), out_dtype=torch.bfloat16, use_fast_accum=fast)


def gathered(x: Tensor) -> tuple[Tensor, Tensor]:
    """All tokens' quantized rows, and their scales."""
    values, scale = quantized(x)
    return funcol.all_gather_tensor(values, 0, group), funcol.all_gather_tensor(scale, 0, group)


def scattered(y: Tensor) -> Tensor:
    return funcol.reduce_scatter_tensor(y, "sum", 0, group)


def block(x: Tensor, turns: Tensor, norms: list[Tensor], weights: dict[str, Tensor], size: int, fast: bool) -> Tensor:
    """Of a device's tokens [tokens, width], with its parts of the weights."""
    to = functools.partial(product, fast=fast)
    h, scale = gathered(F.rms_norm(x, x.shape[-1:], norms[0], 1e-5))
    q, k, v = (to(h, scale, weights[name]).view(1, h.shape[0], -1, size) for name in ("wq", "wk", "wv"))
    q, k = turned(q, turns), turned(k, turns)
    y = F.scaled_dot_product_attention(*(each.transpose(1, 2) for each in (q, k, v)), is_causal=True, enable_gqa=True)
    x = x + scattered(to(*quantized(y.transpose(1, 2).reshape(h.shape[0], -1)), weights["wo"]))
    h, scale = gathered(F.rms_norm(x, x.shape[-1:], norms[1], 1e-5))
    y = F.silu(to(h, scale, weights["w1"])) * to(h, scale, weights["w3"])
    return x + scattered(to(*quantized(y), weights["w2"]))


def local(parameter: Any) -> Tensor:
    found: Tensor = (parameter.to_local() if hasattr(parameter, "to_local") else parameter).detach()
    return found


def parts_of(layer: nn.Module) -> tuple[list[Tensor], dict[str, Tensor]]:
    norms = [local(getattr(layer, f"{name}_norm").weight) for name in ("attention", "ffn")]
    linears = {**dict(layer.attention.named_children()), **dict(layer.feed_forward.named_children())}
    return norms, {name: local(each.weight) for name, each in linears.items()}


def model_of(sizes: Sizes) -> nn.Module:
    torch.manual_seed(1)
    with torch.device("cuda"):
        made = Llama(sizes).to(torch.bfloat16)
    os.environ["BRAID_PARALLELIZE"] = "always"
    return braid_torch.parallelize(made, MESH, torchtitans_plan(True), fp8="rowwise")


def timed(name: str, length: int) -> dict[str, Any]:
    sizes = MODELS[name]
    size = sizes.width // sizes.heads
    model, turns = model_of(sizes), rotations(size, length, "cuda")
    layers = list(model.layers.values())
    parts = [parts_of(layer) for layer in layers]
    generator = torch.Generator("cuda").manual_seed(10 + rank)
    x = torch.randn(1, length // world, sizes.width, device="cuda", generator=generator).to(torch.bfloat16)

    def ours() -> Tensor:
        y = x
        for layer in layers:
            y = layer(y, turns)
        return y

    def theirs(of_block: Callable[..., Tensor], fast: bool) -> Tensor:
        y = x[0]
        for norms, weights in parts:
            y = of_block(y, turns, norms, weights, size, fast)
        return y

    eager = functools.partial(theirs, block, False)
    expected = eager().double()
    distance = slowest(float((ours()[0].double() - expected).norm() / expected.norm()))
    row: dict[str, Any] = {"name": f"{name}, {length} tokens", "distance": distance, "ms": {}}
    rows.append(row)
    ratios = []
    for asynchronous in (False, True):
        # What is compiled is timed before the next is: a change of settings compiles all anew.
        torch._dynamo.reset()
        torch._inductor.config._micro_pipeline_tp = asynchronous
        compiled = torch.compile(block)
        way = ", async-TP" if asynchronous else ""
        runs: dict[str, Callable[[], Tensor]] = {f"braid{way}": ours, **({} if asynchronous else {"eager": eager})}
        for fast in (False, True):
            label, run = f"compiled{way}{', fast' if fast else ''}", functools.partial(theirs, compiled, fast)
            try:
                run()
                runs[label] = run
            except Exception as error:  # noqa: BLE001
                row[label] = f"{type(error).__name__}: {error}"[:300]
        counts = {}
        for label, run in runs.items():
            for _ in range(3):
                run()
            counts[label] = max(2, int(MILLISECONDS_A_ROUND / once(run, 3)[0]))
        times: dict[str, list[float]] = {label: [] for label in runs}
        for _ in range(ROUNDS):
            for label, run in runs.items():
                times[label].append(once(run, counts[label])[0])
        found = {label: statistics.median(each) / len(layers) for label, each in times.items()}
        row["ms"] |= found
        ratios.extend(ms / found[f"braid{way}"] for label, ms in found.items() if not label.startswith("braid"))
    row["best over braid"] = min(ratios)
    row["runs"] = sorted({f"{each['runs']}: {each['reason']}" for each in braid_torch.block_choices(model)})
    return row


rows: list[dict[str, Any]] = []
with torch.no_grad():
    for length in [int(each) for each in sys.argv[2:]] or [4096, 8192]:
        for name in MODELS:
            row = timed(name, length)
            torch.cuda.empty_cache()
            if rank == 0:
                print(json.dumps(row), flush=True)
                machine = f"{world} x {torch.cuda.get_device_name()}, PyTorch {torch.__version__}"
                Path(sys.argv[1]).write_text(json.dumps({"machine": machine, "rows": rows}, indent=1))
dist.barrier()
dist.destroy_process_group()
