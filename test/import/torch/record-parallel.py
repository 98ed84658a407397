"""
Records parallel-*.pt2, which torch.export writes in a fake process group, and what processes with gloo compute of the
same models: python record-parallel.py FOLDER. Each tensor has an axis for each dimension of the ranks in front, unless
it is equal along it. parallel-mlp.fx and parallel-ops.fx are the same exports as text; parallel-heads.fx is what
TORCH_LOGS=graph_code prints of torch.compile.
"""

import io
import os
import re
import sys
import zipfile

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as fc
import torch.multiprocessing as mp
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import nn
from torch.distributed.device_mesh import init_device_mesh


class Mlp(nn.Module):
    """Rows are gathered, and sums scattered."""

    def __init__(self, world):
        super().__init__()
        self.norm = nn.LayerNorm(16)
        self.up = nn.Linear(16, 32 // world)
        self.down = nn.Linear(32 // world, 16, bias=False)

    def forward(self, x):
        rows = fc.all_gather_tensor(self.norm(x), 0, dist.group.WORLD)
        y = self.down(F.gelu(self.up(rows)))
        return x + fc.reduce_scatter_tensor(y, "sum", 0, dist.group.WORLD)


class Heads(nn.Module):
    """A sum of embeddings in tables of each rank, attention of its heads, and their sum."""

    def __init__(self, world):
        super().__init__()
        self.heads = 4 // world
        self.table = nn.Embedding(10, 16)
        self.qkv = nn.Linear(16, 3 * 16 // world, bias=False)
        self.o = nn.Linear(16 // world, 16, bias=False)

    def forward(self, tokens):
        x = fc.all_reduce(self.table(tokens), "sum", dist.group.WORLD)
        b, t, _ = x.shape
        q, k, v = (each.view(b, t, self.heads, 4).transpose(1, 2) for each in self.qkv(x).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, -1)
        return x + fc.all_reduce(self.o(y), "sum", dist.group.WORLD)


class Ops(nn.Module):
    """The other collectives, of groups along each dimension of a mesh."""

    def __init__(self, world):
        super().__init__()
        mesh = init_device_mesh("cpu", (2, world // 2), mesh_dim_names=("dp", "tp"))
        self.dp, self.tp, self.n = mesh.get_group("dp"), mesh.get_group("tp"), world // 2
        self.w = nn.Parameter(torch.empty(6, 8))

    def forward(self, x):
        parts = [x.shape[0] // self.n] * self.n
        return (
            fc.all_to_all_single(x, parts, parts, self.tp),
            fc.broadcast(x * 2, self.n - 1, self.tp),
            fc.all_reduce(torch.cumsum(x, 0).sort(-1).values, "max", self.dp),
            fc.reduce_scatter_tensor(x @ self.w.t(), "sum", 0, self.tp),
            fc.all_gather_tensor(x[:, :2].t() @ self.w[:2].t()[:4].relu().mean(1), 0, self.dp),
            fc.all_reduce(x.softmax(-1).mean(), "sum", self.dp),
        )


# The kind, the ranks by dimension, and the axes along which results are equal.
models = {
    "mlp": (Mlp, (4,), {}),
    "heads": (Heads, (2,), {"y": [0]}),
    "ops": (Ops, (2, 2), {"out1": [1], "out2": [0], "out4": [0], "out5": [0]}),
}


def build(name, rank):
    kind, shape, _ = models[name]
    torch.manual_seed(rank + 1)
    model = kind(torch.Size(shape).numel())
    for parameter in model.parameters():
        parameter.data = torch.randn(parameter.shape) * 0.5
    x = torch.randint(0, 10, (2, 6)) if name == "heads" else torch.randn(4, 16 if name == "mlp" else 8)
    return model.eval(), x


def run(rank, name, world, folder):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29533")
    dist.init_process_group("gloo", rank=rank, world_size=world)
    model, x = build(name, rank)
    with torch.no_grad():
        y = model(x)
    results = {f"out{i}": each + 0 for i, each in enumerate(y)} if isinstance(y, tuple) else {"y": y + 0}
    torch.save({"in0": x, **dict(model.state_dict()), **results}, f"{folder}/{name}.{rank}")
    dist.barrier()
    dist.destroy_process_group()


def export(name, world, path):
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.init_process_group("fake", rank=0, world_size=world, store=FakeStore())
    model, x = build(name, 0)
    buffer = io.BytesIO()
    exported = torch.export.export(model, (x,))
    torch.export.save(exported, buffer)
    if name != "heads":
        text = str(exported) if name == "mlp" else exported.module().print_readable(print_output=False)
        with open(path.replace(".pt2", ".fx"), "w") as file:
            file.write(re.sub(r"# File: .*?:(?=\d+ in )", "# File: model.py:", text))
    dist.destroy_process_group()
    with zipfile.ZipFile(buffer) as read, zipfile.ZipFile(path, "w") as written:
        for entry in read.namelist():
            if "/sample_inputs/" in entry:
                continue
            content = read.read(entry)
            if entry.endswith("models/model.json"):
                content = re.sub(rb'File \\"[^"]*\\"', rb'File \\"model.py\\"', content)
            written.writestr(zipfile.ZipInfo(entry), content)


def main(folder):
    for name, (_, shape, equal) in models.items():
        world = torch.Size(shape).numel()
        mp.spawn(run, (name, world, folder), nprocs=world)
        ranks = [torch.load(f"{folder}/{name}.{rank}") for rank in range(world)]
        joined = {}
        for key, own in ranks[0].items():
            whole = torch.stack([rank[key] for rank in ranks]).reshape(*shape, *own.shape)
            for axis in equal.get(key, []):
                first = whole.select(axis, 0).unsqueeze(axis)
                assert torch.equal(first.expand(whole.shape), whole), key
                whole = first.squeeze(axis)
            joined[key] = whole.contiguous()
        save_file(joined, f"{folder}/parallel-{name}.io.safetensors")
        export(name, world, f"{folder}/parallel-{name}.pt2")


if __name__ == "__main__":
    main(sys.argv[1])
