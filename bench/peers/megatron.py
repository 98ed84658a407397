"""One transformer block on one of several devices, in the order of Megatron-LM.

Each device has some of the heads and of the hidden features. With shared tokens (cut "tp-sp"), it also has some of the
tokens outside of the linears: they are gathered before a linear that is cut by columns, and results are reduced and
scattered after one that is cut by rows. The backward pass gathers tokens beside the product for the gradient of the
input, and reduces that gradient beside the product for the gradient of the weight.
"""

import math

import torch
import torch.distributed as dist
import torch.nn.functional as F


class Nccl:
    """Collectives of the library. `gather` and `reduce` return a result and a wait for it."""

    def __init__(self, world, shares_tokens):
        self.world, self.shares_tokens = world, shares_tokens

    def gather(self, x):
        whole = x.new_empty(self.world * x.shape[0], *x.shape[1:])
        return whole, dist.all_gather_into_tensor(whole, x.contiguous(), async_op=True).wait

    def reduce(self, x):
        if not self.shares_tokens:
            return x, dist.all_reduce(x, async_op=True).wait
        own = x.new_empty(x.shape[0] // self.world, *x.shape[1:])
        return own, dist.reduce_scatter_tensor(own, x, async_op=True).wait


class Alone(Nccl):
    """No communication: the kernels of a device alone. A gather returns the same tokens each time."""

    def __init__(self, world, shares_tokens):
        super().__init__(world, shares_tokens)
        self.whole = {}

    def gather(self, x):
        if x.shape not in self.whole:
            self.whole[x.shape] = torch.cat([x.detach()] * self.world)
        return self.whole[x.shape], lambda: None

    def reduce(self, x):
        return (x[: x.shape[0] // self.world] if self.shares_tokens else x), lambda: None


class ColumnLinear(torch.autograd.Function):
    """The weight is cut by rows of [N, K], so that devices have different columns of the result."""

    @staticmethod
    def forward(ctx, x, weight, bias, comm):
        ctx.comm = comm
        ctx.save_for_backward(x, weight)
        ctx.has_bias = bias is not None
        whole = now(comm.gather(x)) if comm.shares_tokens else x
        return F.linear(whole, weight, bias)

    @staticmethod
    def backward(ctx, dy):
        x, weight = ctx.saved_tensors
        comm = ctx.comm
        whole, gathered = comm.gather(x) if comm.shares_tokens else (x, lambda: None)
        partial = dy @ weight
        gathered()
        dx, reduced = comm.reduce(partial)
        dw = dy.t() @ whole
        db = dy.sum(0) if ctx.has_bias else None
        reduced()
        return dx, dw, db, None


class RowLinear(torch.autograd.Function):
    """The weight is cut by columns of [N, K], so that the devices' results are summands."""

    @staticmethod
    def forward(ctx, x, weight, comm):
        ctx.comm = comm
        ctx.save_for_backward(x, weight)
        return now(comm.reduce(x @ weight.t()))

    @staticmethod
    def backward(ctx, dy):
        x, weight = ctx.saved_tensors
        whole = now(ctx.comm.gather(dy)) if ctx.comm.shares_tokens else dy
        return whole @ weight, whole.t() @ x, None


def now(started):
    result, wait = started
    wait()
    return result


class FusedColumnLinear(torch.autograd.Function):
    """The same with PyTorch's async tensor parallelism: products and collectives in chunks, in symmetric memory."""

    @staticmethod
    def forward(ctx, x, weight, bias, group):
        whole, (y,) = torch.ops.symm_mem.fused_all_gather_matmul(x, [weight.t()], 0, group)
        ctx.group = group
        ctx.has_bias = bias is not None
        ctx.save_for_backward(whole, weight)
        return y if bias is None else y.add_(bias)

    @staticmethod
    def backward(ctx, dy):
        whole, weight = ctx.saved_tensors
        dy = dy.contiguous()
        dx = torch.ops.symm_mem.fused_matmul_reduce_scatter(dy, weight, "sum", 0, ctx.group)
        return dx, dy.t() @ whole, dy.sum(0) if ctx.has_bias else None, None


class FusedRowLinear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, group):
        ctx.group = group
        ctx.save_for_backward(x, weight)
        return torch.ops.symm_mem.fused_matmul_reduce_scatter(x, weight.t(), "sum", 0, group)

    @staticmethod
    def backward(ctx, dy):
        x, weight = ctx.saved_tensors
        whole, (dx,) = torch.ops.symm_mem.fused_all_gather_matmul(dy.contiguous(), [weight], 0, ctx.group)
        return dx, whole.t() @ x, None


def rope(x, cos, sin):
    first, second = x.float().chunk(2, -1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], -1).to(x.dtype)


def swiglu(hidden):
    gate, up = hidden.chunk(2, -1)
    return F.silu(gate) * up


def gelu(hidden):
    return F.gelu(hidden, approximate="tanh")


def rms_norm(x, weight):
    return F.rms_norm(x, x.shape[-1:], weight, 1e-6)


def layer_norm(x, weight, shift):
    return F.layer_norm(x, x.shape[-1:], weight, shift, 1e-5)


POINTWISE = {each.__name__: each for each in (rope, swiglu, gelu, rms_norm, layer_norm)}


class Block:
    """`t` has this device's parts of the tensors by name. Tokens are rows: there is one sequence."""

    def __init__(self, sizes, t, world):
        self.kind, self.length, self.world = sizes["kind"], sizes["L"], world
        if sizes["B"] != 1:
            raise ValueError("a block has one sequence")
        self.heads, self.groups = sizes["HEADS"] // world, sizes["GROUPS"] // world
        self.head = sizes["H"] // sizes["HEADS"]
        self.t = dict(t)
        if self.kind == "llama":
            # As Megatron has them: one product for both.
            self.t["w_up"] = torch.cat([self.t.pop("w_gate"), self.t["w_up"]])
        device = t["x"].device
        pair = torch.arange(self.head // 2, dtype=torch.float32, device=device)
        position = torch.arange(self.length, dtype=torch.float32, device=device)
        angle = position[:, None] * torch.exp(pair * (-2 * math.log(10000) / self.head))
        self.cos, self.sin = angle.cos(), angle.sin()
        self.wrt = [name for name in self.t if name != "dz"]

    def forward(self, t, column, row, f):
        """`column` and `row`: the linears. `f`: the functions of POINTWISE, maybe compiled."""
        if self.kind == "llama":
            norm = lambda x, i: f["rms_norm"](x, t[f"norm{i}"])
        else:
            norm = lambda x, i: f["layer_norm"](x, t[f"norm{i}"], t[f"shift{i}"])
        mixed = self.attend(column(norm(t["x"], 1), t["w_qkv"], t.get("b_qkv")), f)
        residual = t["x"] + shifted(row(mixed, t["w_out"]), t.get("b_out"))
        hidden = column(norm(residual, 2), t["w_up"], t.get("b_up"))
        hidden = f["swiglu" if self.kind == "llama" else "gelu"](hidden)
        return residual + shifted(row(hidden, t["w_down"]), t.get("b_down"))

    def attend(self, mixed, f):
        length, heads, head = self.length, self.heads, self.head
        if self.kind == "llama":
            shared = heads // self.groups
            parts = mixed.view(length, self.groups, shared + 2, head).permute(1, 2, 0, 3)
            q, k, v = parts.split([shared, 1, 1], 1)
            q, k, v = f["rope"](q, self.cos, self.sin).flatten(0, 1), f["rope"](k, self.cos, self.sin)[:, 0], v[:, 0]
        else:
            q, k, v = mixed.view(length, heads, 3 * head).transpose(0, 1).split([head, head, head], -1)
        q, k, v = (each[None] for each in (q, k, v))
        done = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=q.shape[1] != k.shape[1])
        return done[0].transpose(0, 1).reshape(length, heads * head)

    def run(self, column, row, f, shares_tokens, reduces=True):
        """z and, if there is a cotangent dz, the gradients by name."""
        if "dz" not in self.t:
            with torch.no_grad():
                return {"z": self.forward(self.t, column, row, f)}
        t = {name: each.detach().requires_grad_() for name, each in self.t.items() if name != "dz"}
        z = self.forward(t, column, row, f)
        found = dict(zip(self.wrt, torch.autograd.grad(z, [t[name] for name in self.wrt], self.t["dz"]), strict=True))
        # Of tensors that every device has whole, and reads with its own tokens: one small collective, as Megatron's last.
        small = [name for name in found if found[name].dim() == 1 and name not in ("b_qkv", "b_up")]
        if shares_tokens and reduces:
            flat = torch.cat([found[name] for name in small])
            dist.all_reduce(flat)
            found |= zip(small, flat.split([found[name].numel() for name in small]), strict=True)
        return {"z": z.detach(), **self.unpacked(found)}

    def unpacked(self, found):
        named = {f"{name} gradient": each for name, each in found.items()}
        if self.kind == "llama":
            named["w_gate gradient"], named["w_up gradient"] = named["w_up gradient"].chunk(2)
        return named


def shifted(x, bias):
    return x if bias is None else x + bias
