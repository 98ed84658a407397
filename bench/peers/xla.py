"""The problems of `braid bench` in JAX, as XLA compiles them.

JAX runs all GPUs of a host from one process: rank 0's. The other ranks' processes answer at once. Operands are the same
as PyTorch's. `xla` has arrays with shardings, from which XLA derives the collectives; `xla-shard-map` names them.
"""

import math
import os
import time

import torch

# JAX would take three quarters of the memory, which the other contenders need.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

# Calls of which the average is taken: XLA's host issues one while another runs, as in a loop of training.
CALLS = 4


class Xla:
    """One jitted function of sharded arrays for each name."""

    def __init__(self, functions, arguments):
        self.functions, self.arguments = functions, arguments

    def __call__(self, impl):
        return self.functions[impl](*self.arguments)

    def results(self, impl):
        """In one piece on the first GPU."""
        return jax.tree.map(to_torch, self(impl))

    def iteration(self, impl):
        """Milliseconds of a call, and the host's microseconds to issue it."""
        jax.block_until_ready(self(impl))
        before = time.perf_counter()
        results = [self(impl) for _ in range(CALLS)]
        issued = time.perf_counter()
        jax.block_until_ready(results)
        ended = time.perf_counter()
        torch.cuda.set_device(0)
        return (ended - before) / CALLS * 1e3, (issued - before) / CALLS * 1e6

    def close(self):
        self.functions, self.arguments = {}, ()
        jax.clear_caches()


def mesh_of(world):
    return Mesh(jax.devices()[:world], ("tp",))


def to_jax(tensor, mesh, *spec):
    # JAX leaves another GPU as this thread's current one.
    torch.cuda.set_device(0)
    return jax.device_put(jax.dlpack.from_dlpack(tensor.detach().contiguous()), NamedSharding(mesh, P(*spec)))


def to_torch(array):
    whole = jax.block_until_ready(jax.device_put(array, jax.devices()[0]))
    torch.cuda.set_device(0)
    return torch.from_dlpack(whole)


def matmul_of(primitive, a, b, world):
    """`a`, `b`: the operands of all ranks, in their order; weights are stored [n, k]."""
    mesh = mesh_of(world)
    axis = 0 if primitive == "tp-columnwise" else 1
    cut = ("tp", None) if axis == 0 else (None, "tp")
    result = {"tp-columnwise": (None, "tp"), "tp-rowwise": ("tp", None), "tp-allreduce": (None, None)}[primitive]
    product = lambda x, w: jax.lax.dot_general(x, w, (((1,), (1,)), ((), ())))

    def manual(x, w):
        if primitive == "tp-columnwise":
            return product(jax.lax.all_gather(x, "tp", tiled=True), w)
        partial = product(x, w)
        if primitive == "tp-rowwise":
            return jax.lax.psum_scatter(partial, "tp", tiled=True)
        return jax.lax.psum(partial, "tp")

    by_hand = jax.shard_map(manual, mesh=mesh, in_specs=(P(*cut), P(*cut)), out_specs=P(*result), check_vma=False)
    functions = {"xla": jax.jit(product, out_shardings=NamedSharding(mesh, P(*result))), "xla-shard-map": jax.jit(by_hand)}
    return Xla(functions, [to_jax(torch.cat(each, axis), mesh, *cut) for each in (a, b)])


def rope(x, cos, sin):
    first, second = jnp.split(x.astype(jnp.float32), 2, -1)
    return jnp.concatenate([first * cos - second * sin, second * cos + first * sin], -1).astype(x.dtype)


def normalized(x, weight, shift):
    wide = x.astype(jnp.float32)
    if shift is None:
        scale = jax.lax.rsqrt(jnp.mean(wide * wide, -1, keepdims=True) + 1e-6)
        return (wide * scale * weight).astype(x.dtype)
    wide = wide - jnp.mean(wide, -1, keepdims=True)
    scale = jax.lax.rsqrt(jnp.mean(wide * wide, -1, keepdims=True) + 1e-5)
    return (wide * scale * weight + shift).astype(x.dtype)


def block_of(sizes, tensors, shares_tokens, world):
    """`tensors`: of each name the whole, and the axis along which it is cut. Tokens are rows."""
    mesh = mesh_of(world)
    heads, groups, length = sizes["HEADS"], sizes["GROUPS"], sizes["L"]
    head, is_llama = sizes["H"] // heads, sizes["kind"] == "llama"
    tokens = ("tp", None) if shares_tokens else (None, None)
    angle = torch.arange(length)[:, None] * torch.exp(torch.arange(head // 2) * (-2 * math.log(10000) / head))
    cos, sin = (jnp.asarray(each.numpy())[:, None, None, :] for each in (angle.cos(), angle.sin()))

    def held(x, *spec):
        return jax.lax.with_sharding_constraint(x, NamedSharding(mesh, P(*spec)))

    def linear(x, w, bias):
        y = jax.lax.dot_general(x, w, (((1,), (1,)), ((), ())))
        return y if bias is None else y + bias

    def attend(mixed):
        if is_llama:
            parts = mixed.reshape(length, groups, heads // groups + 2, head)
            q = rope(parts[:, :, :-2], cos, sin).reshape(length, heads, head)
            k, v = rope(parts[:, :, -2:-1], cos, sin)[:, :, 0], parts[:, :, -1]
        else:
            q, k, v = jnp.split(mixed.reshape(length, heads, 3 * head), 3, -1)
        q, k, v = (held(each, None, "tp", None)[None] for each in (q, k, v))
        done = jax.nn.dot_product_attention(q, k, v, is_causal=True, implementation="cudnn")
        return done[0].reshape(length, heads * head)

    def forward(t):
        get = t.get
        x = t["x"]
        mixed = attend(held(linear(normalized(x, t["norm1"], get("shift1")), t["w_qkv"], get("b_qkv")), None, "tp"))
        residual = x + held(linear(mixed, t["w_out"], get("b_out")), *tokens)
        n = normalized(residual, t["norm2"], get("shift2"))
        up = held(linear(n, t["w_up"], get("b_up")), None, "tp")
        gate = held(linear(n, t["w_gate"], None), None, "tp") if is_llama else None
        hidden = jax.nn.gelu(up, approximate=True) if gate is None else jax.nn.silu(gate) * up
        return residual + held(linear(hidden, t["w_down"], get("b_down")), *tokens)

    specs = {}
    for name, (tensor, axis) in tensors.items():
        cut = [None] * tensor.dim()
        if axis is not None:
            cut[axis] = "tp"
        specs[name] = tokens if name in ("x", "dz") else tuple(cut)
    arrays = {name: to_jax(tensor, mesh, *specs[name]) for name, (tensor, _) in tensors.items()}
    cotangent = arrays.pop("dz", None)
    sharding = {name: NamedSharding(mesh, P(*specs[name])) for name in arrays}
    if cotangent is None:
        run = lambda t: {"z": forward(t)}
        wanted = {"z": NamedSharding(mesh, P(*tokens))}
        return Xla({"xla": jax.jit(run, out_shardings=wanted)}, [arrays])

    def both(t, dz):
        z, pull = jax.vjp(forward, t)
        return {"z": z, **{f"{name} gradient": each for name, each in pull(dz)[0].items()}}

    wanted = {"z": NamedSharding(mesh, P(*tokens)), **{f"{name} gradient": each for name, each in sharding.items()}}
    return Xla({"xla": jax.jit(both, out_shardings=wanted)}, [arrays, cotangent])
