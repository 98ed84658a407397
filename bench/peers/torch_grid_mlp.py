"""The MLP on 2 x 2 of scripts/gpu/form-times.ts in PyTorch, tensor-parallel by hand on a mesh of 2 x 2: eager and as a graph.

    python3 -m torch.distributed.run --nproc-per-node 4 bench/peers/torch_grid_mlp.py 8192 bfloat16

Rank 2 y + x holds rows y and columns x of every operand. Each linear gathers the weight along y, multiplies, and
reduces and scatters along x. Prints medians of 15 runs of the slowest rank, and the largest difference from one GPU.
"""

import statistics
import sys

import torch
import torch.distributed as dist
import torch.nn.functional as F


def main():
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 8192
    dtype = {"bfloat16": torch.bfloat16, "half": torch.float16}[sys.argv[2] if len(sys.argv) > 2 else "bfloat16"]
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    torch.cuda.set_device(rank)
    y, x = divmod(rank, 2)
    along_x = [dist.new_group([2 * row, 2 * row + 1]) for row in range(2)][y]
    along_y = [dist.new_group([column, 2 + column]) for column in range(2)][x]

    generator = torch.Generator(device="cuda").manual_seed(0)
    half = size // 2

    def draw(scale):
        whole = ((torch.rand(size, size, generator=generator, device="cuda") * 2 - 1) * scale).to(dtype)
        return whole, whole.view(2, half, 2, half)[y, :, x].contiguous()

    (whole, a), (whole1, w1), (whole2, w2) = draw(1), draw(size**-0.5), draw(size**-0.5)
    gathered = torch.empty(size, half, dtype=dtype, device="cuda")
    # The columns of the partial result lie one half after the other, as reduce_scatter needs them.
    partial = torch.empty(2, half, half, dtype=dtype, device="cuda")
    scattered = torch.empty(half, half, dtype=dtype, device="cuda")

    def linear(rows, weight):
        dist.all_gather_into_tensor(gathered, weight, group=along_y)
        blocks = gathered.view(2, half, half)
        for column in range(2):
            torch.mm(rows, blocks[column].t(), out=partial[column])
        dist.reduce_scatter_tensor(scattered, partial.view(size, half), group=along_x)
        return scattered

    def mlp():
        return a + linear(F.gelu(linear(a, w1), approximate="tanh"), w2)

    def timed(call):
        times = []
        for run in range(15 + 5):
            torch.cuda.synchronize()
            dist.barrier()
            torch.cuda.synchronize()
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            call()
            end.record()
            torch.cuda.synchronize()
            slowest = torch.tensor([start.elapsed_time(end)], device="cuda")
            dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
            if run >= 5:
                times.append(slowest.item())
        return f"{statistics.median(times):.3f} ms ({min(times):.3f} to {max(times):.3f})"

    result = mlp()
    expected = whole + F.linear(F.gelu(F.linear(whole, whole1), approximate="tanh"), whole2)
    own = expected.view(2, half, 2, half)[y, :, x]
    error = (result - own).abs().max()
    dist.all_reduce(error, op=dist.ReduceOp.MAX)
    eager = timed(mlp)

    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        mlp()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        mlp()
    replayed = timed(graph.replay)
    if rank == 0:
        nccl = ".".join(map(str, torch.cuda.nccl.version()))
        print(f"PyTorch {torch.__version__}, NCCL {nccl}, MLP on 2 x 2, {size} of {dtype}")
        print(f"  eager {eager}\n  graph {replayed}\n  largest difference from one GPU: {error.item():.4f}", flush=True)
    dist.destroy_process_group()


main()
