"""
One rank on fake GPUs that meets something wrong, which is named: what it is refused, or reports, as JSON. Folders of
two plans follow: the first is right.
"""

import ctypes
import json
import os
import sys
import time
import warnings
from pathlib import Path
from unittest import mock

sys.path[:0] = [str(Path(__file__).parents[2] / "python/src"), str(Path(__file__).parent)]

from braid_torch import Refusal  # noqa: E402
from braid_torch.cuda import driver as cu  # noqa: E402
from braid_torch.run import Runner, load_plan  # noqa: E402
from braid_torch.session import Session  # noqa: E402
from files_group import Files  # noqa: E402

case, first, second = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


def runner_of(folder: Path, timeout: float = 0) -> tuple[Runner, tuple[int, ...]]:
    session = Session(Files(first.parent / f"group-{case}", rank, size), rank)
    runner = load_plan(session, folder, timeout)
    memory = runner.own["memory"]
    bound = [*memory["in"], *memory["out"], *memory["copied"]]
    return runner, tuple(session.gpu.allocate(max(16, each["bytes"]), each["name"]) for each in bound)


def other_plan() -> None:
    runner_of(second if rank == 1 else first)


def flipped_on_one() -> None:
    """Rank 1 reads another folder, in which a byte is wrong."""
    if rank == 1:
        file = second / "rank-1.json"
        file.write_text(file.read_text().replace("half", "hale"))
    runner_of(second if rank == 1 else first)


def missing_on_one() -> None:
    runner_of(second / "nowhere" if rank == 1 else first)


def of_another_kind() -> None:
    runner_of(second)


def other_host() -> None:
    with mock.patch("braid_torch.session._host", lambda: str(rank)):
        runner_of(first)


def no_sharing() -> None:
    """The driver of rank 1 maps no memory of others."""
    with mock.patch.object(cu.driver(), "cuIpcOpenMemHandle_v2", lambda *_: 801 if rank == 1 else 0):
        runner_of(first)


def too_little_memory() -> dict[str, object]:
    """Rank 1 has too little for a plan. Later plans that need less than that get memory all the same."""
    session = Session(Files(first.parent / f"group-{case}", rank, size), rank)
    small = session.symmetric([64, 64])
    reclaimed: list[int] = []
    session.gpu.reclaim = lambda: reclaimed.append(rank)
    try:
        session.symmetric([1 << 20, 8 << 30])
    except Refusal as refusal:
        code, found = refusal.code, refusal.found
    again = session.symmetric([1 << 20, 1 << 20])
    ctypes.memset(again[rank], rank + 1, 1 << 20)
    session.group.all_gather(b"")
    last = [ctypes.string_at(address + (1 << 20) - 1, 1)[0] for address in again]
    session.group.all_gather(b"")
    moved = small[rank] != again[rank]
    return {"code": code, "found": found, "moved": moved, "last": last, "reclaimed": reclaimed}


def first_in_capture() -> None:
    runner, addresses = runner_of(first)
    runner.run(addresses, runner._capturing, capturing=True)


def one_rank_refuses() -> dict[str, object]:
    """Rank 0's second call does not fit. The others hear of it in their second or third."""
    return calls({0: 1})


def all_ranks_refuse() -> dict[str, object]:
    """Each knows by itself: nobody hears of it again."""
    return calls({0: 1, 1: 1})


def ahead() -> dict[str, object]:
    """Rank 0 queues all its calls, of which the third does not fit, before rank 1 begins."""
    return calls({0: 2}, ahead=True)


def calls(refused: dict[int, int], ahead: bool = False) -> dict[str, object]:
    """Four, of which ranks refuse one each."""
    runner, addresses = runner_of(first)
    said = []
    if ahead and rank == 1:
        runner.session.group.all_gather(b"")
    for call in range(4):
        try:
            if refused.get(rank) == call:
                runner.refuse("a shape that does not fit", runner._capturing)
                said.append([call, "its own"])
            else:
                runner.run(addresses, runner._capturing)
        except Refusal as refusal:
            said.append([call, refusal.code, refusal.found.split(", call ")[1], refusal.fix])
        if not ahead:
            runner.session.group.all_gather(b"")
    if ahead and rank == 0:
        runner.session.group.all_gather(b"")
    runner.session.group.all_gather(b"")
    return {
        "said": said,
        "runs": runner.counts.runs,
        "left": len(list(Path("/dev/shm").glob(f"braid-refusals-{os.getpid()}-*"))),
    }


def many_tensors() -> dict[str, object]:
    """A loop over more sets of tensors than are kept: some are found again, the others run one by one."""
    runner, addresses = runner_of(first)
    runner.session.entries._most = 2
    gpu, memory = runner.session.gpu, runner.own["memory"]
    bound = [*memory["in"], *memory["out"], *memory["copied"]]
    others = [tuple(gpu.allocate(max(16, each["bytes"]), each["name"]) for each in bound) for _ in range(2)]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(4):
            for each in (addresses, *others):
                runner.run(each, runner._capturing)
    runner.session.group.all_gather(b"")
    return {**vars(runner.counts), "said": [str(each.message).split(".")[0] for each in caught]}


def after_fork() -> None:
    runner, _ = runner_of(first)
    child = os.fork()
    if child == 0:
        try:
            runner.session.require_same_process()
        except Refusal as refusal:
            os._exit(0 if "spawn" in refusal.fix else 1)
        os._exit(2)
    raise Refusal("forked", "", str(os.waitpid(child, 0)[1]), "0")


def stuck() -> dict[str, object]:
    """Rank 1 makes no call. The fake driver gives up after FAKE_CUDA_PATIENCE; a real one would wait on."""
    runner, addresses = runner_of(first, timeout=0.3)
    reports: list[list[str]] = []
    runner.session.watch.on_stuck = reports.append
    if rank == 0:
        runner.run(addresses, runner._capturing)
        end = time.monotonic() + 10
        while not reports and time.monotonic() < end:
            time.sleep(0.01)
    runner.session.group.all_gather(b"")
    return {"reports": reports}


def moving() -> dict[str, object]:
    """A stream that waits at every look, in one run after the other, is not stuck."""
    runner, _ = runner_of(first, timeout=0.2)
    reports: list[list[str]] = []
    runner.session.watch.on_stuck = reports.append
    words = runner.session.watch._watched[0]._words
    waiting = next(i for i, command in enumerate(runner.own["commands"]) if command["kind"] == "waitSignal")
    end = time.monotonic() + 0.6
    while time.monotonic() < end:
        words[1] = ctypes.c_uint32(waiting + 1).value
        runner.counts.runs += 1
        time.sleep(0.02)
    before = len(reports)
    time.sleep(0.5)
    return {"before": before, "after": len(reports)}


try:
    answer = globals()[case]()
except Refusal as refusal:
    answer = {"code": refusal.code, "found": refusal.found, "expected": refusal.expected, "fix": refusal.fix}
# It ends as usual: fake GPUs free their memory, which is the machine's, at the end of the process.
print(json.dumps(answer))
