"""Compares Braid's transformer blocks, forward and backward, with PyTorch's in float64.

    python3 bench/peers/torch_blocks.py --devices 2 --out blocks.json
    python3 braid-offline/bench/peers/torch_blocks.py --braid "sh braid-offline/braid" --on cuda --sizes test llama-3-8b

Writes seeded inputs to a file, runs an example of Braid on them, and computes the same block in PyTorch: in float64,
and in the program's dtype. The measure is the norm of the errors relative to that of the float64 result, for all
elements of z and of each gradient. Braid passes if its error is at most twice that of PyTorch in the same dtype. Errors
planted in the reference must not pass. Answers with JSON. Needs PyTorch 2.5 or newer, and no other package.
"""

import argparse
import ctypes
import datetime
import json
import math
import os
import platform
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
import torch  # noqa: E402

from blocks import BLOCKS, FAULTS, shapes  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
MOST = 2.0
DTYPES = {"float": torch.float32, "bfloat16": torch.bfloat16, "half": torch.float16}
FLOATS = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}
SPELLINGS = {**FLOATS, "I64": torch.int64}

GPT = {"DROPOUT": 0.1}
SIZES = {
    "test": [
        ("gpt", {"S": 2, "B": 2, "L": 16, "H": 32, "HEADS": 8, "FFN": 64, **GPT}),
        ("llama", {"S": 2, "B": 2, "L": 16, "H": 32, "HEADS": 8, "GROUPS": 4, "FFN": 64}),
    ],
    "medium": [
        ("gpt", {"S": 1, "B": 1, "L": 256, "H": 1024, "HEADS": 8, "FFN": 4096, **GPT}),
        ("llama", {"S": 1, "B": 1, "L": 256, "H": 1024, "HEADS": 8, "GROUPS": 4, "FFN": 3584}),
    ],
    "llama-3-8b": [
        ("llama", {"S": 2, "B": 2, "L": 2048, "H": 4096, "HEADS": 32, "GROUPS": 8, "FFN": 14336}),
    ],
}


def draw(block, p, dtype, seed):
    """Inputs by name. Linears keep the size of what they read, so that scores and gradients are neither 0 nor large."""
    generator = torch.Generator().manual_seed(seed)
    normal = lambda shape: torch.randn(shape, generator=generator)
    made = {}
    for name, shape in shapes(block, p):
        value = normal(shape)
        if name.startswith("w_"):
            value = value / math.sqrt(shape[1])
        elif name != "x":
            value = (1 if name.startswith("norm") else 0) + 0.1 * value
        made[name] = value.to(dtype)
    if block == "gpt":
        made["seed"] = torch.tensor(1234567 + (seed << 32))
    made["dz"] = normal(made["x"].shape).to(dtype)
    return made


def save(file, tensors):
    """The format of safetensors, by the names that Braid prints: T0, T1, .."""
    spelled = {dtype: spelling for spelling, dtype in SPELLINGS.items()}
    header, start = {}, 0
    for i, tensor in enumerate(tensors):
        end = start + tensor.nbytes
        header[f"T{i}"] = {"dtype": spelled[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [start, end]}
        start = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(file, "wb") as out:
        out.write(len(text).to_bytes(8, "little") + text)
        for tensor in tensors:
            whole = tensor.contiguous()
            out.write(ctypes.string_at(whole.data_ptr(), whole.nbytes))


def load(file):
    data = bytearray(Path(file).read_bytes())
    length = int.from_bytes(data[:8], "little")
    tensors = {}
    for name, entry in json.loads(data[8 : 8 + length]).items():
        if name != "__metadata__":
            count, begin = math.prod(entry["shape"]), 8 + length + entry["data_offsets"][0]
            flat = torch.frombuffer(data, dtype=SPELLINGS[entry["dtype"]], count=count, offset=begin)
            tensors[name] = flat.reshape(entry["shape"])
    return tensors


def run_braid(args, block, p, dtype, inputs, folder):
    """The outputs in the order of the program, the command without files, and the run's milliseconds."""
    save(f"{folder}/inputs.safetensors", list(inputs.values()))
    program = f"examples/transformer/{block}-block.ts"
    flags = ["--on", args.on, "--devices", str(args.devices), "--timeout", "120"]
    for name, value in {**p, "DTYPE": dtype}.items():
        flags += ["--set", f"{name}={value}"]
    files = ["--inputs", f"{folder}/inputs.safetensors", "--out", f"{folder}/outputs.safetensors"]
    command = [*shlex.split(args.braid), "run", str(ROOT / program), *flags, *files, "--json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"torch_blocks: braid run ended with {done.returncode}: {shlex.join(command)}")
    report, outputs = json.loads(done.stdout), load(f"{folder}/outputs.safetensors")
    found = [outputs[output["name"]] for output in report["outputs"]]
    return found, shlex.join([program, *flags]), report["milliseconds"]


def run_torch(block, p, inputs, dtype, devices=1, faults=()):
    """z and the gradients, in the dtype."""
    there = {name: t if name == "seed" else t.to(DEVICE, dtype) for name, t in inputs.items()}
    wrt = [t.requires_grad_() for name, t in there.items() if name not in ("seed", "dz")]
    z = BLOCKS[block](there, p, devices, faults)
    return [z.detach(), *torch.autograd.grad(z, wrt, there["dz"])]


def error_of(result, reference):
    wanted = reference.double()
    return ((result.to(wanted.device).double() - wanted).norm() / wanted.norm()).item()


def check(args, size, block, p, dtype):
    inputs = draw(block, p, DTYPES[dtype], args.seed)
    with tempfile.TemporaryDirectory() as folder:
        results, command, milliseconds = run_braid(args, block, p, dtype, inputs, folder)
    exact, own = (run_torch(block, p, inputs, kind) for kind in (torch.float64, DTYPES[dtype]))
    names = ["z", *(f"gradient of {name}" for name in inputs if name not in ("seed", "dz"))]
    rows = []
    for name, result, reference, torchs in zip(names, results, exact, own, strict=True):
        if result.shape != reference.shape:
            sys.exit(f"torch_blocks: {name} has the shape {list(result.shape)}, not {list(reference.shape)}")
        braid, peer = error_of(result, reference), error_of(torchs, reference)
        rows.append({"of": name, "shape": list(result.shape), "braid": braid, "torch": peer, "ratio": braid / peer})
    found = {}
    for fault in FAULTS if args.faults == "all" or size != "llama-3-8b" else ["mask"]:
        wrong = run_torch(block, p, inputs, torch.float64, args.devices, (fault,))
        ratios = [error_of(result, reference) / row["torch"] for result, reference, row in zip(results, wrong, rows)]
        found[fault] = {"outputs": sum(not ratio <= MOST for ratio in ratios), "ratio": max(ratios)}
    if DEVICE == "cuda":
        # Braid's processes need the memory.
        torch.cuda.empty_cache()
    largest = max(rows, key=lambda row: row["ratio"])
    ok = all(row["ratio"] <= MOST for row in rows) and all(each["outputs"] > 0 for each in found.values())
    print(f"{size} {block} {dtype}: {largest['ratio']:.2f} of PyTorch's error ({largest['of']})", file=sys.stderr)
    about = {"size": size, "block": block, "dtype": dtype, "command": command, "milliseconds": milliseconds}
    return {**about, "ok": ok, "largest": largest["ratio"], "results": rows, "faults": found}


def machine():
    """What computed the results."""
    if DEVICE == "cuda":
        cudnn = torch.backends.cudnn.version()
        return {"gpu": torch.cuda.get_device_name(), "cuda": torch.version.cuda, "cudnn": cudnn}
    models = [line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")]
    return {"cpu": models[0] if models else platform.machine(), "cores": os.cpu_count()}


def arguments():
    parser = argparse.ArgumentParser(description="Compares Braid's transformer blocks with PyTorch's in float64.")
    parser.add_argument("--braid", default="npx braid", help="the command that starts Braid")
    parser.add_argument("--on", default="cpu", choices=["cpu", "cuda"], help="where both run")
    parser.add_argument("--devices", type=int, default=2)
    parser.add_argument("--sizes", nargs="+", default=["test"], choices=list(SIZES))
    parser.add_argument("--blocks", nargs="+", default=list(BLOCKS), choices=list(BLOCKS))
    parser.add_argument("--dtypes", nargs="+", default=["float", "bfloat16"], choices=list(DTYPES))
    parser.add_argument("--set", nargs="+", default=[], metavar="NAME=VALUE", help="other parameters: SP=0 L=1024")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--faults", default="some", choices=["some", "all"], help="some: of the largest size one")
    parser.add_argument("--out", help="a file for the JSON, which is printed otherwise")
    return parser.parse_args()


if __name__ == "__main__":
    args = arguments()
    DEVICE = args.on
    other = {name: json.loads(value) for name, value in (text.split("=") for text in args.set)}
    cases = [
        check(args, size, block, {**p, **other}, dtype)
        for size in args.sizes
        for block, p in SIZES[size]
        for dtype in args.dtypes
        if block in args.blocks and (size != "llama-3-8b" or dtype != "float")
    ]
    braid = json.loads((ROOT / "package.json").read_text())["version"]
    versions = {"braid": braid, "torch": torch.__version__, "python": platform.python_version()}
    date = datetime.date.today().isoformat()
    about = {"date": date, "machine": machine(), "versions": versions, "most": MOST, "planted": FAULTS}
    text = json.dumps({**about, "cases": cases}, indent=2)
    Path(args.out).write_text(f"{text}\n") if args.out else print(text)
    sys.exit(0 if all(case["ok"] for case in cases) else 1)
