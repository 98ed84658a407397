"""When a run counts as stuck. Words are this test's, and so is the clock."""

import ctypes
import sys
import unittest
from pathlib import Path
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).parents[2] / "python/src"))

from braid_torch.watch import PASSED, Watch, _Watched  # noqa: E402

OWN = {
    "rank": 1,
    "streams": [{"name": "s0"}, {"name": "s1"}],
    "commands": [
        {"kind": "copy", "details": "a", "statement": 0},
        {"kind": "waitSignal", "details": "slot 3", "statement": 0, "needs": [[0, 0], [2, 0]]},
    ],
    "statements": ["Wait(recv)"],
    "waitRuns": [],
}


class Stuck(unittest.TestCase):
    def setUp(self) -> None:
        self.words = (ctypes.c_uint32 * 2)()
        self.counts = SimpleNamespace(runs=1, captured=0)
        group = SimpleNamespace(size=3)
        runner = SimpleNamespace(own=OWN, folder="plan", counts=self.counts, session=SimpleNamespace(group=group))
        self.watched = _Watched(runner, ctypes.addressof(self.words), 10)
        self.watch = Watch()
        self.watch._watched.append(self.watched)

    def stuck(self, times: list[float]) -> list[bool]:
        return [self.watched.is_stuck(time) for time in times]

    def test_a_stream_that_waits_for_the_time_out(self) -> None:
        self.words[1] = 2
        self.assertEqual(self.stuck([0, 5, 9.9, 10]), [False, False, False, True])
        head, line = self.watched.report()
        self.assertEqual(head, "plan, 10 s after its last call")
        self.assertEqual(
            line, "rank 1, s1: reached command 1, waitSignal slot 3; it waits for ranks 0, 2 (Wait(recv))"
        )

    def test_a_new_run_a_passed_wait_and_another_wait_begin_again(self) -> None:
        def new_run() -> None:
            self.counts.runs += 1

        def passed() -> None:
            self.words[1] = PASSED | 2
            self.watched.is_stuck(10)
            self.words[1] = 2

        def another() -> None:
            self.words[1] = 1

        for change in (new_run, passed, another):
            self.watched = _Watched(self.watched._runner, ctypes.addressof(self.words), 10)
            self.words[1] = 2
            self.stuck([0, 9])
            change()
            self.assertEqual(self.stuck([11, 20, 21]), [False, False, True])

    def test_idle_streams_are_not_stuck(self) -> None:
        self.words[0] = PASSED | 1
        self.assertEqual(self.stuck([0, 100]), [False, False])

    def test_graphs_of_the_caller_are_looked_at_more_often(self) -> None:
        self.watched.timeout = 120
        self.assertTrue(all(0.5 <= self.watch.pause() <= 1 for _ in range(20)))
        self.counts.captured = 1
        self.assertTrue(all(0.025 <= self.watch.pause() <= 0.05 for _ in range(20)))
        self.assertGreater(len({self.watch.pause() for _ in range(5)}), 1)


if __name__ == "__main__":
    unittest.main()
