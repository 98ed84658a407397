"""
`braid_torch.parallelize` on GPUs, beside torch's parallelize_module on the same weights:

    python3 python/gpu/check_parallelize.py export FOLDER
    torchrun --nproc-per-node 2 python/gpu/check_parallelize.py run FOLDER
    torchrun --nproc-per-node 2 python/gpu/check_parallelize.py time FOLDER

`export` needs no GPU: it writes files of torch.export to the folder and compiles them. `run` compares values and
gradients, and trains. `time` measures whole steps of Llama-3 8B layers. Each goes on after a failure, prints a line for
each check, and writes them to FOLDER/MODE.json. A name after the folder runs that check alone: an illegal access ends
the whole process. Ends with status 1 if a check fails.
"""

from __future__ import annotations

import copy
import json
import os
import shlex
import subprocess
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parents[1] / folder) for folder in ("src", "examples")]

import torch
import torch.distributed as dist
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor
from torch.utils.checkpoint import checkpoint
from train_llama import Llama, Sizes, hugging_face, logits_of, rotations, torchtitans_plan

MODE, FOLDER = sys.argv[1], Path(sys.argv[2])
SMALL = Sizes(width=512, heads=4, kv_heads=2, hidden=1024, layers=2, words=512)
LARGE = Sizes()
RANK = int(os.environ.get("RANK", "0"))
rows: list[dict[str, Any]] = []


def check(name: str, run: Callable[[], dict[str, Any]]) -> None:
    if len(sys.argv) > 3 and name != sys.argv[3]:
        return
    start = time.perf_counter()
    try:
        facts = run()
        ok = facts.pop("ok", True)
    except Exception as error:  # noqa: BLE001
        ok, facts = False, {"error": f"{type(error).__name__}: {error}"[:2000], "trace": traceback.format_exc()[-3000:]}
    row = {"check": name, "ok": ok, "seconds": round(time.perf_counter() - start, 2), **facts}
    rows.append(row)
    if RANK == 0:
        shown = ", ".join(f"{key} {value}" for key, value in facts.items() if key != "trace")
        print(f"{'ok  ' if ok else 'FAIL'} {name} ({row['seconds']} s): {shown}"[:1500], flush=True)
        if "trace" in facts:
            print(facts["trace"], flush=True)


def finish() -> None:
    if RANK == 0:
        FOLDER.mkdir(parents=True, exist_ok=True)
        (FOLDER / f"{MODE}.json").write_text(json.dumps(rows, indent=1, default=str))
    failed = sum(not row["ok"] for row in rows)
    if RANK == 0:
        print(f"{len(rows) - failed} of {len(rows)} checks passed", flush=True)
    sys.exit(1 if failed else 0)


# Without GPUs.


def export_block(kind: str, sizes: Sizes, length: int, how: str) -> dict[str, Any]:
    from braid_torch import torch_twin
    from braid_torch.torch_arguments import flatten

    with torch.device("meta"):
        if kind == "hugging-face":
            block = hugging_face(sizes).to(torch.bfloat16).model.layers[0]
            half = torch.empty(1, length, sizes.width // sizes.heads, dtype=torch.bfloat16)
            call: Any = ((torch.empty(1, length, sizes.width, dtype=torch.bfloat16),), {"position_embeddings": (half, half)})
        else:
            block = Llama(sizes).to(torch.bfloat16).layers["0"]
            turns = torch.empty(length, sizes.width // sizes.heads // 2, dtype=torch.complex64)
            call = ((torch.empty(1, length, sizes.width, dtype=torch.bfloat16), turns), {})
    tensors, form = flatten(call)
    wholes = [torch_twin.Whole(tuple(each.shape), each.dtype) for each in tensors]
    file = FOLDER / f"{kind}-{sizes.width}-{length}-{how}.pt2"
    make = torch_twin._metas() if how == "meta" else torch_twin._fakes(how)
    twin = torch_twin.twin_of(block)
    exported = torch_twin._export(make, twin, block, form, wholes, file)
    again = torch_twin._export(make, twin, block, form, wholes, FOLDER / "again.pt2")
    facts = {"bytes": file.stat().st_size, "same digest": again.digest == exported.digest}
    return {**facts, "arguments": exported.arguments, "outputs": exported.outputs, "used": sorted(exported.used)}


def compile_block(file: Path, plan: str, half: str, length: int) -> dict[str, Any]:
    compiler = shlex.split(os.environ.get("BRAID_COMPILER", "npx --no-install braid"))
    names = {
        "llama": {
            "colwise": [f"attention.w{n}" for n in "qkv"] + ["feed_forward.w1", "feed_forward.w3"],
            "rowwise": ["attention.wo", "feed_forward.w2"],
            "norms": ["attention_norm", "ffn_norm"],
        },
        "hugging-face": {
            "colwise": [f"self_attn.{n}_proj" for n in "qkv"] + ["mlp.gate_proj", "mlp.up_proj"],
            "rowwise": ["self_attn.o_proj", "mlp.down_proj"],
            "norms": ["input_layernorm", "post_attention_layernorm"],
        },
    }[next(each for each in ("hugging-face", "llama") if file.name.startswith(each))]
    first = next(row["arguments"] for row in rows if row["check"] == f"export {file.stem}")[0]
    place = "Shard(1)" if plan == "sp" else "Replicate()"
    document: dict[str, Any] = {"mesh": {"tp": 2}, "inputs": {first: [place]}, "outputs": {"y": [place]}}
    document |= {f"module.{name}.weight": ["Shard(0)"] for name in names["colwise"]}
    document |= {f"module.{name}.weight": ["Shard(1)"] for name in names["rowwise"]}
    path = FOLDER / f"{file.stem}-{plan}.json"
    path.write_text(json.dumps(document))
    wanted = [first, *(f"module.{name}.weight" for kind in names.values() for name in kind)]
    flags = [] if half == "alone" else [f"--half={half}:minimal", f"--gradients=dy={','.join(wanted)}"]
    out = FOLDER / f"plan-{file.stem}-{plan}-{half}"
    command = [*compiler, "compile", str(file), f"--plan={path}", *flags, "--schedule=auto", "--profile=2xH200", "-o", str(out)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    text = " ".join((ended.stdout + ended.stderr).split())
    return {"ok": ended.returncode == 0, "status": ended.returncode, "text": text[:900]}


def exports() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    print(torch.__version__, flush=True)
    try:
        import transformers

        kinds = ["llama", "hugging-face"]
        print("transformers", transformers.__version__, flush=True)
    except ImportError as error:
        kinds = ["llama"]
        print("no transformers:", error, flush=True)
    hows = ["meta", "cpu", *(["cuda"] if torch.cuda.is_available() else [])]
    for kind in kinds:
        for sizes, length in ((SMALL, 256), (LARGE, 4096)):
            for how in hows:
                name = f"{kind}-{sizes.width}-{length}-{how}"
                check(f"export {name}", lambda k=kind, s=sizes, n=length, h=how: export_block(k, s, n, h))
            made = next((f for how in reversed(hows) if (f := FOLDER / f"{kind}-{sizes.width}-{length}-{how}.pt2").exists()), None)
            for plan in ("tp", "sp") if made else ():
                for half in ("alone", "forward", "backward"):
                    check(f"compile {made.stem} {plan} {half}", lambda m=made, p=plan, h=half, n=length: compile_block(m, p, h, n))


# On GPUs.


def pair(sizes: Sizes, plan: Any, kind: str = "llama", **options: Any) -> tuple[nn.Module, nn.Module]:
    """One model as torch parallelizes it, and one with the same weights by Braid."""
    import braid_torch

    models = []
    for switch in ("off", "always"):
        torch.manual_seed(1)
        with torch.device("cuda"):
            model = (hugging_face(sizes) if kind == "hugging-face" else Llama(sizes)).to(torch.bfloat16)
        os.environ["BRAID_PARALLELIZE"] = switch
        models.append(braid_torch.parallelize(model, MESH, copy.deepcopy(plan), **options))
    return models[0], models[1]


def tokens_of(sizes: Sizes, batch: int, length: int, seed: int = 0) -> Tensor:
    generator = torch.Generator("cuda").manual_seed(seed)
    return torch.randint(sizes.words, (batch, length), device="cuda", generator=generator)


def whole(tensor: Tensor) -> Tensor:
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def distance(one: Tensor, other: Tensor) -> float:
    a, b = whole(one.detach()).double(), whole(other.detach()).double()
    return float((a - b).norm() / b.norm().clamp_min(1e-30))


def loss_of(model: nn.Module, tokens: Tensor) -> Tensor:
    logits = logits_of(model, tokens)
    return F.cross_entropy(logits[:, :-1].flatten(0, 1).float(), tokens[:, 1:].flatten())


def what_runs(model: nn.Module) -> list[str]:
    import braid_torch

    return sorted({f"{each['runs']}: {each['reason']} [{each['call']}, {each['error']}]" for each in braid_torch.block_choices(model)})


def all_braid(model: nn.Module) -> bool:
    import braid_torch

    choices = braid_torch.block_choices(model)
    return bool(choices) and all(each["runs"] == "braid" for each in choices)


def compared(plan: Any, kind: str = "llama", batch: int = 1, length: int = 256, **options: Any) -> dict[str, Any]:
    theirs, ours = pair(SMALL, plan, kind, **options)
    tokens = tokens_of(SMALL, batch, length)
    with torch.no_grad():
        forward = distance(logits_of(ours, tokens), logits_of(theirs, tokens))
    for model in (theirs, ours):
        loss_of(model, tokens).backward()
    gradients = {
        name: distance(own.grad, other.grad)
        for (name, own), (_, other) in zip(ours.named_parameters(), theirs.named_parameters())
    }
    worst = max(gradients, key=lambda name: gradients[name])
    same_type = all(type(a.grad) is type(b.grad) for a, b in zip(ours.parameters(), theirs.parameters()))
    facts = {"forward": round(forward, 5), "worst gradient": f"{worst} {gradients[worst]:.4f}", "runs": what_runs(ours)}
    return {"ok": all_braid(ours) and forward < 0.02 and gradients[worst] < 0.05 and same_type, "types": same_type, **facts}


class Checkpointed(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, *args: Any) -> Any:
        return checkpoint(self.inner, *args, use_reentrant=False)


def chosen() -> dict[str, Any]:
    """Without the switch: by time."""
    from braid_torch.torch_block import _shared

    _, ours = pair(SMALL, torchtitans_plan(True))
    os.environ.pop("BRAID_PARALLELIZE")
    _shared.clear()
    loss_of(ours, tokens_of(SMALL, 1, 256)).backward()
    return {"runs": what_runs(ours)}


def trained(plan: Any, **how: Any) -> dict[str, Any]:
    """Losses beside each other, and two runs bit by bit."""
    losses: list[list[float]] = []
    for number in range(3):
        theirs, ours = pair(SMALL, plan)
        model = theirs if number == 0 else ours
        if how.get("checkpoint"):
            for name, layer in list(model.layers.items()):
                model.layers[name] = Checkpointed(layer)
        optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, foreach=False)
        if how.get("main_grad"):
            for each in model.parameters():
                each.main_grad = torch.zeros_like(each.detach().to_local() if isinstance(each, DTensor) else each, dtype=torch.float32)
        found = []
        for step in range(10):
            lengths = how.get("lengths", (256,))
            flying = [loss_of(model, tokens_of(SMALL, 1, lengths[step % len(lengths)], 10 * step + i)) for i in range(how.get("micro", 1))]
            for loss in flying:
                (loss / len(flying)).backward()
                found.append(loss.item())
            if how.get("main_grad"):
                for each in model.parameters():
                    if each.grad is None:
                        part = each.main_grad.to(each.dtype)
                        each.grad = DTensor.from_local(part, each.device_mesh, each.placements, run_check=False) if isinstance(each, DTensor) else part
                    each.main_grad.zero_()
            optimizer.step()
            optimizer.zero_grad()
        losses.append(found)
    worst = max(abs(a - b) for a, b in zip(losses[0], losses[1]))
    facts = {"first and last": (losses[1][0], losses[1][-1]), "largest difference": round(worst, 4)}
    return {"ok": losses[1] == losses[2] and worst < 0.05 and all_braid(ours), "equal runs": losses[1] == losses[2], **facts, "runs": what_runs(ours)}


def state_dicts() -> dict[str, Any]:
    theirs, ours = pair(SMALL, torchtitans_plan(True))
    one, other = theirs.state_dict(), ours.state_dict()
    same = list(one) == list(other) and all(type(one[k]) is type(other[k]) and distance(one[k], other[k]) == 0 for k in one)
    tokens = tokens_of(SMALL, 1, 256)
    logits_of(ours, tokens)
    with torch.no_grad():
        for each in theirs.parameters():
            each.mul_(0.5)
    ours.load_state_dict(theirs.state_dict())
    theirs.load_state_dict(ours.state_dict())
    found = distance(logits_of(ours, tokens), logits_of(theirs, tokens))
    return {"ok": same and found < 0.02, "same": same, "after loading": found}


def captured() -> dict[str, Any]:
    _, ours = pair(SMALL, torchtitans_plan(False))
    block, turns = ours.layers["0"], rotations(128, 256, "cuda")
    x = torch.randn(1, 256, 512, device="cuda", dtype=torch.bfloat16)
    dist.broadcast(x, 0)
    with torch.no_grad():
        wanted = block(x, turns).clone()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = block(x, turns)
        graph.replay()
        torch.cuda.synchronize()
    return {"ok": bool((y == wanted).all())}


def runs() -> None:
    check("forward and backward, TP", lambda: compared(torchtitans_plan(False)))
    check("forward and backward, TP and SP", lambda: compared(torchtitans_plan(True)))
    check("forward and backward, batch of 2", lambda: compared(torchtitans_plan(True), batch=2))
    check("save all", lambda: compared(torchtitans_plan(True), save="all"))
    check("plan by names", lambda: compared(None))
    check("Hugging Face", lambda: compared(None, "hugging-face"))
    check("state_dict", state_dicts)
    check("CUDA graph", captured)
    plan = torchtitans_plan(True)
    check("training", lambda: trained(plan))
    check("choice by time", chosen)
    check("checkpointing", lambda: trained(plan, checkpoint=True))
    check("micro-batches in flight", lambda: trained(plan, micro=3))
    check("lengths", lambda: trained(plan, lengths=(256, 128, 512)))
    check("main_grad", lambda: trained(plan, main_grad=True))


def step_time(model: nn.Module, tokens: Tensor, turns: Tensor, training: bool) -> float:
    """Milliseconds of the blocks alone, forward and backward."""
    size = 1 if not isinstance(next(iter(model.layers.values())).attention_norm.weight, DTensor) else WORLD
    x = torch.randn(1, tokens.shape[1] // size, LARGE.width, device="cuda", dtype=torch.bfloat16)
    if size == 1:
        dist.broadcast(x, 0)
    x.requires_grad_(training)

    def run() -> None:
        with torch.set_grad_enabled(training):
            y = x
            for layer in model.layers.values():
                y = layer(y, turns)
        if training:
            y.backward(y.detach())
            model.zero_grad()
            x.grad = None

    for _ in range(3):
        run()
    best = []
    for _ in range(5):
        dist.barrier()
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(5):
            run()
        torch.cuda.synchronize()
        best.append((time.perf_counter() - start) / 5 * 1000)
    found = torch.tensor([sorted(best)[2]], device="cuda")
    dist.all_reduce(found, op=dist.ReduceOp.MAX)
    return round(float(found), 3)


def timed(sequence_parallel: bool, length: int, training: bool, save: Any = "minimal") -> dict[str, Any]:
    plan = torchtitans_plan(sequence_parallel)
    theirs, ours = pair(LARGE, plan, save=save)
    tokens, turns = tokens_of(LARGE, 1, length), rotations(128, length, "cuda")
    facts: dict[str, Any] = {}
    for name, model in (("braid", ours), ("eager", theirs)):
        torch.cuda.reset_peak_memory_stats()
        facts[name] = step_time(model, tokens, turns, training)
        facts[f"{name} GiB"] = round(torch.cuda.max_memory_allocated() / 2**30, 2)
    if length >= 4096 and save == "minimal":
        for layer in theirs.layers.values():
            layer.compile()
        try:
            facts["compiled"] = step_time(theirs, tokens, turns, training)
        except Exception as error:  # noqa: BLE001
            facts["compiled"] = f"{type(error).__name__}: {error}"[:200]
        torch._dynamo.reset()
    ratios = {f"over {name}": round(facts[name] / facts["braid"], 3) for name in ("eager", "compiled") if isinstance(facts.get(name), float)}
    return {**facts, **ratios, "runs": what_runs(ours)}


def times() -> None:
    for training in (True, False):
        for length in (4096, 8192) if training else (4096, 512, 16):
            for sequence_parallel in (True, False) if length > 16 else (False,):
                name = f"{'TP + SP' if sequence_parallel else 'TP'}, {length} tokens, {'step' if training else 'forward'}"
                check(name, lambda s=sequence_parallel, n=length, t=training: timed(s, n, t))
    check("TP + SP, 4096 tokens, step, save all", lambda: timed(True, 4096, True, "all"))


warnings.simplefilter("always", UserWarning)
if MODE == "export":
    exports()
    finish()
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl", device_id=torch.device("cuda", torch.cuda.current_device()))
WORLD = dist.get_world_size()
MESH = init_device_mesh("cuda", (WORLD,), mesh_dim_names=("tp",))
runs() if MODE == "run" else times()
dist.barrier()
dist.destroy_process_group()
finish()
