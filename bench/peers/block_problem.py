"""`braid bench block` in PyTorch: inputs from Braid's random numbers, contenders, and a reference in float32.

Tensors repeat one run of random numbers, which Braid sends, each from its own start and times a power of two: the same
numbers as Braid's. There is no dropout.
"""

import base64
import math
import re

import torch
import torch.distributed as dist

from blocks import BLOCKS
from megatron import (
    POINTWISE,
    Alone,
    Block,
    ColumnLinear,
    FusedColumnLinear,
    FusedRowLinear,
    Nccl,
    RowLinear,
)


class BlockProblem:
    """The request that sets it up has the sizes, and the tensors by name: shape, start, scale, and the axis that is cut."""

    def __init__(self, request, dtypes, rank, world, group, device):
        self.request, self.rank, self.world, self.group, self.device = request, rank, world, group, device
        self.dtype = dtypes[request["dtype"]]
        self.shares_tokens = request["cut"] == "tp-sp"
        piece = bytearray(base64.b64decode(request["piece"]))
        self.piece = torch.frombuffer(piece, dtype=self.dtype).to(device)
        own = {spec["name"]: self.part(spec, self.whole(spec)).clone() for spec in request["tensors"]}
        self.block = Block(request["sizes"], own, world)
        self.reference = None
        self.results = None
        nccl, alone = Nccl(world, self.shares_tokens), Alone(world, self.shares_tokens)
        compiled = {name: torch.compile(each, dynamic=False) for name, each in POINTWISE.items()}
        self.impls = {
            "compute-only": lambda: self.megatron(alone, POINTWISE),
            "nccl": lambda: self.megatron(nccl, POINTWISE),
            "nccl-compile": lambda: self.megatron(nccl, compiled),
        }
        if self.shares_tokens and device.type == "cuda":
            self.impls |= {
                "async-tp": lambda: self.fused(POINTWISE),
                "async-tp-compile": lambda: self.fused(compiled),
            }

    def whole(self, spec):
        """A tensor with all devices' parts."""
        count = math.prod(spec["shape"])
        index = torch.arange(count, device=self.device).add_(spec["start"]).remainder_(self.piece.numel())
        return (self.piece[index] * spec["scale"]).reshape(spec["shape"])

    def part(self, spec, whole):
        """This device's. Tokens are rows."""
        if whole.dim() == 3:
            whole = whole.reshape(-1, whole.shape[-1])
            return whole.chunk(self.world)[self.rank] if self.shares_tokens else whole
        return whole if spec["cut"] is None else whole.chunk(self.world, spec["cut"])[self.rank]

    def close(self):
        self.reference = self.results = None
        # Compiled functions of other sizes count towards a limit.
        torch._dynamo.reset()

    def megatron(self, comm, pointwise):
        column = lambda x, weight, bias: ColumnLinear.apply(x, weight, bias, comm)
        row = lambda x, weight: RowLinear.apply(x, weight, comm)
        return self.block.run(column, row, pointwise, self.shares_tokens, reduces=not isinstance(comm, Alone))

    def fused(self, pointwise):
        column = lambda x, weight, bias: FusedColumnLinear.apply(x, weight, bias, self.group)
        row = lambda x, weight: FusedRowLinear.apply(x, weight, self.group)
        return self.block.run(column, row, pointwise, self.shares_tokens)

    def expected(self):
        """z and the gradients of the whole block by name, in float32."""
        if self.reference is None:
            t = {spec["name"]: self.whole(spec).float() for spec in self.request["tensors"]}
            sizes = self.request["sizes"]
            dz = t.pop("dz", None)
            p = {**sizes, "DROPOUT": 0}
            with torch.set_grad_enabled(dz is not None):
                for each in t.values():
                    each.requires_grad_(dz is not None)
                z = BLOCKS[sizes["kind"]](t, p)
            found = {"z": z.detach()}
            if dz is not None:
                gradients = torch.autograd.grad(z, list(t.values()), dz)
                found |= {f"{name} gradient": each for name, each in zip(t, gradients, strict=True)}
            self.reference = found
            if self.device.type == "cuda":
                # Others on the device need what the backward pass left.
                torch.cuda.empty_cache()
        return self.reference

    def part_of_result(self, name, whole):
        spec = next(each for each in self.request["tensors"] if each["name"] == (name.split()[0] if name != "z" else "x"))
        return self.part(spec, whole)

    def error(self, name, results):
        """The norm of the errors of this device's part, relative to the norm of the part."""
        wanted = self.part_of_result(name, self.expected()[name])
        own = results[name].float().reshape(wanted.shape)
        return ((own - wanted).norm() / wanted.norm()).item()

    def validate(self, impl):
        if impl == "compute-only":
            return {"unchecked": "it does not communicate"}
        results = self.impls[impl]()
        error = max(self.error(name, results) for name in self.expected())
        return {"error": error, "bound": self.bound()}

    def for_xla(self):
        from xla import block_of

        tensors = {}
        for spec in self.request["tensors"]:
            whole = self.whole(spec)
            rows = whole.reshape(-1, whole.shape[-1]) if whole.dim() == 3 else whole
            tensors[spec["name"]] = (rows, spec["cut"])
        return block_of(self.request["sizes"], tensors, self.shares_tokens, self.world)

    def check_xla(self, results):
        """All elements of all devices' results."""
        pairs = [(results[name].float(), wanted.reshape(results[name].shape)) for name, wanted in self.expected().items()]
        return {"error": max(((own - wanted).norm() / wanted.norm()).item() for own, wanted in pairs), "bound": self.bound()}

    def kernels(self, impl):
        """Milliseconds in products, in attention and in other kernels of one run, without communication."""
        times = [0, 0, 0]
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
            self.impls[impl]()
            torch.cuda.synchronize()
        for event in profile.events():
            if event.device_type == torch.autograd.DeviceType.CUDA:
                kind = kind_of(event.name)
                if kind is not None:
                    times[kind] += event.time_range.elapsed_us() / 1000
        return {"kernels": times}

    def bound(self):
        return max(4 * torch.finfo(self.dtype).eps, 1e-5)

    def values(self, name, indices):
        """Elements of the reference by their row-major positions, and the error of the eager block in the same dtype."""
        wanted = self.expected().get(name)
        if wanted is None:
            raise ValueError(f"no output {name}")
        if self.results is None:
            self.results = self.impls["nccl"]()
        where = torch.tensor(indices, device=self.device)
        return {"values": wanted.flatten()[where].tolist(), "error": self.error(name, self.results)}


def kind_of(kernel):
    """0 for a product, 1 for attention, 2 for another kernel; none for communication, and for copies and fills."""
    if re.search(r"nccl|multimem|symm_mem|^Mem(cpy|set)", kernel):
        return None
    if re.search(r"sdpa|flash|fmha|attention", kernel, re.IGNORECASE):
        return 1
    return 0 if re.search(r"gemm|nvjet|cutlass|splitK", kernel, re.IGNORECASE) else 2
