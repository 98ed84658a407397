"""What ranks hear of each other's refused calls, and when."""

import sys
import tempfile
import threading
import unittest
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[2] / "python/src"), str(Path(__file__).parent)]

from braid_torch.refusal import Refusal  # noqa: E402
from braid_torch.refusals import SharedRefusals  # noqa: E402
from files_group import Files  # noqa: E402


def of_ranks(folder: Path, size: int) -> list[SharedRefusals]:
    made: dict[int, SharedRefusals] = {}

    def rank(number: int) -> None:
        made[number] = SharedRefusals(Files(folder, number, size))

    threads = [threading.Thread(target=rank, args=(number,)) for number in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    return [made[number] for number in range(size)]


class Refusals(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.ranks = of_ranks(Path(folder.name), 3)

    def test_a_peer_hears_once_when_it_has_come_as_far(self) -> None:
        self.ranks[1].post("too short", 5)
        for call in (3, 4):
            self.assertIsNone(self.ranks[0].news(call))
        self.assertEqual(self.ranks[0].news(5), (5, "rank 1: too short"))
        self.assertIsNone(self.ranks[0].news(6))
        self.assertEqual(self.ranks[2].news(7), (5, "rank 1: too short"))
        self.assertIsNone(self.ranks[1].news(9))

    def test_ranks_that_refuse_the_same_call_do_not_hear_of_each_other(self) -> None:
        for rank in (0, 1):
            self.ranks[rank].post("too short", 5)
        self.assertIsNone(self.ranks[0].news(6))
        self.assertIsNone(self.ranks[1].news(6))
        self.assertEqual(self.ranks[2].news(6)[0], 5)
        self.ranks[0].post("too long", 7)
        self.assertEqual(self.ranks[1].news(7), (7, "rank 0: too long"))

    def test_one_rank_ahead_hides_no_other(self) -> None:
        self.ranks[0].post("later", 9)
        self.ranks[1].post("now " + "é" * 5000, 2)
        call, text = self.ranks[2].news(2)
        self.assertEqual((call, text[:14]), (2, "rank 1: now éé"))
        self.assertIsNone(self.ranks[2].news(3))
        self.assertEqual(self.ranks[2].news(9), (9, "rank 0: later"))


class Text(unittest.TestCase):
    def test_shows_control_characters_and_keeps_its_lines(self) -> None:
        refusal = Refusal("plan-invalid", "plan/\x1b[2J", "a\n  fix: forged \u202e", "\x9b31m\x7f", "é")
        self.assertEqual(
            str(refusal),
            "plan-invalid: plan/\\u001b[2J\n"
            "  found: a\\u000a  fix: forged \\u202e\n"
            "  expected: \\u009b31m\\u007f\n"
            "  fix: é",
        )
        self.assertEqual(refusal.found, "a\n  fix: forged \u202e")


if __name__ == "__main__":
    unittest.main()
