"""
Checks braid_torch on GPUs, one process each: torchrun --nproc-per-node N python/gpu/check_plans.py PLAN [JSON]

PLAN is `braid compile` of python/src/braid_torch/programs/all-gather-matmul.ts for N devices with M, K, N0 and DTYPE at
1024, 512, 256 and bfloat16. Prints a line for each check, and ends with status 1 if one fails.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

import torch
import torch.distributed as dist

import braid_torch
from braid_torch import torch_ops, torch_others

rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl", device_id=torch.device("cuda", torch.cuda.current_device()))
GROUP = dist.group.WORLD.group_name
DTYPE = torch.bfloat16
M, K, N = 1024, 512, 256
rows: list[dict[str, Any]] = []


def randn(*shape: int, seed: int, dtype: torch.dtype = DTYPE) -> torch.Tensor:
    made = torch.randn(*shape, generator=torch.Generator("cuda").manual_seed(seed), device="cuda", dtype=torch.float32)
    return made.to(dtype)


def check(name: str, run: Callable[[], str | None]) -> None:
    start, said, ok = time.perf_counter(), None, True
    try:
        said = run()
        torch.cuda.synchronize()
    except Exception:
        ok, said = False, traceback.format_exc(limit=6)
    votes: list[Any] = [None] * world
    dist.all_gather_object(votes, (ok, said))
    failed = [f"rank {r}: {text}" for r, (fine, text) in enumerate(votes) if not fine]
    rows.append({"check": name, "ok": not failed, "said": said if not failed else "\n".join(failed)})
    if rank == 0:
        seconds = time.perf_counter() - start
        print(
            f"{'ok  ' if not failed else 'FAIL'} {name} ({seconds:.2f} s) {said or ''}",
            *failed,
            sep="\n    ",
            flush=True,
        )


def gathered(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    whole = x.new_empty(world * x.shape[0], x.shape[1])
    dist.all_gather_into_tensor(whole, x)
    return torch.mm(whole, w.t())


def same(found: torch.Tensor, expected: torch.Tensor, bound: float = 2e-2) -> str:
    """Raises unless they are close. Says whether they have the same bits."""
    torch.testing.assert_close(
        found.reshape(expected.shape), expected, rtol=bound, atol=bound * expected.abs().max().item()
    )
    return "same bits" if torch.equal(found.reshape(expected.shape), expected) else "close"


def host_time(run: Callable[[], Any], calls: int = 200) -> float:
    """Microseconds of the host for one call, back to back."""
    torch.cuda.synchronize()
    times = []
    for _ in range(5):
        dist.barrier()
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(calls // 5):
            run()
        times.append((time.perf_counter() - start) / (calls // 5))
        torch.cuda.synchronize()
    return 1e6 * statistics.median(times)


def device_time(run: Callable[[], Any], calls: int = 20) -> float:
    """Milliseconds of one call, back to back, on the slowest rank."""
    for _ in range(3):
        run()
    best = float("inf")
    for _ in range(3):
        dist.barrier()
        torch.cuda.synchronize()
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        for _ in range(calls):
            run()
        end.record()
        torch.cuda.synchronize()
        best = min(best, start.elapsed_time(end) / calls)
    slowest = torch.tensor([best], device="cuda")
    dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
    return float(slowest)


plan: Any = None
x, w = randn(1, M // world, K, seed=rank), randn(N, K, seed=100 + rank)


def loads() -> str:
    global plan
    start = time.perf_counter()
    plan = braid_torch.load(sys.argv[1])
    return f"{time.perf_counter() - start:.2f} s, {plan.inputs[0]}"


def runs() -> str:
    expected = gathered(x[0], w)
    said = [same(plan(x, w), expected) for _ in range(4)]
    out = torch.empty(world, M // world, N, dtype=DTYPE, device="cuda")
    for _ in range(3):
        out.fill_(float("nan"))
        said.append(same(plan(x, w, out=out), expected))
    return ", ".join(sorted(set(said)))


def other_tensors() -> str:
    for seed in range(60):
        own = randn(1, M // world, K, seed=1000 + seed * world + rank)
        same(plan(own, w), gathered(own[0], w))
    return str(braid_torch.explain()[0])


def other_streams() -> None:
    expected = gathered(x[0], w)
    streams = [torch.cuda.Stream() for _ in range(2)]
    for i in range(20):
        with torch.cuda.stream(streams[i % 2]):
            streams[i % 2].wait_stream(torch.cuda.default_stream())
            found = plan(x, w)
        torch.cuda.current_stream().wait_stream(streams[i % 2])
        same(found, expected)


def captures() -> str:
    expected = gathered(x[0], w)
    out = torch.empty(world, M // world, N, dtype=DTYPE, device="cuda")
    graph = torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        plan(x, w, out=out)
        doubled = out * 2
    for _ in range(100):
        graph.replay()
    torch.cuda.synchronize()
    same(out, expected)
    plan(x, w)
    return same(doubled, expected * 2)


def refuses() -> str:
    expected = gathered(x[0], w)
    said = []
    # Rank 0 passes a tensor of another shape. The others get its refusal from their next call.
    try:
        plan(x[:, : M // world // 2] if rank == 0 else x, w)
    except ValueError as error:
        said.append(str(error).splitlines()[0])
    dist.barrier()
    try:
        plan(x, w)
    except ValueError as error:
        said.append(str(error).splitlines()[1])
    dist.barrier()
    if len(said) != 1:
        raise AssertionError(f"{len(said)} refusals: {said}")
    same(plan(x, w), expected)
    return said[0]


def autograd_is_refused() -> str:
    try:
        plan(x.clone().requires_grad_(True), w)
    except ValueError as error:
        return str(error).splitlines()[1]
    finally:
        # Every rank refuses, so every rank hears of the others once.
        dist.barrier()
        try:
            plan(x, w)
        except ValueError:
            pass
    raise AssertionError("not refused")


def memory_stays() -> str:
    free = []
    for _ in range(10):
        for _ in range(1000):
            plan(x, w)
        torch.cuda.synchronize()
        free.append(torch.cuda.mem_get_info()[0])
    if free[-1] < free[1]:
        raise AssertionError(f"free memory shrinks: {free}")
    return f"10,000 calls, {free[-1] / 2**30:.1f} GiB free"


def host_times() -> str:
    out = torch.empty(world, M // world, N, dtype=DTYPE, device="cuda")
    runner = plan.runner
    key = max(runner._entries, key=lambda each: runner._entries[each].used)
    stream = torch.cuda.current_stream().cuda_stream
    graph, launch = runner._entries[key].graph, runner._launch
    times = {
        "launch of the graph": host_time(lambda: launch(graph, stream)),
        "run": host_time(lambda: runner.run(key, stream)),
        "plan(x, w, out=y)": host_time(lambda: plan(x, w, out=out)),
        "plan(x, w)": host_time(lambda: plan(x, w)),
        "all_gather + mm": host_time(lambda: gathered(x[0], w)),
    }
    return ", ".join(f"{name} {us:.1f} us" for name, us in times.items())


check("load a plan", loads)
check("results of calls, by calls and graphs", runs)
check("60 other tensors", other_tensors)
check("two streams in turn", other_streams)
check("capture by torch.cuda.graph", captures)
check("a shape that one rank gets wrong", refuses)
check("a tensor that requires a gradient", autograd_is_refused)
check("memory after many calls", memory_stays)
check("host times", host_times)


def by_braid(a: torch.Tensor, bs: list[torch.Tensor]) -> tuple[Any, str]:
    """The last op's result by its plan, and what was the fastest."""
    key = list(torch_ops._measured)[-1]
    return torch_ops._measured[key]["braid"](a, bs), f"fastest: {torch_ops._names[key]}"


def gather_case(shape: tuple[int, ...], columns: tuple[int, ...], dim: int, transposed: bool, return_a: bool) -> str:
    a = randn(*shape, seed=rank)
    inner = shape[-1] * (world if dim == len(shape) - 1 else 1)
    seeds = [50 + rank + n for n in columns]
    pairs = zip(columns, seeds, strict=True)
    bs = [randn(n, inner, seed=s).t() if transposed else randn(inner, n, seed=s) for n, s in pairs]
    others = torch_others.gather_ways(dim, dist.group.WORLD, return_a)
    whole, expected = others["all_gather and torch.mm"](a, bs)
    braid_torch.all_gather_matmul(a, bs, dim, GROUP, return_a)
    (found_whole, found), fastest = by_braid(a, bs)
    if return_a:
        same(found_whole, whole, 0)
        assert found_whole.stride() == whole.stride(), (found_whole.stride(), whole.stride())
    said = set()
    for own, other in zip(found, expected, strict=True):
        said.add(same(own, other))
        assert own.stride() == other.stride(), (own.stride(), other.stride())
    return f"{', '.join(said)}; {fastest}"


def scatter_case(shape: tuple[int, ...], columns: int, dim: int, transposed: bool, op: str) -> str:
    a = randn(*shape, seed=rank)
    b = randn(columns, shape[-1], seed=70 + rank).t() if transposed else randn(shape[-1], columns, seed=70 + rank)
    expected = torch_others.scatter_ways(op, dim, dist.group.WORLD)["torch.mm and reduce_scatter"](a, [b])
    braid_torch.matmul_reduce_scatter(a, b, op, dim, GROUP)
    found, fastest = by_braid(a, [b])
    assert found.stride() == expected.stride(), (found.stride(), expected.stride())
    return f"{same(found, expected)}; {fastest}"


def reduce_case(m: int, k: int, n: int) -> str:
    a, b = randn(m, k, seed=rank), randn(n, k, seed=70 + rank).t()
    expected = torch.mm(a, b)
    dist.all_reduce(expected)
    braid_torch.matmul_all_reduce(a, b, "sum", GROUP)
    found, fastest = by_braid(a, [b])
    return f"{same(found, expected)}; {fastest}"


def rows_that_do_not_divide() -> str:
    a, b = randn(world * 8 + 1, 64, seed=1), randn(64, 32, seed=2)
    try:
        braid_torch.matmul_reduce_scatter(a, b, "sum", 0, GROUP)
    except ValueError as error:
        said = str(error).splitlines()[1]
    else:
        raise AssertionError("not refused")
    a = randn(world * 8, 64, seed=1)
    braid_torch.matmul_reduce_scatter(a, b, "sum", 0, GROUP)
    return said


def shapes_that_differ() -> str:
    a, b = randn(512 if rank else 1024, 64, seed=1), randn(64, 32, seed=2)
    try:
        braid_torch.matmul_reduce_scatter(a, b, "sum", 0, GROUP)
    except ValueError as error:
        return str(error).splitlines()[0]
    raise AssertionError("not refused")


def falls_back() -> str:
    """Five weights have no plan."""
    a, bs = randn(64, 128, seed=rank), [randn(128, 96, seed=3 + i) for i in range(5)]
    whole, found = braid_torch.all_gather_matmul(a, bs, 0, GROUP, True)
    for own, b in zip(found, bs, strict=True):
        same(own, whole @ b)
        same(own, gathered(a, b.t()))
    runs = braid_torch.choices()[-1]["runs"]
    assert runs != "braid"
    return runs


if os.environ.get("BRAID_COMPILER"):
    check("gather, [rows, k], one weight as in nn.Linear", lambda: gather_case((512, 512), (256,), 0, True, True))
    check("gather, three weights by rows, without A", lambda: gather_case((512, 512), (256, 128, 64), 0, False, False))
    check("gather, 3-D, dim 0", lambda: gather_case((4, 64, 256), (128,), 0, True, True))
    check("gather, 3-D, dim 1", lambda: gather_case((4, 64, 256), (128,), 1, True, True))
    check("gather, columns", lambda: gather_case((1024, 512), (256,), 1, True, True))
    check("gather, columns, two weights by rows", lambda: gather_case((3, 129, 64), (128, 48), 2, False, False))
    check("scatter, 2-D", lambda: scatter_case((1024, 512), 256, 0, True, "sum"))
    check("scatter, 3-D, dim 1, avg", lambda: scatter_case((4, 128, 256), 192, 1, False, "avg"))
    check("scatter, columns", lambda: scatter_case((1024, 512), 512, 1, True, "sum"))
    check("scatter, columns, weight by rows, avg", lambda: scatter_case((3, 43, 256), 192, 2, False, "avg"))
    check("all-reduce", lambda: reduce_case(1024, 512, 256))
    check("rows that do not divide", rows_that_do_not_divide)
    check("shapes that differ between ranks", shapes_that_differ)
    check("five weights have no plan", falls_back)

    def installed() -> str:
        braid_torch.install()
        a, b = randn(512, 512, seed=rank), randn(256, 512, seed=9).t()
        whole, (y,) = torch.ops.symm_mem.fused_all_gather_matmul(a, [b], 0, GROUP)
        said = same(y, gathered(a, b.t()))
        z = torch.ops.symm_mem.fused_matmul_reduce_scatter(whole, b, "sum", 0, GROUP)
        compiled = torch.compile(
            lambda a, b: torch.ops.symm_mem.fused_all_gather_matmul(a, [b], 0, GROUP)[1][0] * 2, fullgraph=True
        )
        same(compiled(a, b), 2 * y)
        return f"{said}, {list(z.shape)}"

    check("install, also under torch.compile", installed)

    def async_tp_gathers() -> str:
        """The shapes of PyTorch's AsyncTPTest: values and strides of the fused op against the library's."""
        said = []
        for dim in range(3):
            a = randn(8, 64, 32, seed=rank, dtype=torch.float32)
            inner = 32 * (world if dim == 2 else 1)
            bs = [randn(inner, 16, seed=40 + i, dtype=torch.float32) for i in range(3)]
            ways = torch_others.gather_ways(dim, dist.group.WORLD, True)
            whole, expected = ways["all_gather and torch.mm"](a, bs)
            found_whole, found = torch.ops.symm_mem.fused_all_gather_matmul(a, bs, dim, GROUP)
            for own, other in zip((found_whole, *found), (whole, *expected), strict=True):
                said.append(same(own, other, 1e-4))
                assert own.stride() == other.stride(), (dim, own.stride(), other.stride())
        return ", ".join(sorted(set(said)))

    def async_tp_scatters() -> str:
        said = []
        for dim in range(3):
            a = randn(8, 64, 1024, seed=rank, dtype=torch.float32)
            b = randn(1024, 16, seed=9, dtype=torch.float32)
            expected = torch_others.scatter_ways("avg", dim, dist.group.WORLD)["torch.mm and reduce_scatter"](a, [b])
            found = torch.ops.symm_mem.fused_matmul_reduce_scatter(a, b, "avg", dim, GROUP)
            said.append(same(found, expected, 1e-4))
            assert found.stride() == expected.stride(), (dim, found.stride(), expected.stride())
        return ", ".join(sorted(set(said)))

    def scaled_ops() -> str:
        """Floats of 8 bits with scales of rows and of tensors, against the library's way."""
        said = []
        for rowwise in (True, False):
            for dim, shape in ((0, (256, 512)), (1, (2, 128, 512))):
                a = randn(*shape, seed=rank).to(torch.float8_e4m3fn)
                b = randn(256, 512, seed=9).to(torch.float8_e4m3fn).t()
                of_a = torch.rand(*shape[:-1], 1, device="cuda") if rowwise else torch.tensor(0.5, device="cuda")
                of_b = torch.rand(1, 256, device="cuda") if rowwise else torch.tensor(2.0, device="cuda")
                dtype, ops = torch.bfloat16, torch.ops.symm_mem
                ways = torch_others.scaled_gather_ways(dim, dist.group.WORLD, rowwise, [dtype], [False])
                whole, (expected,) = ways["all_gather and _scaled_mm"](a, [b, of_a, of_b])
                more = ([None], [None], [dtype], [False])
                found_whole, (found,) = ops.fused_all_gather_scaled_matmul(a, [b], of_a, [of_b], dim, GROUP, *more)
                assert torch.equal(whole.view(torch.uint8), found_whole.view(torch.uint8))
                said.append(same(found, expected))
                ways = torch_others.scaled_scatter_ways("sum", dim, dist.group.WORLD, dtype, False)
                parts = ways["_scaled_mm and reduce_scatter"](a, [b, of_a, of_b])
                places = (dim, dim, GROUP, [*shape[:-1], 256])
                found = ops.fused_scaled_matmul_reduce_scatter(a, b, of_a, of_b, "sum", *places, out_dtype=dtype)
                said.append(same(found, parts))
        return ", ".join(sorted(set(said)))

    def gradients_of_linears() -> str:
        """In float32, against one process that has everything."""
        rows, width, hidden = 64 * world, 96, 128
        x = randn(rows, width, seed=1, dtype=torch.float32)
        up = randn(hidden, width, seed=2, dtype=torch.float32)
        down = randn(width, hidden, seed=3, dtype=torch.float32)
        whole = [each.clone().requires_grad_() for each in (x, up, down)]
        ((torch.tanh(whole[0] @ whole[1].t()) @ whole[2].t()) ** 2).sum().backward()
        own = [each.chunk(world, dim)[rank].contiguous().requires_grad_() for each, dim in ((x, 0), (up, 0), (down, 1))]
        hidden_part = torch.tanh(braid_torch.column_parallel_linear(own[0], own[1], GROUP))
        (braid_torch.row_parallel_linear(hidden_part, own[2], GROUP) ** 2).sum().backward()
        for found, expected, dim in zip(own, whole, (0, 0, 1), strict=True):
            same(found.grad, expected.grad.chunk(world, dim)[rank], 1e-4)
        main = torch.nn.Parameter(own[1].detach().bfloat16())
        main.main_grad = torch.zeros(main.shape, device="cuda")
        braid_torch.column_parallel_linear(own[0].detach().bfloat16(), main, GROUP).sum().backward()
        assert main.grad is None and main.main_grad.abs().sum() > 0
        return "close"

    check("PyTorch's AsyncTPTest, gathers", async_tp_gathers)
    check("PyTorch's AsyncTPTest, scatters", async_tp_scatters)
    check("scaled ops", scaled_ops)
    check("gradients of linear layers", gradients_of_linears)


if rank == 0 and len(sys.argv) > 2:
    Path(sys.argv[2]).write_text(
        json.dumps({"machine": torch.cuda.get_device_name(), "world": world, "rows": rows}, indent=1)
    )
    print(f"{sum(not row['ok'] for row in rows)} of {len(rows)} failed", flush=True)
status = int(any(not row["ok"] for row in rows))
dist.barrier()
sys.stdout.flush()
os._exit(status)
