"""One rank of the PyTorch contenders of `braid bench`.

Reads one JSON object a line from standard input, does it, and answers with one line on standard output:
  {"do": "setup", "primitive": "tp-columnwise", "m": .., "n": .., "k": .., "dtype": "bfloat16", "seed": 0}
  {"do": "run", "impl": "nccl", "runs": 6}  -> {"ms": [..], "host_us": [..]}: iterations, each after a barrier, by CUDA events
  {"do": "row", "impl": "nccl", "runs": 10} -> {"host_us": ..}: the host's time for each of iterations one behind the other
  {"do": "validate", "impl": "nccl"}        -> {"error": .., "bound": ..}: the largest error on sampled rows, in float32;
                                                {"unchecked": reason} if there is nothing to compare with
  {"do": "values", "output": "z", "indices": [..]} -> {"values": [..], "error": ..}: of a block, elements of the reference
                                                and the error of the eager block
  {"do": "exit"}
  {"do": "kernels", "impl": "nccl"} -> {"kernels": [..]}: of a block, milliseconds in products, attention, other kernels
A block is set up with its sizes and tensors (block_problem.py).
Shapes follow DDLB: tp-columnwise gathers the rows of A [m, k] and multiplies by a weight of n columns per GPU;
tp-rowwise and tp-allreduce contract over k per GPU and reduce [m, n]. Weights are stored [n, k].
"""

import ctypes
import gc
import importlib.util
import json
import os
import signal
import sys
import time

# Linux ends this process with the rank that started it, also while it waits in a collective and reads no request.
PR_SET_PDEATHSIG = 1
ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)

import torch
import torch.distributed as dist

DTYPES = {"bfloat16": torch.bfloat16, "half": torch.float16, "float": torch.float32, "double": torch.float64}


class Problem:
    """Operands of one primitive on this rank, drawn from a seed, and one callable per contender."""

    def __init__(self, primitive, m, n, k, dtype, seed, rank, world, group_name):
        if primitive != "tp-allreduce" and m % world != 0:
            raise ValueError(f"m = {m} does not divide by {world} GPUs")
        self.rank, self.world, self.group_name = rank, world, group_name
        device = torch.device("cuda", torch.cuda.current_device())
        kind = DTYPES[dtype]
        self.rows = m // world

        def operands(of):
            """Of a rank: A, or its rows that are gathered, and the weight [n, k]."""
            generator = torch.Generator(device=device).manual_seed(seed * 1009 + of)
            draw = lambda rows: (torch.rand(rows, k, generator=generator, device=device) * 2 - 1).to(kind)
            weight = draw(n)
            return draw(self.rows if primitive == "tp-columnwise" else m), weight

        self.operands = operands
        own, weight = operands(rank)
        self.weight = weight.t()
        if primitive == "tp-columnwise":
            self.shard = own
            self.whole = torch.empty(m, k, dtype=kind, device=device)
            dist.all_gather_into_tensor(self.whole, self.shard)
            self.out = torch.empty(m, n, dtype=kind, device=device)
            self.gathered = torch.empty_like(self.whole)
            self.impls = {"compute-only": self.product, "nccl": self.gather_product, "async-tp": self.fused_gather}
        else:
            self.whole = own
            self.partial = torch.empty(m, n, dtype=kind, device=device)
            self.out = torch.empty(self.rows, n, dtype=kind, device=device)
            self.impls = {"compute-only": self.partial_product}
            if primitive == "tp-rowwise":
                self.impls |= {"nccl": self.product_scatter, "async-tp": self.fused_scatter}
            elif primitive == "tp-allreduce":
                calls = {"nccl": self.product_allreduce}
                # The dtypes that symm_mem's all-reduces take.
                if kind in (torch.bfloat16, torch.float32):
                    calls |= {"one-shot": self.product_one_shot, "two-shot": self.product_two_shot}
                self.impls |= calls | {f"{name}-graph": self.replayed(call) for name, call in calls.items()}
            else:
                raise ValueError(f"no primitive {primitive}")
        self.primitive = primitive
        self.sizes = (m, n, k)
        self.layer = None
        self.peers_partial = None
        if (
            primitive != "tp-allreduce"
            and kind in (torch.bfloat16, torch.float16)
            and importlib.util.find_spec("transformer_engine") is not None
        ):
            self.impls["transformer-engine"] = self.userbuffers_product

    def userbuffers_layer(self):
        """TransformerEngine's Linear, whose collective runs in chunks through userbuffers beside the product."""
        import transformer_engine.pytorch as te

        m, n, k = self.sizes
        columnwise = self.primitive == "tp-columnwise"
        # Activations are gathered, or results scattered, in a buffer of all rows: k columns of A, or n of the result.
        te.module.base.initialize_ub(
            shape=[m, k if columnwise else n],
            tp_size=self.world,
            use_fp8=False,
            dtype=self.weight.dtype,
            bootstrap_backend="nccl",
        )
        layer = te.Linear(
            in_features=k if columnwise else k * self.world,
            out_features=n * self.world if columnwise else n,
            bias=False,
            device=self.weight.device,
            params_dtype=self.weight.dtype,
            sequence_parallel=True,
            parallel_mode="column" if columnwise else "row",
            tp_group=dist.group.WORLD,
            tp_size=self.world,
            ub_overlap_ag=True,
            ub_overlap_rs=not columnwise,
            ub_name="qkv" if columnwise else "proj",
        )
        with torch.no_grad():
            layer.weight.copy_(self.weight.t())
        return layer

    def close(self):
        # They refer to the problem, which would keep its memory.
        self.impls = {}
        self.peers_partial = None
        if self.layer is not None:
            import transformer_engine.pytorch as te

            self.layer = None
            te.module.base.destroy_ub()

    def userbuffers_product(self):
        if self.layer is None:
            self.layer = self.userbuffers_layer()
        with torch.no_grad():
            return self.layer(self.shard if self.primitive == "tp-columnwise" else self.whole)

    def product(self):
        return torch.mm(self.whole, self.weight, out=self.out)

    def gather_product(self):
        dist.all_gather_into_tensor(self.gathered, self.shard)
        return torch.mm(self.gathered, self.weight, out=self.out)

    def fused_gather(self):
        _, outs = torch.ops.symm_mem.fused_all_gather_matmul(self.shard, [self.weight], 0, self.group_name)
        return outs[0]

    def partial_product(self):
        return torch.mm(self.whole, self.weight, out=self.partial)

    def product_scatter(self):
        torch.mm(self.whole, self.weight, out=self.partial)
        dist.reduce_scatter_tensor(self.out, self.partial)
        return self.out

    def fused_scatter(self):
        return torch.ops.symm_mem.fused_matmul_reduce_scatter(self.whole, self.weight, "sum", 0, self.group_name)

    def product_allreduce(self):
        torch.mm(self.whole, self.weight, out=self.partial)
        dist.all_reduce(self.partial)
        return self.partial

    def product_for_peers(self):
        """The partial result in memory that the other ranks read."""
        if self.peers_partial is None:
            import torch.distributed._symmetric_memory as symm_mem

            self.peers_partial = symm_mem.empty(self.partial.shape, dtype=self.partial.dtype, device=self.partial.device)
            symm_mem.rendezvous(self.peers_partial, self.group_name)
        return torch.mm(self.whole, self.weight, out=self.peers_partial)

    def product_one_shot(self):
        return torch.ops.symm_mem.one_shot_all_reduce(self.product_for_peers(), "sum", self.group_name)

    def product_two_shot(self):
        return torch.ops.symm_mem.two_shot_all_reduce_(self.product_for_peers(), "sum", self.group_name)

    def replayed(self, call):
        """The call as a CUDA graph, captured when it is first asked for."""
        captured = []

        def replay():
            if not captured:
                stream = torch.cuda.Stream()
                stream.wait_stream(torch.cuda.current_stream())
                with torch.cuda.stream(stream):
                    call()
                torch.cuda.current_stream().wait_stream(stream)
                torch.cuda.synchronize()
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph):
                    result = call()
                captured.append((graph, result))
            graph, result = captured[0]
            graph.replay()
            return result

        return replay

    def expected(self, rows):
        """Rows of the result in float32; summed over ranks where the primitive reduces."""
        result = self.whole[rows].float() @ self.weight.float()
        if self.primitive != "tp-columnwise":
            dist.all_reduce(result)
        return result

    def validate(self, impl):
        with torch.no_grad():
            # Contenders share buffers: what one leaves there must not pass for the result of another.
            self.impls[impl]().fill_(float("nan"))
            torch.cuda.synchronize()
            dist.barrier()
            result = self.impls[impl]()
        torch.cuda.synchronize()
        reduces = self.primitive != "tp-columnwise" and impl != "compute-only"
        total = self.whole.shape[0]
        step = max(1, total // 64)
        rows = torch.arange(0, total, step, device=result.device)
        if impl == "compute-only":
            expected = self.whole[rows].float() @ self.weight.float()
            actual = result[rows]
        else:
            expected = self.expected(rows)
            if self.primitive == "tp-rowwise":
                mine = (rows >= self.rank * self.rows) & (rows < (self.rank + 1) * self.rows)
                expected, actual = expected[mine], result[rows[mine] - self.rank * self.rows]
            else:
                actual = result[rows]
        if expected.numel() == 0:
            raise ValueError("not checked: none of the sampled rows is on this rank")
        return self.compared(actual, expected, reduces)

    def compared(self, actual, expected, reduces):
        terms = self.whole.shape[1] * (self.world if reduces else 1)
        # One rounding of each partial and one of their sum, in the dtype; products and sums in float32.
        bound = (2 if reduces else 1) * torch.finfo(actual.dtype).eps * max(1.0, expected.abs().max().item()) + terms * 1.2e-7
        error = (actual.float() - expected).abs().max().item()
        return {"error": error, "bound": bound * (self.world if reduces else 1)}

    def for_xla(self):
        from xla import matmul_of

        self.of_all = list(zip(*map(self.operands, range(self.world))))
        return matmul_of(self.primitive, *self.of_all, self.world)

    def check_xla(self, results):
        """Sampled rows of all devices' results."""
        axis = 0 if self.primitive == "tp-columnwise" else 1
        x, w = (torch.cat(each, axis) for each in self.of_all)
        rows = torch.arange(0, x.shape[0], max(1, x.shape[0] // 64), device=x.device)
        return self.compared(results[rows], x[rows].float() @ w.t().float(), self.primitive != "tp-columnwise")


class XlaContenders:
    """JAX's, for all GPUs of a host in rank 0's process. Other ranks answer with no time: the slowest rank counts."""

    def __init__(self, problem, primitive, rank, world):
        self.problem, self.rank, self.made = problem, rank, None
        alone = importlib.util.find_spec("jax") is not None and world <= torch.cuda.device_count()
        self.names = (["xla"] if primitive == "block" else ["xla", "xla-shard-map"]) if alone else []

    def ready(self):
        if self.made is None:
            self.made = self.problem.for_xla()
        return self.made

    def run(self, impl, runs):
        times = [self.ready().iteration(impl) if self.rank == 0 else (0, 0) for _ in range(runs)]
        return {"ms": [ms for ms, _ in times], "host_us": [host for _, host in times]}

    def row(self, impl):
        return {"host_us": self.ready().iteration(impl)[1] if self.rank == 0 else 0}

    def validate(self, impl):
        """On rank 0, for all devices."""
        if self.rank != 0:
            return {"error": 0, "bound": 1}
        return self.problem.check_xla(self.ready().results(impl))

    def close(self):
        if self.made is not None:
            self.made.close()
        self.made = None


def timed(problem, impl):
    """One iteration: barrier, then the time between two events of the current stream, and the host's time to issue it."""
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    call = problem.impls[impl]
    torch.cuda.synchronize()
    dist.barrier()
    torch.cuda.synchronize()
    start.record()
    before = time.perf_counter()
    call()
    host = time.perf_counter() - before
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end), host * 1e6


def run(problem, impl, runs):
    times = [timed(problem, impl) for _ in range(runs)]
    return {"ms": [ms for ms, _ in times], "host_us": [host for _, host in times]}


def row(problem, impl, runs):
    """Iterations one behind the other, as a loop of training issues them: the host's time for each, without the wait for their end."""
    call = problem.impls[impl]
    torch.cuda.synchronize()
    dist.barrier()
    torch.cuda.synchronize()
    before = time.perf_counter()
    for _ in range(runs):
        call()
    host = time.perf_counter() - before
    torch.cuda.synchronize()
    return {"host_us": host * 1e6 / runs}


def main():
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", rank)))
    dist.init_process_group("nccl", rank=rank, world_size=world, device_id=torch.device("cuda", torch.cuda.current_device()))
    group_name = dist.group.WORLD.group_name
    import torch.distributed._symmetric_memory as symm_mem

    if torch.__version__ < "2.10":
        symm_mem.enable_symm_mem_for_group(group_name)
    problem = xla = None
    # A library that prints must not break the protocol: answers go to a copy of standard output, prints to standard error.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def answer(value):
        print(json.dumps(value), file=answers, flush=True)

    answer(
        {
            "ready": rank,
            "torch": torch.__version__,
            "cuda": torch.version.cuda,
            "nccl": ".".join(map(str, torch.cuda.nccl.version())),
            "device": torch.cuda.get_device_name(),
        }
    )
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if request["do"] == "exit":
                break
            if request["do"] == "setup":
                if problem is not None:
                    problem.close()
                    xla.close()
                problem = xla = None
                gc.collect()
                torch.cuda.empty_cache()
                if request["primitive"] == "block":
                    from block_problem import BlockProblem

                    device = torch.device("cuda", torch.cuda.current_device())
                    problem = BlockProblem(request, DTYPES, rank, world, group_name, device)
                else:
                    wanted = ("primitive", "m", "n", "k", "dtype", "seed")
                    problem = Problem(*(request[name] for name in wanted), rank, world, group_name)
                xla = XlaContenders(problem, request["primitive"], rank, world)
                answer({"impls": [*problem.impls, *xla.names], "kernels": hasattr(problem, "kernels")})
            elif problem is None:
                answer({"failed": "setup comes first"})
            elif request["do"] == "run":
                impl, runs = request["impl"], request["runs"]
                answer(xla.run(impl, runs) if impl in xla.names else run(problem, impl, runs))
            elif request["do"] == "row":
                impl = request["impl"]
                answer(xla.row(impl) if impl in xla.names else row(problem, impl, request["runs"]))
            elif request["do"] == "validate":
                impl = request["impl"]
                answer((xla if impl in xla.names else problem).validate(impl))
            elif request["do"] == "kernels":
                impl = request["impl"]
                answer({"failed": "not traced"} if impl in xla.names else problem.kernels(impl))
            elif request["do"] == "values":
                answer(problem.values(request["output"], request["indices"]))
            else:
                answer({"failed": f"no request {request['do']}"})
        except Exception as error:  # told to the bench, which names contender and rank
            answer({"failed": f"{type(error).__name__}: {error}"})
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
