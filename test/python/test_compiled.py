"""plan_folder: who compiles, what is found again, and what every rank is told. Ranks are threads."""

import json
import os
import stat
import sys
import tempfile
import threading
import unittest
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

sys.path.insert(0, str(Path(__file__).parents[2] / "python/src"))

from braid_torch import compiled  # noqa: E402
from braid_torch.compiled import Problem, plan_folder  # noqa: E402
from braid_torch.refusal import Refusal  # noqa: E402

GPU = SimpleNamespace(name="NVIDIA H200", capability=90, multiprocessors=132)
PROBLEM = Problem("all-gather-matmul", (("M", "8"), ("DTYPE", "half")))
# Notes its arguments, then writes a plan, or fails as a compiler does.
COMPILER = """#!/usr/bin/env python3
import pathlib, sys
pathlib.Path(sys.argv[0] + ".log").open("a").write(" ".join(sys.argv[1:]) + "\\n")
if "--set=M=0" in sys.argv:
    sys.exit("error[bad-extent]: no rows")
pathlib.Path(sys.argv[-1], "plan.json").write_text("{}")
"""


def read(folder: Path) -> str:
    """Of a plan, only whether it is JSON."""
    try:
        return str(json.loads((folder / "plan.json").read_text()))
    except ValueError as error:
        raise Refusal("plan-invalid", str(folder), str(error), "a JSON document") from None


class Threads:
    """One rank of a group of threads."""

    def __init__(self, rank: int, given: list[bytes], barrier: threading.Barrier) -> None:
        self.rank, self.size, self._given, self._barrier = rank, len(given), given, barrier

    def all_gather(self, data: bytes) -> list[bytes]:
        self._given[self.rank] = data
        self._barrier.wait(10)
        given = list(self._given)
        self._barrier.wait(10)
        return given


def on_ranks(problems: list[Problem]) -> list[object]:
    given, barrier = [b""] * len(problems), threading.Barrier(len(problems))
    answers: list[object] = [None] * len(problems)

    def rank(number: int) -> None:
        try:
            answers[number] = plan_folder(problems[number], GPU, Threads(number, given, barrier))
        except Refusal as refusal:
            answers[number] = refusal

    threads = [threading.Thread(target=rank, args=(number,)) for number in range(len(problems))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    return answers


class PlanFolder(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        self.compiler = self.root / "compiler"
        self.compiler.write_text(COMPILER)
        self.compiler.chmod(self.compiler.stat().st_mode | stat.S_IXUSR)
        names = {"BRAID_COMPILER": str(self.compiler), "XDG_CACHE_HOME": f"{folder.name}/cache", "BRAID_PLANS": ""}
        for patch in (mock.patch.dict(os.environ, names), mock.patch.object(compiled, "read_plan", read)):
            patch.start()
            self.addCleanup(patch.stop)

    def calls(self) -> list[str]:
        log = Path(f"{self.compiler}.log")
        return log.read_text().splitlines() if log.exists() else []

    def test_rank_0_compiles_once(self) -> None:
        for _ in range(2):
            first, second = on_ranks([PROBLEM, PROBLEM])
            self.assertEqual(first, second)
            self.assertIsInstance(first, Path)
            self.assertTrue(
                str(first).startswith(f"{self.root}/cache/braid/plans/all-gather-matmul-m8-dtypehalf-2x-sm90")
            )
        (call,) = self.calls()
        self.assertRegex(call, r"^compile \S+/programs/all-gather-matmul\.ts --devices=2 --set=M=8 --set=DTYPE=half ")
        self.assertIn(
            " --schedule=protocol=put --gpu=capability=90,multiprocessors=132 --schedule=auto --profile=2xH200 ", call
        )
        # Nothing unfinished stays.
        self.assertEqual(len(list((self.root / "cache/braid/plans").iterdir())), 1)

    def test_shipped_plans_come_first(self) -> None:
        (made, _) = on_ranks([PROBLEM, PROBLEM])
        shipped = self.root / "shipped"
        Path(str(made)).parent.rename(shipped)
        with mock.patch.dict(os.environ, {"BRAID_PLANS": str(shipped)}):
            self.assertEqual(on_ranks([PROBLEM, PROBLEM]), [shipped / Path(str(made)).name] * 2)
        self.assertEqual(len(self.calls()), 1)

    def test_a_plan_that_was_cut_off_is_made_again(self) -> None:
        (folder, _) = on_ranks([PROBLEM, PROBLEM])
        (Path(str(folder)) / "plan.json").write_text("{")
        self.assertEqual(on_ranks([PROBLEM, PROBLEM]), [folder, folder])
        self.assertEqual((Path(str(folder)) / "plan.json").read_text(), "{}")
        self.assertEqual(len(self.calls()), 2)

    def test_a_plan_that_another_job_has_made_meanwhile_stays(self) -> None:
        target, unfinished = self.root / "target", self.root / "unfinished"
        for folder in (target, unfinished):
            folder.mkdir()
            (folder / "plan.json").write_text("{}")
        (target / "of another job").touch()
        compiled._put(unfinished, target)
        self.assertTrue((target / "of another job").exists())

    def test_another_profile_is_another_plan(self) -> None:
        profile = self.root / "profile.json"
        folders = set()
        for text in ("slow", "fast", "slow"):
            profile.write_text(text)
            with mock.patch.dict(os.environ, {"BRAID_PROFILE": str(profile)}):
                (folder, _) = on_ranks([PROBLEM, PROBLEM])
                folders.add(folder)
        self.assertEqual(len(folders), 2)
        self.assertEqual({Path(str(folder)).parent for folder in folders}, {self.root / "cache/braid/plans"})

    def test_every_rank_hears_why_there_is_no_plan(self) -> None:
        wrong = Problem("all-gather-matmul", (("M", "0"),))
        for answer in on_ranks([wrong, wrong]):
            self.assertIsInstance(answer, Refusal)
            self.assertEqual((answer.code, answer.found), ("compiler-failed", "error[bad-extent]: no rows"))
            self.assertIn("BRAID_COMPILER", answer.fix)
        self.assertEqual(list((self.root / "cache/braid/plans").iterdir()), [])
        with mock.patch.dict(os.environ, {"BRAID_COMPILER": f"{self.root}/nowhere"}):
            for answer in on_ranks([PROBLEM, PROBLEM]):
                self.assertIn("nowhere", answer.found)

    def test_calls_that_differ_are_refused_before_anything_is_compiled(self) -> None:
        other = Problem("all-gather-matmul", (("M", "16"), ("DTYPE", "half")))
        for answer in on_ranks([PROBLEM, PROBLEM, other]):
            self.assertIsInstance(answer, Refusal)
            self.assertEqual(answer.code, "program-differs")
            self.assertIn("rank 2: all-gather-matmul-m16-dtypehalf", answer.found)
        self.assertEqual(self.calls(), [])


if __name__ == "__main__":
    unittest.main()
