"""The transformer blocks of examples/transformer in PyTorch: the same formulas and the same order of weights.

A block maps its inputs by name to z. `faults` plants an error, to see whether a comparison finds it. In float64 all is
computed by definition; in other dtypes by PyTorch's fused functions, as a user would write it.
"""

import math

import torch
import torch.nn.functional as F

FAULTS = {
    "mask": "the causal mask is off by one",
    "scale": "scores are divided by d instead of its root",
    "swap": "queries and keys are swapped",
    "partial": "the partial sum of the last device is missing in the MLP's second linear",
    "residual": "the second residual takes the normalized tensor",
}


def shapes(block, p):
    """The names and shapes of the inputs before the seed and the cotangent, in the order of the example."""
    h, ffn = p["H"], p["FFN"]
    x = ("x", (p["B"], p["L"], h))
    if block == "llama":
        d, r = h // p["HEADS"], p["HEADS"] // p["GROUPS"]
        qkv = p["GROUPS"] * (r + 2) * d
        attention = [("norm1", (h,)), ("w_qkv", (qkv, h)), ("w_out", (h, p["HEADS"] * d)), ("norm2", (h,))]
        return [x, *attention, ("w_gate", (ffn, h)), ("w_up", (ffn, h)), ("w_down", (h, ffn))]
    attention = [("w_qkv", (3 * h, h)), ("b_qkv", (3 * h,)), ("w_out", (h, h)), ("b_out", (h,))]
    mlp = [("w_up", (ffn, h)), ("b_up", (ffn,)), ("w_down", (h, ffn)), ("b_down", (h,))]
    return [x, ("norm1", (h,)), ("shift1", (h,)), *attention, ("norm2", (h,)), ("shift2", (h,)), *mlp]


def attend(q, k, v, faults):
    """Causal attention of [B, heads, L, d]; groups of query heads share a key and a value."""
    if "swap" in faults:
        r = q.shape[1] // k.shape[1]
        q, k = k.repeat_interleave(r, 1), q
        v = v.repeat_interleave(r, 1)
    if q.dtype == torch.float32 and q.is_cuda:
        # The kernel for float32 without a matrix of scores takes no groups.
        r = q.shape[1] // k.shape[1]
        return F.scaled_dot_product_attention(q, k.repeat_interleave(r, 1), v.repeat_interleave(r, 1), is_causal=True)
    if q.dtype != torch.float64:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=q.shape[1] != k.shape[1])
    length, d = q.shape[2:]
    r = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(r, 1), v.repeat_interleave(r, 1)
    scores = q @ k.transpose(2, 3) / (d if "scale" in faults else math.sqrt(d))
    seen = torch.ones(length, length, dtype=torch.bool, device=q.device).tril(1 if "mask" in faults else 0)
    return scores.masked_fill_(~seen, -math.inf).softmax(-1) @ v


def mlp_down(hidden, weight, bias, devices, faults):
    if "partial" in faults:
        own = hidden.shape[-1] // devices
        hidden, weight = hidden[..., :-own], weight[:, :-own]
    return F.linear(hidden, weight, bias)


def rope(x):
    """Rotates the halves of the last axis by the position times 10000^(-2 j / d); 16-bit floats in float32."""
    length, d = x.shape[-2:]
    dtype = torch.float64 if x.dtype == torch.float64 else torch.float32
    pair = torch.arange(d // 2, dtype=dtype, device=x.device)
    position = torch.arange(length, dtype=dtype, device=x.device)
    angle = position[:, None] * torch.exp(pair * (-2 * math.log(10000) / d))
    c, s = angle.cos(), angle.sin()
    first, second = x.to(dtype).chunk(2, -1)
    return torch.cat([first * c - second * s, second * c + first * s], -1).to(x.dtype)


def llama(t, p, devices=1, faults=()):
    x = t["x"]
    b, length, h = x.shape
    heads, groups = p["HEADS"], p["GROUPS"]
    r, d = heads // groups, h // heads
    mixed = F.linear(F.rms_norm(x, (h,), t["norm1"], 1e-6), t["w_qkv"])
    parts = mixed.reshape(b, length, groups, r + 2, d).permute(0, 2, 3, 1, 4)
    q, k, v = parts.split([r, 1, 1], 2)
    q, k = rope(q).reshape(b, heads, length, d), rope(k)[:, :, 0]
    mixed = attend(q, k, v[:, :, 0], faults).transpose(1, 2).reshape(b, length, heads * d)
    residual = x + F.linear(mixed, t["w_out"])
    n = F.rms_norm(residual, (h,), t["norm2"], 1e-6)
    hidden = F.silu(F.linear(n, t["w_gate"])) * F.linear(n, t["w_up"])
    return (n if "residual" in faults else residual) + mlp_down(hidden, t["w_down"], None, devices, faults)


def gpt(t, p, devices=1, faults=()):
    x = t["x"]
    b, length, h = x.shape
    d = h // p["HEADS"]
    mixed = F.linear(F.layer_norm(x, (h,), t["norm1"], t["shift1"], 1e-5), t["w_qkv"], t["b_qkv"])
    q, k, v = mixed.reshape(b, length, p["HEADS"], 3 * d).transpose(1, 2).split([d, d, d], -1)
    mixed = attend(q, k, v, faults).transpose(1, 2).reshape(b, length, h)
    drop = [kept(p, t, offset, x) for offset in range(2)]
    residual = x + F.linear(mixed, t["w_out"], t["b_out"]) * drop[0]
    n = F.layer_norm(residual, (h,), t["norm2"], t["shift2"], 1e-5)
    hidden = F.gelu(F.linear(n, t["w_up"], t["b_up"]), approximate="tanh")
    down = mlp_down(hidden, t["w_down"], t["b_down"], devices, faults)
    return (n if "residual" in faults else residual) + down * drop[1]


BLOCKS = {"gpt": gpt, "llama": llama}


def kept(p, t, offset, x):
    """The factor of dropout."""
    return stays(x.shape, p["DROPOUT"], t["seed"], offset, x) / (1 - p["DROPOUT"]) if p["DROPOUT"] > 0 else 1


def stays(shape, probability, seed, offset, like):
    """1 where dropout keeps an element: its word of Philox 4x32-10 is below (1 - p) 2^32."""
    count = math.prod(shape)
    words = philox(torch.arange((count + 3) // 4), int(seed), offset).flatten()[:count]
    return (words < math.floor((1 - probability) * 2**32)).to(like.dtype).reshape(shape).to(like.device)


def philox(block, seed, offset):
    """The four words of each block, as [blocks, 4]."""
    mask = 2**32 - 1
    key = [seed & mask, seed >> 32 & mask]
    c = [block & mask, block >> 32, *(torch.full_like(block, offset >> s & mask) for s in (0, 32))]
    for _ in range(10):
        (high0, low0), (high1, low1) = wide_product(c[0], 0xD2511F53), wide_product(c[2], 0xCD9E8D57)
        c = [high1 ^ c[1] ^ key[0], low1, high0 ^ c[3] ^ key[1], low0]
        key = [(key[0] + 0x9E3779B9) & mask, (key[1] + 0xBB67AE85) & mask]
    return torch.stack(c, 1)


def wide_product(a, m):
    """The upper and lower 32 bits of a product of 32-bit words in int64, by halves of `m`."""
    mask = 2**32 - 1
    low, high = a * (m & 0xFFFF), a * (m >> 16)
    middle = high + (low >> 16)
    return middle >> 16, (middle << 16 | low & 0xFFFF) & mask
