"""
Times plans of blocks beside PyTorch's own ways: torchrun --nproc-per-node N python/gpu/bench_models.py FOLDER [JSON]

FOLDER has `braid compile` of examples/transformer/moe-experts.ts in folders moe-*, of llama-decode.ts in decode-* and of
python/gpu/scaled-matmul.ts in scaled-* and, with FAST=1, scaledfast-* and, with BLOCKS=1 or 128, scaledblocks-*, for N
devices in bfloat16. Each is compared with PyTorch's result first. Milliseconds are of calls back to back on the slowest
rank, median of rounds in which all take turns.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symmetric
import torch.nn.functional as F
from timing import once
from torch import Tensor

import braid_torch

Run = Callable[[], Tensor]
ROUNDS = 7
MILLISECONDS_A_ROUND = 30.0
BF16 = torch.bfloat16
BASE = 10000.0

torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl", device_id=torch.device("cuda", torch.cuda.current_device()))
world, rank, group = dist.get_world_size(), dist.get_rank(), dist.group.WORLD
assert group is not None
rows: list[dict[str, Any]] = []


def randn(*shape: int, seed: int, scale: float = 1.0) -> Tensor:
    made = torch.Generator("cuda").manual_seed(seed)
    return (torch.randn(*shape, device="cuda", generator=made) * scale).to(BF16)


def measured(name: str, runs: dict[str, Run], expected: str) -> None:
    """`expected` is the run that the others are compared with, except "alone", a part of the work."""
    right = runs[expected]().float().clone()
    counts, errors = {}, {}
    for each, run in runs.items():
        for _ in range(3):
            found = run()
        # A tie of two experts may be broken in another way: the median token is looked at, and the part that differs.
        if each != "alone":
            tokens = (found.float().view(right.shape) - right).norm(dim=-1) / right.norm(dim=-1)
            errors[each] = [float(tokens.median()), float((tokens > 0.05).float().mean())]
        counts[each] = max(2, min(200, int(MILLISECONDS_A_ROUND / once(run, 3)[0])))
    times: dict[str, list[float]] = {each: [] for each in runs}
    for _ in range(ROUNDS):
        for each, run in runs.items():
            times[each].append(once(run, counts[each])[0])
    ms = {each: statistics.median(times[each]) for each in runs}
    rows.append({"name": name, "ms": ms, "errors": errors, "spread": {e: [min(t), max(t)] for e, t in times.items()}})
    if rank == 0:
        notes = {each: f" (error {error:.1e}, {part:.2%} differ)" for each, (error, part) in errors.items()}
        cells = [f"{each} {value:.3f} ms{notes.get(each, '')}" for each, value in ms.items()]
        best = min(value for each, value in ms.items() if each not in ("braid", "alone"))
        print(f"{name:24} best/braid {best / ms['braid']:.3f}; {'; '.join(cells)}", flush=True)


def graphed(run: Run) -> Run:
    """Replays `run`; its result is overwritten by each replay."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            run()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = run()

    def replay() -> Tensor:
        graph.replay()
        return result

    return replay


# A mixture of experts on all devices: each has 1 / N of the experts and of the tokens.


def route(x: Tensor, router: Tensor, top: int) -> tuple[Tensor, Tensor]:
    weights, experts = torch.topk(torch.softmax(x @ router.t(), -1), top, -1)
    return weights / weights.sum(-1, keepdim=True), experts.view(-1)


def by_expert(x: Tensor, router: Tensor, top: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    weights, experts = route(x, router, top)
    order = torch.argsort(experts, stable=True)
    counts = torch.histc(experts.float(), router.shape[0], 0, router.shape[0] - 1).long()
    return weights, order, counts, x[order // top]


def local_order(received: Tensor, total: int) -> tuple[Tensor, Tensor]:
    """`received` [ranks, experts] rows, which came by rank: their order by expert, and the ends of the experts."""
    expert = torch.arange(received.shape[1], device="cuda").repeat(received.shape[0])
    order = torch.argsort(torch.repeat_interleave(expert, received.view(-1), output_size=total), stable=True)
    return order, received.sum(0).cumsum(0).int()


def swiglu(h: Tensor) -> Tensor:
    gate, up = h.chunk(2, -1)
    return F.silu(gate) * up


def unpermute(made: Tensor, order: Tensor, weights: Tensor) -> Tensor:
    own = torch.empty_like(made)
    own[order] = made
    return (own.view(*weights.shape, -1) * weights.unsqueeze(-1)).sum(1)


def moe(name: str, folder: Path) -> None:
    """
    alone-NAME, if there is one, is a plan of one device with the experts of a device, as many tokens and room for as many
    rows: what a device has to do without exchanging anything.
    """
    plan, alone = braid_torch.load(folder), folder.with_name(f"alone-{name}")
    shapes = {each["named"]: each["shape"] for each in json.loads((folder / "plan.json").read_text())["inputs"]}
    _, tokens, hidden = shapes["x"]
    experts, features = shapes["gate"][0], shapes["gate"][-1]
    top, own = int(name.split("-top")[1]), experts // world
    x = randn(1, tokens, hidden, seed=rank)
    router = randn(experts, hidden, seed=10, scale=hidden**-0.5)
    gate, up = (randn(own, 1, 1, hidden, features, seed=20 + 2 * rank + i, scale=hidden**-0.5) for i in range(2))
    down = randn(own, 1, 1, features, hidden, seed=40 + rank, scale=features**-0.5)
    w13 = torch.cat([gate.view(own, hidden, features), up.view(own, hidden, features)], -1)
    w13 = w13.transpose(1, 2).contiguous().transpose(1, 2)
    w2 = down.view(own, features, hidden).transpose(1, 2).contiguous().transpose(1, 2)
    flat = x.view(tokens, hidden)

    def exchange(sent: Tensor, to: list[int], given: list[int]) -> Tensor:
        received = sent.new_empty(sum(given), hidden)
        dist.all_to_all_single(received, sent, given, to)
        return received

    def dropless(route_: Any, order_: Any, act: Any, join: Any) -> Tensor:
        weights, order, counts, sent = route_(flat, router, top)
        received = torch.empty_like(counts)
        dist.all_to_all_single(received, counts)
        to, given = torch.stack([counts, received]).view(2, world, own).sum(-1).tolist()
        arrived = exchange(sent, to, given)
        places, ends = order_(received.view(world, own), arrived.shape[0])
        h = act(torch._grouped_mm(arrived[places], w13, offs=ends))
        y = torch.empty_like(arrived)
        y[places] = torch._grouped_mm(h, w2, offs=ends)
        return join(exchange(y, given, to), order, weights)

    compiled = [torch.compile(each, dynamic=True) for each in (swiglu, unpermute)]
    compiled_route = torch.compile(by_expert)
    runs: dict[str, Run] = {
        "eager": lambda: dropless(by_expert, local_order, swiglu, unpermute),
        "compiled": lambda: dropless(compiled_route, local_order, *compiled),
        "braid": lambda: first(plan(x, router, gate, up, down)),
    }
    if alone.exists():
        floor = braid_torch.load(alone, [dist.new_group([each]) for each in range(world)][rank])
        runs["alone"] = lambda: first(floor(x, router[:own].contiguous(), gate, up, down))
    measured(name, runs, "eager")


def first(results: Any) -> Tensor:
    return results[0] if isinstance(results, (tuple, list)) else results


# A step of decoding: tensor parallel, each device has some groups of heads.


def decode(name: str, folder: Path) -> None:
    plan = braid_torch.load(folder)
    shapes = {each["named"]: each["shape"] for each in json.loads((folder / "plan.json").read_text())["inputs"]}
    sequences, hidden = shapes["x"]
    groups, length, size = shapes["keys"][1] // world, shapes["keys"][3], shapes["keys"][4]
    per_group = shapes["w_qkv"][0] // shapes["keys"][1] // size - 2
    features = shapes["w_gate"][0] // world
    heads = groups * per_group
    at = length - 65
    x = randn(sequences, hidden, seed=1)
    position = torch.full([sequences], at, device="cuda", dtype=torch.int64)
    keys, values = (randn(sequences, groups, 1, length, size, seed=2 + 2 * rank + i) for i in range(2))
    norm1, norm2 = (1 + randn(hidden, seed=10 + i, scale=0.1) for i in range(2))
    scale = hidden**-0.5
    w_qkv = randn(groups * (per_group + 2) * size, hidden, seed=20 + rank, scale=scale)
    w_out = randn(hidden, heads * size, seed=30 + rank, scale=scale)
    w_gate, w_up = (randn(features, hidden, seed=40 + 2 * rank + i, scale=scale) for i in range(2))
    w_down = randn(hidden, features, seed=50 + rank, scale=(features * world) ** -0.5)
    w13 = torch.cat([w_gate, w_up])
    own_keys, own_values = keys.clone().view(sequences, groups, length, size), values.clone().view(
        sequences, groups, length, size
    )
    frequency = BASE ** (-2 * torch.arange(size // 2, device="cuda") / size)
    angle = position.view(-1, 1, 1, 1) * frequency
    cosine, sine = angle.cos(), angle.sin()
    turns = [each.view(sequences, size // 2) for each in (cosine, sine)]
    which = torch.arange(sequences, device="cuda")
    mask = (torch.arange(length, device="cuda") <= position.view(-1, 1)).view(sequences, 1, 1, length)
    shared = symmetric.empty(sequences, hidden, dtype=BF16, device="cuda")
    symmetric.rendezvous(shared, group=group)

    def rotated(part: Tensor) -> Tensor:
        a, b = part.float().chunk(2, -1)
        return torch.cat([a * cosine - b * sine, b * cosine + a * sine], -1).to(BF16)

    def qkv_of(x: Tensor, norm1: Tensor) -> Tensor:
        return F.rms_norm(x, [hidden], norm1, 1e-6)

    def attention_inputs(qkv: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        parts = qkv.view(sequences, groups, per_group + 2, size)
        return rotated(parts[:, :, :per_group]), rotated(parts[:, :, per_group : per_group + 1]), parts[:, :, -1]

    def summed(part: Tensor, w: Tensor) -> Tensor:
        torch.mm(part, w.t(), out=shared)
        return torch.ops.symm_mem.one_shot_all_reduce(shared, "sum", group.group_name)

    def step(attend: Any, inputs_: Any, norm_: Any, act: Any) -> Tensor:
        q, k, v = inputs_(torch.mm(qkv_of(x, norm1), w_qkv.t()))
        own_keys[which, :, position] = k.squeeze(2)
        own_values[which, :, position] = v
        r, n = norm_(x, summed(attend(q).reshape(sequences, heads * size), w_out), norm2)
        return r + summed(act(torch.mm(n, w13.t())), w_down)

    def add_norm(x: Tensor, y: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        r = x + y
        return r, F.rms_norm(r, [hidden], weight, 1e-6)

    def masked(q: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(q, own_keys, own_values, mask)

    def exact(q: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(q, own_keys[:, :, : at + 1], own_values[:, :, : at + 1])

    eager = (attention_inputs, add_norm, swiglu)
    compiled = tuple(torch.compile(each) for each in eager)
    runs: dict[str, Run] = {
        "eager, exact length": graphed(lambda: step(exact, *eager)),
        "eager, mask": graphed(lambda: step(masked, *eager)),
        "compiled, exact length": graphed(lambda: step(exact, *compiled)),
        "braid": lambda: first(plan(x, position, *turns, keys, values, norm1, w_qkv, w_out, norm2, w_gate, w_up, w_down)),
    }
    measured(name, runs, "eager, exact length")


# A scaled matmul alone: 8-bit floats of about 1, with scales of rows, of tensors or of blocks.


def scaled(name: str, folder: Path) -> None:
    plan = braid_torch.load(folder)
    (m, k), (n, _), of_a, of_b = (each["shape"] for each in json.loads((folder / "plan.json").read_text())["inputs"])
    a, b = randn(m, k, seed=1).to(torch.float8_e4m3fn), randn(n, k, seed=2).to(torch.float8_e4m3fn)
    own = [torch.rand(shape, device="cuda") for shape in (of_a, of_b)]
    fast = name.startswith("scaledfast")
    of_rows, of_columns = own
    if len(of_a) == 2:
        # Of 1 x 128, those of neighbouring rows lie side by side, and PyTorch takes the transpose of B's.
        of_rows, of_columns = own[0].t(), own[1] if of_b == [k // 128, n] else own[1].t()
    elif of_a:
        of_rows, of_columns = own[0].view(-1, 1), own[1].view(1, -1)
    runs: dict[str, Run] = {
        "_scaled_mm": lambda: torch._scaled_mm(a, b.t(), of_rows, of_columns, out_dtype=BF16, use_fast_accum=fast),
        "braid": lambda: first(plan(a, b, *own)),
    }
    measured(name, runs, "_scaled_mm")


KINDS = {"moe": moe, "decode": decode, "scaled": scaled, "scaledfast": scaled, "scaledblocks": scaled}


def main() -> None:
    folder = Path(sys.argv[1])
    for plan in sorted(folder.iterdir()):
        kind = KINDS.get(plan.name.split("-")[0])
        if kind is None:
            continue
        kind(plan.name, plan)
        torch.cuda.empty_cache()
    if rank == 0 and len(sys.argv) > 2:
        Path(sys.argv[2]).write_text(json.dumps(rows, indent=1))
    dist.destroy_process_group()


main()
