"""Which of a GEMM's algorithms the package chooses, as Braid's own back end does. No GPU takes part."""

import os
import sys
import tempfile
import unittest
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

sys.path.insert(0, str(Path(__file__).parents[2] / "python/src"))
from braid_torch.cuda.choose_gemm import Chooser, _pattern, fastest_algorithm  # noqa: E402
from braid_torch.cuda.gemms import _scale_mode  # noqa: E402
from braid_torch.dtypes import scale_elements  # noqa: E402

MATRIX = {"rows": 8, "columns": 4, "leading": 8, "transposed": True, "batchStride": 0}
LAYOUT = {
    "dtype": "bfloat16",
    "left": MATRIX,
    "right": {**MATRIX, "transposed": False},
    "result": {**MATRIX, "rows": 4},
    "hasBias": False,
    "batchCount": 1,
}
ALGORITHMS = [bytes([byte]) * 64 for byte in (1, 2, 3)]
# The name that test/backends/cuda/fastest-algorithm.test.ts has.
FILE = "4dc98279f9e3e82263828518bbd83395f180ad952c4805439d0c35bc8e057c04.gemm"
SCALED = {"left": "float8_e4m3fn", "right": "float8_e5m2", "vectors": True}
FILE_OF_BLOCKS = "302f9108eb3dbc7ade760e4465ecc2a95c82b938e9f4a4f668dbffc0a54b5f9a.gemm"
FILE_OF_SCALED = "4e46050b6f1a04e3aac0dce907107dc629e899b9b1d547f6fee6ce8bcf8feb83.gemm"


def chosen(*algorithms: "tuple[float, bytes | None]", clock: float = 0) -> int:
    def seconds_of(algorithm: int, runs: int) -> float:
        return clock + runs * algorithms[algorithm][0]

    return fastest_algorithm(len(algorithms), lambda algorithm: algorithms[algorithm][1], seconds_of)


class Selection(unittest.TestCase):
    def test_the_fastest_with_the_bits_of_the_first(self) -> None:
        self.assertEqual(chosen((3e-3, b"a"), (2e-3, b"a"), (1e-3, b"a"), (2.5e-3, b"a")), 2)
        self.assertEqual(chosen((3e-3, b"a"), (1e-3, b"b"), (2e-3, b"a")), 2)
        self.assertEqual(chosen((3e-3, b"a"), (1e-3, None), (1e-3, b"b")), 0)
        self.assertEqual(chosen((3e-3, None), (1e-3, b"a")), 0)

    def test_the_first_stays_if_another_is_hardly_faster(self) -> None:
        self.assertEqual(chosen((1e-3, b"a"), (0.995e-3, b"a")), 0)
        self.assertEqual(chosen((1e-3, b"a"), (0.98e-3, b"a")), 1)

    def test_short_runs_are_timed_in_a_row(self) -> None:
        self.assertEqual(chosen((1e-5, b"a"), (0.9e-5, b"a"), clock=1e-5), 1)


class Known(unittest.TestCase):
    def setUp(self) -> None:
        self.home = tempfile.TemporaryDirectory()
        self.addCleanup(self.home.cleanup)
        environment = mock.patch.dict(os.environ, {"XDG_CACHE_HOME": self.home.name})
        environment.start()
        self.addCleanup(environment.stop)
        raw = SimpleNamespace(cuMemAlloc_v2=lambda *_: 2, cuMemFree_v2=lambda *_: 0)
        gpu = SimpleNamespace(name="NVIDIA H200", multiprocessors=132, raw=raw, stream=lambda _: 7)
        self.chooser = Chooser(gpu, 130100, 64)

    def choose(
        self,
        alignments: "tuple[int, ...]" = (256, 256, 16),
        sm_count: int = 0,
        may_run: bool = True,
        layout: "dict[str, object]" = LAYOUT,
    ) -> int:
        return self.chooser.choose(layout, list(alignments), sm_count, ALGORITHMS, lambda _: lambda _: 0, may_run)

    def test_that_of_an_earlier_process(self) -> None:
        self.assertEqual(self.choose(), 0)
        folder = Path(self.home.name) / "braid/kernels"
        self.assertFalse(folder.exists())
        folder.mkdir(parents=True)
        (folder / FILE).write_bytes(ALGORITHMS[2])
        self.assertEqual(self.choose(), 2)
        self.assertEqual(self.choose(may_run=False), 2)
        self.assertEqual(self.choose(sm_count=124), 0)
        self.assertEqual(self.choose(alignments=(16, 256, 16)), 0)
        (folder / FILE).write_bytes(b"\x09" * 64)
        self.assertEqual(self.choose(), 0)
        (folder / FILE_OF_SCALED).write_bytes(ALGORITHMS[1])
        self.assertEqual(self.choose(layout={**LAYOUT, "scaled": SCALED}), 1)
        self.assertEqual(self.choose(layout={**LAYOUT, "scaled": {**SCALED, "vectors": False}}), 0)
        blocks = {**SCALED, "blocks": {"left": 128, "right": 1}}
        self.assertEqual(self.choose(layout={**LAYOUT, "scaled": blocks}), 0)
        (folder / FILE_OF_BLOCKS).write_bytes(ALGORITHMS[2])
        self.assertEqual(self.choose(layout={**LAYOUT, "scaled": blocks}), 2)


class Scales(unittest.TestCase):
    def test_of_blocks_lie_in_lines_that_begin_at_multiples_of_4(self) -> None:
        """As in test/backends/cuda/planning.test.ts."""
        for left, elements in ((128, 21), (1, 1600)):
            scaled = {**SCALED, "blocks": {"left": left, "right": 1}}
            layout = {"left": {"rows": 640}, "result": {"rows": 320, "columns": 5}, "scaled": scaled}
            self.assertEqual([scale_elements(layout, side) for side in ("left", "right")], [elements, 37])
            self.assertEqual([_scale_mode(scaled, side) for side in ("left", "right")], [5 if left == 128 else 4, 4])
        rows = {**layout, "scaled": SCALED}
        self.assertEqual([scale_elements(rows, side) for side in ("left", "right")], [320, 5])
        self.assertEqual(_scale_mode(SCALED, "left"), 3)


class Patterns(unittest.TestCase):
    def test_elements_are_finite(self) -> None:
        import struct

        for dtype, code, size in (("half", "e", 2), ("float", "f", 4), ("double", "d", 8)):
            values = [each for (each,) in struct.iter_unpack(f"<{code}", _pattern(dtype)[: size * 4096])]
            self.assertTrue(all(0.49 <= abs(each) < 2.01 for each in values), dtype)
            self.assertTrue(any(each < 0 for each in values))
        words = [word for (word,) in struct.iter_unpack("<H", _pattern("bfloat16")[:8192])]
        self.assertTrue(all(byte & 0x7F != 0x7F for byte in _pattern("float8_e4m3fn")))
        self.assertTrue(all(byte & 0x7C != 0x7C for byte in _pattern("float8_e5m2")))
        values = [struct.unpack("<f", struct.pack("<I", word << 16))[0] for word in words]
        self.assertTrue(all(0.49 <= abs(each) < 2.01 for each in values))


if __name__ == "__main__":
    unittest.main()
