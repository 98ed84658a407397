"""A GEMM of our own for sm_90a beside cuBLASLt, and beside communication with the host or a second GPU.

    python3 bench/gemm/measure.py [gemms] [moves]

needs H100 or H200, PyTorch and cuda-bindings. It checks values and bits, then prints
  a row per GEMM       the best of cuBLASLt's 8 heuristics, and how fast ours is beside it and beside the first of them
  a row per gather     rows of A arrive from the peer: GEMMs of chunks, and one GEMM that waits for the rows of its tiles
  a row per scatter    rows of C leave for the peer: copies after GEMMs of chunks, and one GEMM that stores to the peer
The peer is the second GPU if there is one, and computes nothing meanwhile; otherwise the host over PCIe. The sizes are
chosen for the link, so that copies take about as long as the GEMM.
"""

import ctypes
import math
import os
import statistics
import sys
import time

import torch
from cuda.bindings import driver as cu
from cuda.bindings import nvrtc

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "../../python/src"))
from braid_torch.cuda import gemms as lt  # noqa: E402

NEVER = 1 << 30
HAS_PEER = torch.cuda.device_count() > 1
# Rows, contracted axis and columns.
GATHERS = ((8192, 8192, 8192), (4096, 4096, 8192), (8192, 4096, 16384))
SCATTERS = ((8192, 8192, 8192), (4096, 8192, 4096), (8192, 16384, 4096))
if HAS_PEER:
    GATHERS = ((16384, 8192, 1024), (16384, 4096, 1024), (8192, 8192, 2048), (8192, 4096, 3072))
    SCATTERS = ((16384, 1024, 8192), (16384, 1024, 4096), (8192, 2048, 8192), (8192, 2048, 4096))
SOURCE = open(os.path.join(here, "gemm.cu")).read()
# Columns of a tile, stages and CTAs in a cluster.
FORMS = ((256, 4, 1), (256, 4, 2), (128, 6, 1), (128, 6, 2))


def ok(result):
    assert int(result[0]) == 0, result
    return result[1] if len(result) == 2 else result[1:]


def wgmma(columns, a_mn, b_mn):
    """The function that multiplies 64 rows by 16 of K: its asm names all accumulators."""
    n = columns // 2
    registers = ", ".join(f"%{i}" for i in range(n))
    sums = ", ".join(f'"+f"(d[{i}])' for i in range(n))
    multiply = f"wgmma.mma_async.sync.aligned.m64n{columns}k16.f32.bf16.bf16"
    operands = f"{{{registers}}}, %{n}, %{n + 1}, p, 1, 1, {a_mn}, {b_mn}"
    return f"""typedef unsigned long long u64;
static __device__ __forceinline__ void wgmma(float (&d)[{n}], u64 a, u64 b, int adds) {{
  asm volatile("{{\\n.reg .pred p;\\nsetp.ne.b32 p, %{n + 2}, 0;\\n{multiply} {operands};\\n}}\\n"
    : {sums} : "l"(a), "l"(b), "r"(adds));
}}
"""


def tensor_map(t, box_rows):
    rows, columns = t.shape
    return ok(
        cu.cuTensorMapEncodeTiled(
            cu.CUtensorMapDataType.CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
            2,
            t.data_ptr(),
            [cu.cuuint64_t(columns), cu.cuuint64_t(rows)],
            [cu.cuuint64_t(columns * 2)],
            [cu.cuuint32_t(64), cu.cuuint32_t(box_rows)],
            [cu.cuuint32_t(1)] * 2,
            cu.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
            cu.CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_128B,
            cu.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
            cu.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
        )
    )


class Gemm:
    """a is [m, k], or [k, m] with a_mn; b is [n, k], or [k, n] with b_mn."""

    def __init__(self, bn, stages, cluster, a_mn, b_mn, gated, group):
        self.bn, self.cluster, self.a_mn, self.b_mn = bn, cluster, a_mn, b_mn
        numbers = {"BN": bn, "STAGES": stages, "CLUSTER": cluster, "GROUP": group, "A_MN": a_mn, "B_MN": b_mn}
        options = [b"--gpu-architecture=sm_90a", b"--std=c++17", *(f"-D{k}={v}".encode() for k, v in numbers.items())]
        options += [b"-DGATED"] if gated else []
        text = (wgmma(bn, a_mn, b_mn) + SOURCE).encode()
        program = ok(nvrtc.nvrtcCreateProgram(text, b"gemm.cu", 0, [], []))
        assert int(nvrtc.nvrtcCompileProgram(program, len(options), options)[0]) == 0
        data = b" " * ok(nvrtc.nvrtcGetCUBINSize(program))
        ok((*nvrtc.nvrtcGetCUBIN(program, data), None))
        self.function = ok(cu.cuModuleGetFunction(ok(cu.cuModuleLoadData(data)), b"gemm"))
        self.memory = stages * (128 * 64 * 2 + bn * 64 * 2) + 4 * 8192 + 16 * stages + 1024
        attribute = cu.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        ok((*cu.cuFuncSetAttribute(self.function, attribute, self.memory), None))

    def bind(self, a, b, c, flags=None, flag_rows=NEVER, own_c=None, own_from=NEVER):
        """A call that takes the flags' value of this run."""
        m, k = a.shape[::-1] if self.a_mn else a.shape
        n = b.shape[1 if self.b_mn else 0]
        boxes = (64 if self.a_mn else 128, 64 if self.b_mn else self.bn // self.cluster, 64, 64)
        maps = [tensor_map(t, rows) for t, rows in zip((a, b, c, c if own_c is None else own_c), boxes)]
        numbers = [ctypes.c_int(each) for each in (own_from, m, n, k)]
        numbers += [ctypes.c_uint64(flags.data_ptr() if flags is not None else 0), ctypes.c_int(flag_rows)]
        numbers += [ctypes.c_uint32(1)]
        pointers = [*(int(each.getPtr()) for each in maps), *(ctypes.addressof(each) for each in numbers)]
        arguments = (ctypes.c_void_p * len(pointers))(*pointers)
        tiles = math.ceil(m / 128 / self.cluster) * math.ceil(n / self.bn) * self.cluster
        grid = min(torch.cuda.get_device_properties(0).multi_processor_count, tiles)

        def run(epoch=1, _kept=maps):
            numbers[6].value = epoch
            stream = torch.cuda.current_stream().cuda_stream
            sizes = (grid, 1, 1, 384, 1, 1, self.memory)
            ok((*cu.cuLaunchKernel(self.function, *sizes, stream, ctypes.addressof(arguments), 0), None))

        return run


made = {}


def gemm(bn, stages, cluster, a_mn=0, b_mn=0, gated=False, group=8):
    key = (bn, stages, cluster, a_mn, b_mn, gated, group)
    if key not in made:
        made[key] = Gemm(*key)
    return made[key]


library = lt._library()
handle, workspace = None, None


def made_by(name, *values):
    made_ = lt.U64()
    assert getattr(library, name)(ctypes.byref(made_), *values) == 0, name
    return made_.value


def heuristics(a, b, c, a_mn=0, b_mn=0):
    """A call for each of cuBLASLt's heuristics, as Braid asks for them."""
    global handle, workspace
    if handle is None:
        handle = made_by("cublasLtCreate")
        workspace = torch.empty(lt.WORKSPACE_BYTES, dtype=torch.uint8, device="cuda")
    (m, n), k = c.shape, a.shape[0 if a_mn else 1]
    data = lt.DTYPES["bfloat16"][2]
    compute, scale = lt.COMPUTE_FLOAT

    def put(kind, descriptor, attribute, value):
        setter = getattr(library, f"cublasLt{kind}SetAttribute")
        assert setter(descriptor, attribute, ctypes.byref(value), ctypes.sizeof(value)) == 0

    descriptor = made_by("cublasLtMatmulDescCreate", compute, scale)
    put("MatmulDesc", descriptor, lt.CUBLASLT_MATMUL_DESC_TRANSA, lt.I32(0 if b_mn else 1))
    put("MatmulDesc", descriptor, lt.CUBLASLT_MATMUL_DESC_TRANSB, lt.I32(1 if a_mn else 0))
    left = made_by("cublasLtMatrixLayoutCreate", data, *((n, k, n) if b_mn else (k, n, k)))
    right = made_by("cublasLtMatrixLayoutCreate", data, *((m, k, m) if a_mn else (k, m, k)))
    result = made_by("cublasLtMatrixLayoutCreate", data, n, m, n)
    preference = made_by("cublasLtMatmulPreferenceCreate")
    put("MatmulPreference", preference, lt.CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, lt.U64(lt.WORKSPACE_BYTES))
    scheme = ctypes.c_uint32(lt.CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE)
    put("MatmulPreference", preference, lt.CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, scheme)
    size, count = lt.CUBLASLT_HEURISTIC_RESULT_SIZE, lt.I32()
    found = ctypes.create_string_buffer(lt.MOST_ALGORITHMS * size)
    head = (handle, descriptor, left, right, result, result, preference, lt.MOST_ALGORITHMS, found)
    assert library.cublasLtMatmulAlgoGetHeuristic(*head, ctypes.byref(count)) == 0
    one, zero = ctypes.c_float(1), ctypes.c_float(0)

    def call(i):
        algorithm = ctypes.create_string_buffer(found.raw[size * i : size * i + lt.CUBLASLT_ALGO_SIZE])

        def run():
            matrices = (b.data_ptr(), left, a.data_ptr(), right, ctypes.byref(zero), c.data_ptr(), result)
            rest = (c.data_ptr(), result, algorithm, workspace.data_ptr(), lt.WORKSPACE_BYTES)
            stream = torch.cuda.current_stream().cuda_stream
            assert library.cublasLtMatmul(handle, descriptor, ctypes.byref(one), *matrices, *rest, stream) == 0

        return run

    return [call(i) for i in range(count.value)]


def rand(*shape):
    return torch.randn(*shape, device="cuda", dtype=torch.bfloat16)


def operands(m, n, k, a_mn, b_mn):
    return rand(*((k, m) if a_mn else (m, k))), rand(*((k, n) if b_mn else (n, k)))


def exact(a, b, a_mn=0, b_mn=0):
    return (a.float().T if a_mn else a.float()) @ (b.float() if b_mn else b.float().T)


def require_near(name, found, expected):
    error = ((found.float() - expected).norm() / expected.norm()).item()
    assert error < 5e-3, (name, error)


def timed(runs, rounds=5):
    """Milliseconds of each by name: medians of batches of 20 ms, in turns."""
    times, counts = {name: [] for name in runs}, {}
    for name, run in runs.items():
        run()
        torch.cuda.synchronize()
        start = time.perf_counter()
        run()
        torch.cuda.synchronize()
        counts[name] = max(2, min(200, int(0.02 / max(1e-5, time.perf_counter() - start))))
    for _ in range(rounds):
        for name, run in runs.items():
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            run()
            start.record()
            for _ in range(counts[name]):
                run()
            end.record()
            torch.cuda.synchronize()
            times[name].append(start.elapsed_time(end) / counts[name])
    return {name: statistics.median(own) for name, own in times.items()}


def timed_cool(runs, rounds=11):
    """The same of single runs as graphs, after a pause of 6 ms, so that no contender has a hotter GPU than another."""
    times, graphs = {name: [] for name in runs}, {}
    for name, run in runs.items():
        graphs[name] = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graphs[name], stream=torch.cuda.current_stream()):
            run()
    for _ in range(rounds):
        for name, graph in graphs.items():
            torch.cuda.synchronize()
            time.sleep(0.006)
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            torch.cuda._sleep(200000)
            start.record()
            graph.replay()
            end.record()
            torch.cuda.synchronize()
            times[name].append(start.elapsed_time(end))
    return {name: statistics.median(own) for name, own in times.items()}


def named(form):
    return "x".join(map(str, form))


def compare(m, k, n, a_mn, b_mn):
    a, b = operands(m, n, k, a_mn, b_mn)
    expected, c = (torch.empty(m, n, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    own = {named(form): gemm(*form, a_mn, b_mn).bind(a, b, c) for form in FORMS}
    theirs = {f"lt{i}": run for i, run in enumerate(heuristics(a, b, expected, a_mn, b_mn))}
    theirs["lt0"]()
    for run in own.values():
        c.fill_(float("nan"))
        run()
        torch.cuda.synchronize()
        assert torch.equal(c, expected), "other bits than the first heuristic's"
    trial = timed({**theirs, **own}, 3)
    best = min(theirs, key=trial.get)
    times = timed({"lt0": theirs["lt0"], best: theirs[best], **own})
    ours = min(own, key=times.get)
    rate = 2 * m * k * n / times[best] / 1e9
    layout = "NM"[a_mn] + "TN"[b_mn]
    of_best, of_first = (100 * times[each] / times[ours] for each in (best, "lt0"))
    each = ", ".join(f"{name} {100 * times[best] / times[name]:.1f}" for name in own)
    print(
        f"{m}x{k}x{n} {layout}: lt0 {times['lt0']:.4f} ms, best {best} {times[best]:.4f} ms ({rate:.0f} TFLOP/s);"
        f" ours {ours}: {of_best:.1f} % of the best, {of_first:.1f} of the first; {each}",
        flush=True,
    )
    return times[best] / times[ours]


def report(what, m, k, n, times):
    most = max(times["gemm"], times["copy"])
    rest = " | ".join(f"{name} {own / most:.3f}" for name, own in times.items() if name not in ("gemm", "copy"))
    figures = f"gemm {times['gemm']:.3f} ms, copy {times['copy']:.3f} ms"
    print(f"{what} {m}x{k}x{n}, half of the rows: {figures} | over the greater: {rest}", flush=True)


def slices(start, stop, parts):
    size = (stop - start) // parts
    return [slice(start + i * size, start + (i + 1) * size) for i in range(parts)]


def on_peer(tensor):
    """A copy of a tensor in the peer's memory, which this GPU reads and writes."""
    if not HAS_PEER:
        return tensor.cpu().pin_memory()
    return tensor.to("cuda:1")


def move(to, source):
    stream = torch.cuda.current_stream().cuda_stream
    ok((*cu.cuMemcpyAsync(to.data_ptr(), source.data_ptr(), source.numel() * source.element_size(), stream), None))


def gather(m, k, n):
    side, main, own = torch.cuda.Stream(priority=-1), torch.cuda.current_stream(), m // 2
    a, b, c = rand(m, k), rand(n, k), torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
    there = on_peer(a)
    expected, flags = exact(a, b), torch.zeros(4096, device="cuda", dtype=torch.int32)

    def copied(parts, after):
        side.wait_stream(main)
        with torch.cuda.stream(side):
            for i, rows in enumerate(slices(own, m, parts)):
                move(a[rows], there[rows])
                after(i)

    def copy():
        copied(1, lambda i: None)
        main.wait_stream(side)

    whole = heuristics(a, b, c)[0]

    def chunked(parts):
        calls = [heuristics(a[rows], b, c[rows])[0] for rows in [slice(0, own), *slices(own, m, parts)]]
        events = [torch.cuda.Event() for _ in range(parts)]

        def run():
            copied(parts, lambda i: events[i].record(side))
            calls[0]()
            for event, call in zip(events, calls[1:]):
                main.wait_event(event)
                call()
            main.wait_stream(side)

        return run

    def gated(form, group, parts):
        size = (m - own) // parts
        call = gemm(*form, 0, 0, True, group).bind(a, b, c, flags, size)

        def write(flag):
            stream = torch.cuda.current_stream().cuda_stream
            ok((*cu.cuStreamWriteValue32(stream, flags.data_ptr() + 4 * flag, 1, 0), None))

        def run():
            flags.zero_()
            flags[: own // size].fill_(1)
            copied(parts, lambda i: write(own // size + i))
            call(1)
            main.wait_stream(side)

        return run

    runs = {"gemm": whole, "copy": copy, "serial": lambda: (copy(), whole())}
    runs.update({f"chunks {parts}": chunked(parts) for parts in (1, 2, 4, 8)})
    for form in FORMS[:3]:
        for group in (4, 8):
            runs.update({f"gated {named(form)} g{group} {p}": gated(form, group, p) for p in (4, 8, 16)})
    for name, run in runs.items():
        if name in ("gemm", "copy"):
            continue
        a[own:].zero_()
        c.fill_(float("nan"))
        torch.cuda.synchronize()
        run()
        torch.cuda.synchronize()
        require_near(name, c, expected)
    report("gather", m, k, n, timed_cool(runs))


def scatter(m, k, n):
    side, main, own_from = torch.cuda.Stream(priority=-1), torch.cuda.current_stream(), m // 2
    a, b, c = rand(m, k), rand(n, k), torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
    there, expected = on_peer(c[:own_from]), exact(a, b)
    whole = heuristics(a, b, c)[0]

    def copy(rows=slice(0, own_from)):
        move(there[rows], c[rows])

    def chunked(parts):
        rows = slices(0, own_from, parts)
        calls = [heuristics(a[each], b, c[each])[0] for each in [*rows, slice(own_from, m)]]
        events = [torch.cuda.Event() for _ in range(parts)]

        def run():
            for each, event, call in zip(rows, events, calls):
                call()
                event.record(main)
                side.wait_event(event)
                with torch.cuda.stream(side):
                    copy(each)
            calls[-1]()
            main.wait_stream(side)

        return run

    runs = {"gemm": whole, "copy": copy, "serial": lambda: (whole(), copy())}
    runs.update({f"chunks {parts}": chunked(parts) for parts in (1, 2, 4, 8)})
    for form in FORMS[:3]:
        for group in (2, 4, 8):
            call = gemm(*form, 0, 0, False, group).bind(a, b, there, own_c=c[own_from:], own_from=own_from)
            runs[f"stores {named(form)} g{group}"] = call
    for name, run in runs.items():
        if name in ("gemm", "copy"):
            continue
        c.fill_(float("nan"))
        there.fill_(float("nan"))
        torch.cuda.synchronize(there.device if HAS_PEER else None)
        torch.cuda.synchronize()
        run()
        torch.cuda.synchronize()
        require_near(name, there.to("cuda:0"), expected[:own_from])
        require_near(name, c[own_from:], expected[own_from:])
    report("scatter", m, k, n, timed_cool(runs))


def main():
    torch.manual_seed(0)
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, cuBLASLt {library.cublasLtGetVersion()}")
    if "moves" not in sys.argv:
        gemms()
    if "gemms" not in sys.argv:
        moves()


def gemms():
    for a_mn in (0, 1):
        for b_mn in (0, 1):
            for m, n, k in ((256, 256, 64), (512, 768, 256), (1000, 600, 328), (136, 264, 72), (4096, 2048, 1024)):
                a, b = operands(m, n, k, a_mn, b_mn)
                for form in FORMS:
                    c = torch.full((m, n), float("nan"), device="cuda", dtype=torch.bfloat16)
                    gemm(*form, a_mn, b_mn).bind(a, b, c)()
                    torch.cuda.synchronize()
                    require_near((form, a_mn, b_mn, m, n, k), c, exact(a, b, a_mn, b_mn))
    linear = ((8192, 8192, 8192), (32768, 16384, 8192), (16384, 16384, 2048), (2048, 8192, 8192), (8192, 1024, 8192))
    linear += ((16384, 2048, 1024), (4096, 4096, 14336), (8192, 7168, 4096), (2048, 4096, 6144), (1024, 8192, 8192))
    linear += ((512, 8192, 8192), (4096, 2048, 4096))
    backward = ((8192, 8192, 8192), (4096, 14336, 4096), (4096, 4096, 14336), (2048, 8192, 8192))
    for layout, sizes in (((0, 0), linear), ((0, 1), backward), ((1, 1), backward)):
        ratios = [compare(*size, *layout) for size in sizes]
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(f"{'NM'[layout[0]]}{'TN'[layout[1]]}: {mean:.4f} of the best in the geometric mean, least {min(ratios):.4f}")


def moves():
    if HAS_PEER:
        # PyTorch lets both GPUs access each other.
        torch.zeros(1, device="cuda:1").to("cuda:0").to("cuda:1")
    with torch.cuda.stream(torch.cuda.Stream()):
        for size in GATHERS:
            gather(*size)
        for size in SCATTERS:
            scatter(*size)


if __name__ == "__main__":
    main()
