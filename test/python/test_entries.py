"""Which runs are kept, and which make room."""

import sys
import unittest
import warnings
from pathlib import Path
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).parents[2] / "python/src"))

from braid_torch.entries import STALE, Entries, Entry  # noqa: E402


class Kept(unittest.TestCase):
    def setUp(self) -> None:
        self.released: list[object] = []
        gpu = SimpleNamespace(rank=0, call=lambda name, graph: self.released.append(graph))
        self.entries = Entries(gpu, 3)
        self.first, self.second = self.entries.of_plan(), self.entries.of_plan()
        self.call = 0

    def run_of(self, plan: dict, key: int) -> bool:
        """As a plan does. Whether the run was found."""
        self.call += 1
        entry = plan.get((key,))
        if entry is None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.entries.keep(plan, (key,), Entry([], self.call, graph=key, releases=[]))
            return False
        entry.used = self.call
        return True

    def test_a_loop_over_more_finds_those_that_are_kept(self) -> None:
        found = [self.run_of(self.first, key) for _ in range(10) for key in range(1, 6)]
        self.assertEqual(sum(found), 9 * 3)
        self.assertEqual(self.released, [])

    def test_plans_share_the_room(self) -> None:
        for key in (1, 2):
            self.run_of(self.first, key)
        for key in (3, 4):
            self.run_of(self.second, key)
        self.assertEqual((list(self.first), list(self.second)), ([(1,), (2,)], [(3,)]))

    def test_what_was_not_used_for_long_makes_room(self) -> None:
        for key in (1, 2, 3):
            self.run_of(self.first, key)
        # From now on, the loop uses other tensors, and one of those that are kept.
        for _ in range(3 * STALE + 4):
            for key in (3, 7):
                self.run_of(self.second if key == 7 else self.first, key)
        self.assertTrue(self.run_of(self.second, 7))
        self.assertTrue(self.run_of(self.first, 3))
        self.assertEqual(self.released, [1, 2])

    def test_a_looking_for_stale_ones_is_rare(self) -> None:
        looks = 0

        class Counting(dict):
            def items(self):  # noqa: ANN202
                nonlocal looks
                looks += 1
                return super().items()

        self.entries._by_plan[0] = self.first = Counting()
        for key in range(1, 31):
            self.run_of(self.first, key)
        self.assertLessEqual(looks, 30 // 3)

    def test_it_is_said_once(self) -> None:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for key in range(1, 40):
                self.entries.keep(self.first, (key,), Entry([], key))
        self.assertEqual(len(caught), 1)
        self.assertIn("graphs for 3 sets of tensors", str(caught[0].message))


if __name__ == "__main__":
    unittest.main()
