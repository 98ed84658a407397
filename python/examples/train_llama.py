"""
Trains a Llama of random weights by tensor parallelism: blocks as torchtitan writes them, or Hugging Face's.

    torchrun --nproc-per-node 2 python/examples/train_llama.py [--layers 4] [--rows 4096] [--steps 20]
    torchrun --nproc-per-node 2 python/examples/train_llama.py --hugging-face

Prints the loss of each step, the milliseconds of the last ten, and what runs for each block. `--beside` trains the same
model as torch's parallelize_module alone does, and prints its losses beside Braid's.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

import torch
import torch.distributed as dist
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
)

import braid_torch


@dataclass
class Sizes:
    """The defaults are those of Llama-3 8B, with fewer layers."""

    width: int = 4096
    heads: int = 32
    kv_heads: int = 8
    hidden: int = 14336
    layers: int = 4
    words: int = 32000


class Attention(nn.Module):
    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.size = sizes.width // sizes.heads
        self.wq = nn.Linear(sizes.width, sizes.heads * self.size, bias=False)
        self.wk = nn.Linear(sizes.width, sizes.kv_heads * self.size, bias=False)
        self.wv = nn.Linear(sizes.width, sizes.kv_heads * self.size, bias=False)
        self.wo = nn.Linear(sizes.heads * self.size, sizes.width, bias=False)

    def forward(self, x: Tensor, turns: Tensor) -> Tensor:
        batch, rows = x.shape[:2]
        q, k, v = (w(x).view(batch, rows, -1, self.size) for w in (self.wq, self.wk, self.wv))
        q, k = turned(q, turns), turned(k, turns)
        heads = (each.transpose(1, 2) for each in (q, k, v))
        y = F.scaled_dot_product_attention(*heads, is_causal=True, enable_gqa=True)
        return self.wo(y.transpose(1, 2).reshape(batch, rows, -1))


def turned(x: Tensor, turns: Tensor) -> Tensor:
    """Rotary embedding, by complex numbers."""
    pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * turns[None, :, None]).flatten(3).type_as(x)


class FeedForward(nn.Module):
    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.w1 = nn.Linear(sizes.width, sizes.hidden, bias=False)
        self.w2 = nn.Linear(sizes.hidden, sizes.width, bias=False)
        self.w3 = nn.Linear(sizes.width, sizes.hidden, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class TransformerBlock(nn.Module):
    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.attention, self.feed_forward = Attention(sizes), FeedForward(sizes)
        self.attention_norm, self.ffn_norm = (nn.RMSNorm(sizes.width, eps=1e-5) for _ in range(2))

    def forward(self, x: Tensor, turns: Tensor) -> Tensor:
        h = x + self.attention(self.attention_norm(x), turns)
        return h + self.feed_forward(self.ffn_norm(h))


class Llama(nn.Module):
    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.sizes = sizes
        self.tok_embeddings = nn.Embedding(sizes.words, sizes.width)
        self.layers = nn.ModuleDict({str(i): TransformerBlock(sizes) for i in range(sizes.layers)})
        self.norm = nn.RMSNorm(sizes.width, eps=1e-5)
        self.output = nn.Linear(sizes.width, sizes.words, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        turns = rotations(self.sizes.width // self.sizes.heads, tokens.shape[1], tokens.device)
        x = self.tok_embeddings(tokens)
        for layer in self.layers.values():
            x = layer(x, turns)
        return self.output(self.norm(x))


def rotations(size: int, rows: int, device: Any) -> Tensor:
    speeds = 500000.0 ** (-torch.arange(0, size, 2, device=device).float() / size)
    angles = torch.outer(torch.arange(rows, device=device).float(), speeds)
    return torch.polar(torch.ones_like(angles), angles)


def torchtitans_plan(sequence_parallel: bool) -> dict[str, Any]:
    """As torchtitan parallelizes its Llama, with and without sequence parallelism."""
    rows = Shard(1) if sequence_parallel else Replicate()
    between = {
        "norm": SequenceParallel(),
        "layers.*.attention_norm": SequenceParallel(),
        "layers.*.ffn_norm": SequenceParallel(),
        "layers.*.attention": PrepareModuleInput(
            input_layouts=(rows, None), desired_input_layouts=(Replicate(), None)
        ),
        "layers.*.feed_forward": PrepareModuleInput(input_layouts=(rows,), desired_input_layouts=(Replicate(),)),
    }
    return {
        "tok_embeddings": RowwiseParallel(input_layouts=Replicate(), output_layouts=rows),
        "output": ColwiseParallel(input_layouts=rows, output_layouts=Replicate()),
        **{f"layers.*.attention.w{name}": ColwiseParallel() for name in "qkv"},
        "layers.*.attention.wo": RowwiseParallel(output_layouts=rows),
        "layers.*.feed_forward.w1": ColwiseParallel(),
        "layers.*.feed_forward.w2": RowwiseParallel(output_layouts=rows),
        "layers.*.feed_forward.w3": ColwiseParallel(),
        **(between if sequence_parallel else {}),
    }


def hugging_face(sizes: Sizes) -> nn.Module:
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        hidden_size=sizes.width,
        num_attention_heads=sizes.heads,
        num_key_value_heads=sizes.kv_heads,
        intermediate_size=sizes.hidden,
        num_hidden_layers=sizes.layers,
        vocab_size=sizes.words,
        use_cache=False,
    )
    return LlamaForCausalLM(config)


def logits_of(model: nn.Module, tokens: Tensor) -> Tensor:
    found = model(tokens)
    return found if isinstance(found, Tensor) else found.logits


@dataclass
class Trained:
    losses: list[float]
    # Of a step, the median of the last ten.
    milliseconds: float
    choices: list[dict[str, Any]]


def train(given: argparse.Namespace, mesh: DeviceMesh) -> Trained:
    torch.manual_seed(0)
    sizes = Sizes(given.width, given.width // 128, given.width // 512, given.hidden, given.layers)
    with torch.device("cuda"):
        model = (hugging_face(sizes) if given.hugging_face else Llama(sizes)).to(torch.bfloat16)
    # The one line. Hugging Face's models bring their plan.
    model = braid_torch.parallelize(model, mesh, None if given.hugging_face else torchtitans_plan(True))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    tokens = torch.randint(sizes.words, (1, given.rows + 1), device="cuda")
    losses, times = [], []
    for _ in range(given.steps):
        torch.cuda.synchronize()
        start = time.perf_counter()
        logits = logits_of(model, tokens[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1).float(), tokens[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
        losses.append(loss.item())
    last = sorted(times[-10:])
    return Trained(losses, 1000 * last[len(last) // 2], braid_torch.block_choices(model))


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--hugging-face", action="store_true")
    arguments.add_argument("--beside", action="store_true", help="train it without Braid, too")
    for name, default in (("layers", 4), ("rows", 4096), ("steps", 20), ("width", 4096), ("hidden", 14336)):
        arguments.add_argument(f"--{name}", type=int, default=default)
    given = arguments.parse_args()
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl", device_id=torch.device("cuda", torch.cuda.current_device()))
    mesh = init_device_mesh("cuda", (dist.get_world_size(),), mesh_dim_names=("tp",))
    found = {"braid": train(given, mesh)}
    if given.beside:
        os.environ["BRAID_PARALLELIZE"] = "off"
        found["eager"] = train(given, mesh)
    if dist.get_rank() == 0:
        for step, losses in enumerate(zip(*[each.losses for each in found.values()])):
            print(f"step {step + 1}: loss {', '.join(f'{loss:.6f} {name}' for loss, name in zip(losses, found))}")
        for name, each in found.items():
            print(f"{each.milliseconds:.2f} ms a step, {name}")
        for choice in found["braid"].choices:
            print(f"{choice['block']}: {choice['runs']} runs for {choice['call']}; {choice['reason']}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
