"""Two ranks of bench/peers/block_problem.py on the CPU: answers the problems of a file, one list per rank."""

import json
import os
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench/peers"))
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

from block_problem import BlockProblem  # noqa: E402

WORLD = 2
DTYPES = {"bfloat16": torch.bfloat16, "float": torch.float32}


def work(rank, file, folder):
    dist.init_process_group("gloo", init_method=f"file://{folder}/rendezvous", rank=rank, world_size=WORLD)
    answers = []
    for request in json.loads(Path(file).read_text()):
        problem = BlockProblem(request["setup"], DTYPES, rank, WORLD, None, torch.device("cpu"))
        found = [problem.values(each["output"], each["indices"]) for each in request["values"]]
        checks = {impl: problem.validate(impl) for impl in ("nccl", "compute-only")}
        answers.append({"values": found, "checks": checks})
    Path(f"{folder}/answer{rank}.json").write_text(json.dumps(answers))
    dist.destroy_process_group()


if __name__ == "__main__":
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.set_num_threads(1)
    torch.multiprocessing.spawn(work, tuple(sys.argv[1:]), WORLD)
