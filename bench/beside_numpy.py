"""The kernels of beside-numpy.ts as numpy programs: a name and the least CPU time in milliseconds a line, on one thread."""

import os
import time

os.environ["OPENBLAS_NUM_THREADS"] = "1"
import numpy as np  # noqa: E402


def report(name, run):
    run()
    times = []
    for _ in range(25):
        before = time.process_time()
        run()
        times.append(time.process_time() - before)
    print(f"{name}\t{min(times) * 1e3}")


x = (np.arange(4096 * 4096) % 97 / 16 - 3).astype(np.float32).reshape(4096, 4096)
y = np.empty_like(x)
report("copy", lambda: np.copyto(y, x))
report("exp", lambda: np.exp(x, out=y))


def silu():
    np.negative(x, out=y)
    np.exp(y, out=y)
    np.add(y, 1, out=y)
    np.divide(x, y, out=y)


def layer_norm():
    distance = x - x.mean(axis=1, keepdims=True)
    return distance / np.sqrt((distance * distance).mean(axis=1, keepdims=True) + 1e-5)


def softmax(scores):
    scores -= scores.max(axis=-1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=-1, keepdims=True)
    return scores


def softmax_of_copy():
    np.copyto(y, x)
    softmax(y)


report("silu", silu)
report("layerNorm", layer_norm)
report("rmsNorm", lambda: x / np.sqrt((x * x).mean(axis=1, keepdims=True) + 1e-6))
report("softmax", softmax_of_copy)

a = x[:2048, :2048].copy()
c = np.empty_like(a)
report("matmul float", lambda: np.matmul(a, a, out=c))

q, k, v = (np.random.default_rng(i).standard_normal((16, 512, 64), dtype=np.float32) for i in range(3))
report("attention", lambda: softmax(q @ k.transpose(0, 2, 1) * np.float32(0.125)) @ v)
