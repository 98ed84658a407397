"""
One rank on fake GPUs, whose memory is the process's own: runs the plan in a folder as often as asked, on what is in
`in-RANK` there, and writes `out-RANK`. Prints its counts as JSON.
"""

import ctypes
import json
import os
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[2] / "python/src"), str(Path(__file__).parent)]

from braid_torch.run import _sides, load_plan  # noqa: E402
from braid_torch.session import Session  # noqa: E402
from files_group import Files  # noqa: E402


def run(folder: Path, session: Session, runs: int) -> dict[str, int]:
    rank, gpu = session.group.rank, session.gpu
    runner = load_plan(session, folder)
    memory = runner.own["memory"]
    bound = [*memory["in"], *memory["out"], *memory["copied"]]
    addresses = tuple(gpu.allocate(tensor["bytes"], tensor["name"]) for tensor in bound)
    given, offset = (folder / f"in-{rank}").read_bytes(), 0
    for tensor, address in zip(bound, addresses):
        if tensor["role"] == "input":
            ctypes.memmove(address, given[offset : offset + tensor["bytes"]], tensor["bytes"])
            offset += tensor["bytes"]
    pairs = list(zip(bound, addresses))
    # State is an input that the run writes.
    outputs = [(each["bytes"], address) for each, address in pairs if each["role"] == "output" or "output" in each]
    for _ in range(runs):
        for each, address in pairs:
            if each["role"] == "output":
                ctypes.memset(address, 0xEE, each["bytes"])
        # The stream that it captures is the caller's, too, so that all calls are of the streams of the plan.
        runner.run(addresses, runner._capturing)
    (folder / f"out-{rank}").write_bytes(b"".join(ctypes.string_at(address, count) for count, address in outputs))
    copied = [each for each in memory["copied"] if each["bytes"]]
    before, after = ([each for each in copied if side in _sides(each)] for side in ("input", "output"))
    return {**vars(runner.counts), "before": len(before), "after": len(after)}


folder, runs = Path(sys.argv[1]), int(sys.argv[2])
own_rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
print(json.dumps(run(folder, Session(Files(folder / "group", own_rank, size), own_rank), runs)))
