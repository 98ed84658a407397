"""
`braid_torch.parallelize` on GPUs, beside torch's parallelize_module on the same weights:

    python3 python/gpu/check_parallelize.py export FOLDER
    torchrun --nproc-per-node 2 python/gpu/check_parallelize.py run FOLDER
    torchrun --nproc-per-node 2 python/gpu/check_parallelize.py more FOLDER
    torchrun --nproc-per-node 2 python/gpu/check_parallelize.py time FOLDER
    torchrun --nproc-per-node 2 python/gpu/check_parallelize.py profile FOLDER
    python3 python/gpu/check_parallelize.py lost FOLDER

`export` needs no GPU: it writes files of torch.export to the folder and compiles them. `run` compares values and
gradients, and trains. `more` trains 100 steps, works beside FSDP2, takes over models that others have parallelized, and
times the host. `time` measures whole steps of Llama-3 8B layers, and `profile` lists the kernels of one. `lost` kills
one of two ranks. Each goes on after a failure, prints a line for each check, and writes them to FOLDER/MODE.json. A
name after the folder runs that check alone: an illegal access ends the whole process. Ends with status 1 if a check
fails.
"""

from __future__ import annotations

import copy
import functools
import json
import os
import shlex
import signal
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


def trained(plan: Any, steps: int = 10, bound: float = 0.05, **how: Any) -> dict[str, Any]:
    """Losses beside each other, and two runs bit by bit."""
    losses: list[list[float]] = []
    for number in range(3):
        theirs, ours = pair(SMALL, plan, **({"fp8": how["fp8"]} if "fp8" in how else {}))
        model = theirs if number == 0 else ours
        if how.get("checkpoint"):
            for name, layer in list(model.layers.items()):
                model.layers[name] = Checkpointed(layer)
        optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, foreach=False)
        if how.get("main_grad"):
            for each in model.parameters():
                each.main_grad = torch.zeros_like(each.detach().to_local() if isinstance(each, DTensor) else each, dtype=torch.float32)
        found = []
        for step in range(steps):
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
    facts: dict[str, Any] = {"first and last": (losses[1][0], losses[1][-1]), "largest difference": round(worst, 4)}
    if steps > 10:
        every = slice(0, None, steps // 10)
        facts |= {name: [round(each, 4) for each in losses[i][every]] for i, name in enumerate(("eager", "braid"))}
    return {"ok": losses[1] == losses[2] and worst < bound and all_braid(ours), "equal runs": losses[1] == losses[2], **facts, "runs": what_runs(ours)}


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
    for scales in ("rowwise", "tensorwise", "blockwise"):
        # Beside bfloat16.
        check(f"8-bit floats, {scales}", lambda scales=scales: trained(plan, steps=50, bound=0.2, fp8=scales))
    check("main_grad", lambda: trained(plan, main_grad=True))


# Beside what others do.


def around_fsdp() -> dict[str, Any]:
    """FSDP2 shards over its own dimension of the mesh what is sharded over tp already, and gathers it for each call."""
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    import braid_torch

    both = init_device_mesh("cuda", (WORLD // 2, 2), mesh_dim_names=("dp", "tp"))
    plan, losses, gathers = torchtitans_plan(True), [], []
    for switch in ("off", "always"):
        torch.manual_seed(1)
        with torch.device("cuda"):
            model = Llama(SMALL)
        os.environ["BRAID_PARALLELIZE"] = switch
        braid_torch.parallelize(model, both["tp"], copy.deepcopy(plan))
        policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
        for layer in model.layers.values():
            fully_shard(layer, mesh=both["dp"], mp_policy=policy)
        fully_shard(model, mesh=both["dp"], mp_policy=policy)
        optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, foreach=False)
        found = []
        for step in range(10):
            loss = loss_of(model, tokens_of(SMALL, 1, 256, 10 * step + dist.get_rank(both["dp"].get_group())))
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            found.append(loss.item())
        losses.append(found)
        gathers.append({str(each.placements) for each in model.parameters() if isinstance(each, DTensor)})
    worst = max(abs(a - b) for a, b in zip(*losses))
    same = gathers[0] == gathers[1]
    facts = {"mesh": tuple(both.shape), "first and last": (losses[1][0], losses[1][-1]), "largest difference": round(worst, 4)}
    return {"ok": same and worst < 0.05 and all_braid(model), "equal placements": same, **facts, "runs": what_runs(model)}


def taken_over() -> dict[str, Any]:
    """Parallelized by torch alone before: no plan is given, and the parameters stay the same objects."""
    import braid_torch
    from braid_torch.torch_styles import styles_of
    from torch.distributed.tensor.parallel import parallelize_module

    theirs, _ = pair(SMALL, torchtitans_plan(True))
    torch.manual_seed(1)
    with torch.device("cuda"):
        model = Llama(SMALL).to(torch.bfloat16)
    for module, style in styles_of(model, torchtitans_plan(True)).values():
        parallelize_module(module, MESH, style)
    before = [id(each) for each in model.parameters()]
    os.environ["BRAID_PARALLELIZE"] = "always"
    ours = braid_torch.parallelize(model)
    same = before == [id(each) for each in ours.parameters()]
    tokens = tokens_of(SMALL, 1, 256)
    for each in (theirs, ours):
        loss_of(each, tokens).backward()
    worst = max(distance(a.grad, b.grad) for a, b in zip(ours.parameters(), theirs.parameters()))
    return {"ok": same and worst < 0.05 and all_braid(ours), "same parameters": same, "worst gradient": worst, "runs": what_runs(ours)}


def of_hugging_face() -> dict[str, Any]:
    """`from_pretrained(tp_plan="auto")`: taken over where its parameters are DTensors, and refused where they are not."""
    import braid_torch
    from transformers import AutoModelForCausalLM

    saved = FOLDER / "pretrained"
    if RANK == 0:
        torch.manual_seed(1)
        hugging_face(SMALL).to(torch.bfloat16).save_pretrained(saved)
    dist.barrier()
    models = [AutoModelForCausalLM.from_pretrained(saved, tp_plan="auto", dtype=torch.bfloat16) for _ in range(2)]
    are_dtensors = any(isinstance(each, DTensor) for each in models[1].parameters())
    os.environ["BRAID_PARALLELIZE"] = "always"
    try:
        ours = braid_torch.parallelize(models[1])
    except braid_torch.Refusal as refusal:
        return {"ok": not are_dtensors and "tp_plan" in refusal.fix, "DTensors": are_dtensors, "refused": str(refusal)}
    tokens = tokens_of(SMALL, 1, 256)
    for model in (models[0], ours):
        loss_of(model, tokens).backward()
    gradients = [
        distance(a.grad, b.grad) for a, b in zip(ours.parameters(), models[0].parameters()) if b.grad is not None
    ]
    facts = {"DTensors": are_dtensors, "worst gradient": max(gradients), "runs": what_runs(ours)}
    return {"ok": all_braid(ours) and max(gradients) < 0.05, **facts}


class Dropped(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner, self.dropout = inner, nn.Dropout(0.1)

    def forward(self, x: Tensor, turns: Tensor) -> Tensor:
        return x + self.dropout(self.inner(x, turns))


def dropped() -> dict[str, Any]:
    """In training the block stays as it is, with one line that says why. In eval it runs a plan."""
    import braid_torch

    torch.manual_seed(1)
    with torch.device("cuda"):
        model = Llama(SMALL).to(torch.bfloat16)
    for name, layer in list(model.layers.items()):
        model.layers[name] = Dropped(layer)
    os.environ["BRAID_PARALLELIZE"] = "always"
    ours = braid_torch.parallelize(model, MESH, {key.replace("layers.*", "layers.*.inner"): each for key, each in torchtitans_plan(False).items()})
    tokens = tokens_of(SMALL, 1, 256)
    with warnings.catch_warnings(record=True) as told:
        loss_of(ours, tokens).backward()
    lines = [str(each.message) for each in told if "dropout" in str(each.message)]
    reasons = {each["reason"] for each in braid_torch.block_choices(ours) if each["runs"] == "today"}
    ours.eval()
    with torch.no_grad():
        ours(tokens)
    in_eval = {each["runs"] for each in braid_torch.block_choices(ours) if "gradients" not in each["call"]}
    once = len(lines) == (1 if RANK == 0 else 0)
    return {"ok": once and all("dropout" in each for each in reasons) and in_eval == {"braid"}, "lines": lines, "in eval": in_eval}


def host_time() -> dict[str, Any]:
    """Microseconds of the host for a block's forward, and of the launch of its graph alone."""
    _, ours = pair(SMALL, torchtitans_plan(False))
    block, turns = ours.layers["0"], rotations(128, 16, "cuda")
    x = torch.randn(1, 16, SMALL.width, device="cuda", dtype=torch.bfloat16)
    dist.broadcast(x, 0)
    with torch.no_grad():
        for _ in range(20):
            y = block(x, turns)
        runner = next(iter(block.forward.choices.values())).planned.forward.runner
        entry = next(each for each in runner._entries.values() if each.graph)
        stream = torch.cuda.current_stream().cuda_stream
        found: dict[str, list[float]] = {"call": [], "launch": [], "call that requires gradients": []}

        def measure(name: str, run: Callable[[], Any]) -> None:
            dist.barrier()
            torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(50):
                run()
            found[name].append((time.perf_counter() - start) / 50 * 1e6)
            torch.cuda.synchronize()

        for _ in range(20):
            measure("call", lambda: block(x, turns))
            measure("launch", lambda: runner._launch(entry.graph, stream))
    own = x.clone().requires_grad_()
    for _ in range(5):
        block(own, turns).sum().backward()
    for _ in range(20):
        measure("call that requires gradients", lambda: block(own, turns))
    micros = {name: round(sorted(each)[len(each) // 2], 1) for name, each in found.items()}
    over = round(micros["call"] - micros["launch"], 1)
    return {"ok": over <= 15, "over the launch": over, "us": micros, "finite": bool(y.isfinite().all()), "runs": what_runs(ours)}


def mores() -> None:
    check("100 steps", lambda: trained(torchtitans_plan(True), 100, 0.1))
    check("around FSDP2", around_fsdp)
    check("taken over from parallelize_module", taken_over)
    check("taken over from Hugging Face", of_hugging_face)
    check("dropout", dropped)
    check("host time", host_time)


def lost() -> dict[str, Any]:
    """Starts two ranks, of which the second kills itself: the first has to end with a message."""
    port = "29633"
    made = []
    for rank in range(2):
        own = {**os.environ, "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        command = [sys.executable, __file__, "rank", str(FOLDER)]
        made.append(subprocess.Popen(command, env=own, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
    try:
        texts = [each.communicate(timeout=150)[0] for each in made]
    finally:
        for each in made:
            each.kill()
    report = texts[0][texts[0].find("braid: timed-out") :][:1500] if "braid: timed-out" in texts[0] else texts[0][-1500:]
    ok = made[0].returncode == -signal.SIGABRT and "it waits for rank 1" in report
    return {"ok": ok, "status": [each.returncode for each in made], "report": report}


def rank_of_two() -> None:
    from braid_torch import torch_block

    torch_block.load = functools.partial(torch_block.load, timeout=3)
    _, ours = pair(SMALL, torchtitans_plan(True))
    optimizer = torch.optim.SGD(ours.parameters(), lr=1e-3, foreach=False)
    for step in range(6):
        if step == 5 and RANK == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        x = torch.randn(1, 128, SMALL.width, device="cuda", dtype=torch.bfloat16, requires_grad=True)
        y = x
        # The blocks alone: torch's own collectives would wait for the rank first.
        for layer in ours.layers.values():
            y = layer(y, rotations(128, 256, "cuda"))
        y.backward(y.detach())
        torch.cuda.synchronize()
        optimizer.step()
        optimizer.zero_grad()
    print("FAIL: it ended", flush=True)


def step_time(model: nn.Module, tokens: Tensor, turns: Tensor, training: bool, rounds: int = 5, steps: int = 5) -> float:
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
    for _ in range(rounds):
        dist.barrier()
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(steps):
            run()
        torch.cuda.synchronize()
        best.append((time.perf_counter() - start) / steps * 1000)
    found = torch.tensor([sorted(best)[rounds // 2]], device="cuda")
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


def kind_of(kernel: str) -> str:
    """GEMMs, attention, communication or other kernels."""
    for kind, marks in (("attention", ("cudnn", "flash", "fmha")), ("communication", ("nccl", "PtoP")), ("GEMMs", ("nvjet", "gemm", "cutlass"))):
        if any(mark in kernel for mark in marks):
            return kind
    return "other"


def shares(kernels: list[tuple[float, float, str]]) -> dict[str, float]:
    """Milliseconds of a step in which a kernel of each kind runs and none of an earlier kind, and in which none runs."""
    kinds = ("GEMMs", "attention", "other", "communication", "nothing")
    edges = sorted((time, change, kind_of(name)) for start, end, name in kernels for time, change in ((start, 1), (end, -1)))
    running = dict.fromkeys(kinds, 0)
    found = dict.fromkeys(kinds, 0.0)
    last = edges[0][0]
    for time, change, kind in edges:
        found[next((each for each in kinds if running[each] > 0), "nothing")] += time - last
        running[kind] += change
        last = time
    return {kind: round(micros / 5 / 1000, 3) for kind, micros in found.items()}


def profiled(sequence_parallel: bool, length: int) -> dict[str, Any]:
    """Microseconds of each kernel in one step of all layers, by Braid's plans and by torch.compile."""
    from torch.profiler import ProfilerActivity, profile

    import braid_torch

    theirs, ours = pair(LARGE, torchtitans_plan(sequence_parallel))
    for layer in theirs.layers.values():
        layer.compile()
    tokens, turns = tokens_of(LARGE, 1, length), rotations(128, length, "cuda")
    facts: dict[str, Any] = {}
    for name, model in (("braid", ours), ("compiled", theirs)):
        facts[name] = step_time(model, tokens, turns, True)
        with profile(activities=[ProfilerActivity.CUDA]) as seen:
            step_time(model, tokens, turns, True, rounds=1, steps=2)
        # What was queued before the two steps, three of them, is in it, too.
        rows = [(each.key, each.count, each.self_device_time_total) for each in seen.key_averages()]
        rows = sorted((each for each in rows if each[2] > 0), key=lambda each: -each[2])
        text = "\n".join(f"{micros / 5:10.1f} us {count / 5:7.1f} {key[:150]}" for key, count, micros in rows)
        if RANK == 0:
            FOLDER.mkdir(parents=True, exist_ok=True)
            kind = "sp" if sequence_parallel else "tp"
            seen.export_chrome_trace(str(FOLDER / f"trace-{kind}-{length}-{name}.json"))
            (FOLDER / f"kernels-{kind}-{length}-{name}.txt").write_text(f"of one step of {len(model.layers)} layers\n{text}\n")
        facts[f"{name} kernels"] = round(sum(each[2] for each in rows) / 5 / 1000, 3)
        kernels = [each for each in seen.events() if each.device_type == torch.autograd.DeviceType.CUDA]
        facts[f"{name} time"] = shares([(each.time_range.start, each.time_range.end, each.name) for each in kernels])
    return {**facts, "plans": braid_torch.explain(), "runs": what_runs(ours)}


def profiles() -> None:
    for sequence_parallel in (True, False):
        name = f"{'TP + SP' if sequence_parallel else 'TP'}, 8192 tokens, kernels of a step"
        check(name, lambda s=sequence_parallel: profiled(s, 8192))


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
if MODE == "lost":
    check("lost rank", lost)
    finish()
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl", device_id=torch.device("cuda", torch.cuda.current_device()))
WORLD = dist.get_world_size()
MESH = init_device_mesh("cuda", (WORLD,), mesh_dim_names=("tp",))
if MODE == "rank":
    rank_of_two()
    os._exit(1)
{"run": runs, "more": mores, "time": times, "profile": profiles}[MODE]()
dist.barrier()
dist.destroy_process_group()
finish()
