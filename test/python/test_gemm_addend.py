"""What a GEMM adds to: other memory than its result, where a plan says so. No GPU takes part."""

import ctypes
import json
import sys
import unittest
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

sys.path.insert(0, str(Path(__file__).parents[2] / "python/src"))

from braid_torch.bind import Binding, bind, is_bound_by_run  # noqa: E402
from braid_torch.check_rank import _gemm_extents  # noqa: E402
from braid_torch.cuda import gemms as module  # noqa: E402
from braid_torch.cuda.choose_gemm import Place  # noqa: E402
from braid_torch.form import Mismatch, check  # noqa: E402
from braid_torch.places import Places, Shared  # noqa: E402

SCHEMA = json.loads((Path(module.__file__).parents[1] / "schemas/plan-rank.schema.json").read_text())


def matrix(rows: int, columns: int) -> dict:
    return {"rows": rows, "columns": columns, "leading": rows, "transposed": False, "batchStride": 0}


LAYOUT = {
    "dtype": "half",
    "swapped": False,
    "left": matrix(8, 16),
    "right": matrix(16, 4),
    "result": matrix(8, 4),
    "hasBias": False,
    "accumulate": True,
    "batchCount": 1,
    "offsets": [{"a": 0, "b": 0, "c": 0}, {"a": 128, "b": 0, "c": 64}],
}
GEMM = {"layout": LAYOUT, "margin": 0, "fallback": {"kernel": 0, "grid": [1, 1, 1], "block": [256, 1, 1]}}
SYMMETRIC, TEMPORARY, WORKSPACE, OUTPUT = 0x10000, 0x20000, 0x30000, 0x40000
A, B, BIAS, C = (TEMPORARY + 0x1000 * i for i in range(4))
ADDEND = SYMMETRIC + 16
# Where cublasLtMatmul has beta, C and D.
BETA, IN, OUT = 7, 8, 10
TRIAL = Place(1, 2, 3, 0, 4, 5)


def temporary(address: int) -> dict:
    return {"space": "temporary", "offset": address - TEMPORARY}


OPERANDS = {"a": temporary(A), "b": temporary(B), "bias": None, "c": temporary(C)}
WITHOUT = {"kind": "gemm", "stream": 0, "command": 0, "gemm": 0, **OPERANDS}
WITH = {**WITHOUT, "addend": {"space": "symmetric", "rank": 0, "offset": ADDEND - SYMMETRIC}}


class Library:
    """A cuBLASLt that has some algorithms, and keeps what it is asked to do."""

    def __init__(self, algorithms: int) -> None:
        self.algorithms = algorithms
        self.made = 0
        self.preferred: dict[int, int] = {}
        self.products: list[tuple] = []

    def cublasLtGetVersion(self) -> int:
        return 130100

    def cublasLtMatmulPreferenceSetAttribute(self, _: int, attribute: int, value: object, size: int) -> int:
        self.preferred[attribute] = value._obj.value
        return 0

    def cublasLtMatmulAlgoGetHeuristic(self, *arguments: object) -> int:
        arguments[-1]._obj.value = self.algorithms
        return 0

    def cublasLtMatmul(self, *arguments: object) -> int:
        self.products.append(arguments)
        return 0

    def __getattr__(self, name: str) -> object:
        return self._create if "Create" in name else lambda *_: 0

    def _create(self, made: object, *_: object) -> int:
        self.made += 1
        made._obj.value = self.made
        return 0


class Addend(unittest.TestCase):
    def setUp(self) -> None:
        self.launched: list[list[int]] = []

    def run_op(self, op: dict, algorithms: int = 1, gemm: dict = GEMM) -> Library:
        """Binds the operation and does what it says."""
        library = Library(algorithms)
        raw = SimpleNamespace(cuLaunchKernel=self.launch)
        gpu = SimpleNamespace(rank=0, name="Fake GPU", multiprocessors=132, raw=raw, check=None)
        with mock.patch.object(module, "_library", lambda: library):
            gemms = module.Gemms(gpu)
        gemms._chooser = SimpleNamespace(choose=self.choose)
        own = {"rank": 0, "gemms": [gemm]}
        places = Places(own, Shared([SYMMETRIC], [0], TEMPORARY, [0], [WORKSPACE]), 0, 0)
        tensors = {"in": (), "out": (OUTPUT,)}
        for action in bind(op, Binding(gpu, own, places, [], [9], lambda: gemms, mock.Mock(), tensors)):
            action([7])
        return library

    def choose(self, layout: dict, alignments: list, sm_count: int, algorithms: list, queue_of, may_run: bool) -> int:
        """A trial of each of several."""
        for algorithm in range(len(algorithms)) if len(algorithms) > 1 else ():
            queue_of(TRIAL)(algorithm)
        return 0

    def launch(self, *arguments: object) -> int:
        block = list(arguments[-2])
        count = len(block) // 2
        start = ctypes.addressof(arguments[-2])
        self.assertEqual(block[:count], [start + 8 * (count + i) for i in range(count)])
        self.launched.append(block[count:])
        return 0

    def test_it_is_c_of_cublaslt_and_moves_with_the_result(self) -> None:
        products = self.run_op(WITH).products
        self.assertEqual([(each[IN], each[OUT]) for each in products], [(ADDEND, C), (ADDEND + 128, C + 128)])
        self.assertEqual([each[BETA]._obj.value for each in products], [1, 1])

    def test_without_it_the_result_is_added_to(self) -> None:
        products = self.run_op(WITHOUT).products
        self.assertEqual([(each[IN], each[OUT]) for each in products], [(C, C), (C + 128, C + 128)])
        self.assertEqual([each[BETA]._obj.value for each in products], [1, 1])

    def test_nothing_is_added_without_accumulation(self) -> None:
        layout = {**LAYOUT, "accumulate": False}
        products = self.run_op(WITHOUT, gemm={**GEMM, "layout": layout}).products
        self.assertEqual([each[BETA]._obj.value for each in products], [0, 0])

    def test_the_result_is_aligned_as_the_less_aligned_of_both(self) -> None:
        one_offset = {**GEMM, "layout": {**LAYOUT, "offsets": LAYOUT["offsets"][:1]}}
        for op, expected in (
            (WITHOUT, 256),
            (WITH, 16),
            ({**WITH, "addend": temporary(BIAS), "c": temporary(C + 32)}, 32),
        ):
            preferred = self.run_op(op, gemm=one_offset).preferred
            self.assertEqual([preferred[each] for each in (5, 6, 7, 8)], [256, 256, expected, expected])

    def test_a_trial_adds_to_its_own_result(self) -> None:
        products = self.run_op(WITH, algorithms=3).products
        trials = [(each[IN], each[OUT]) for each in products if each[-1] == TRIAL.stream]
        self.assertGreater(len(trials), 1)
        self.assertEqual(set(trials), {(TRIAL.result, TRIAL.result)})

    def test_the_fallback_has_it_before_c(self) -> None:
        bias = {"bias": temporary(BIAS)}
        for op in (WITHOUT, {**WITHOUT, **bias}, WITH, {**WITH, **bias}):
            self.assertEqual(self.run_op(op, algorithms=0).products, [])
        expected = [[A, B, C], [A, B, BIAS, C], [A, B, ADDEND, C], [A, B, BIAS, ADDEND, C]]
        self.assertEqual(self.launched, expected)

    def test_it_may_be_a_tensor_of_the_caller(self) -> None:
        op = {**WITH, "addend": {"space": "out", "tensor": 0, "offset": 0}}
        self.assertTrue(is_bound_by_run(op))
        self.assertFalse(is_bound_by_run(WITH))
        self.assertEqual(self.run_op(op).products[0][IN], OUTPUT)


class Splitting(Library):
    """Its algorithms by the number of parts of k and by their kernels; without sums of parts it has one more."""

    def __init__(self, configs: list[tuple[int, int]]) -> None:
        super().__init__(0)
        self.configs = configs

    def cublasLtMatmulAlgoGetHeuristic(self, *arguments: object) -> int:
        reductions = self.preferred[module.CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK]
        configs = self.configs if reductions else [(1, 99)]
        arguments[-2].raw = b"".join(bytes(each).ljust(96, b"\0") for each in configs).ljust(96 * 8, b"\0")
        arguments[-1]._obj.value = len(configs)
        return 0

    def cublasLtMatmulAlgoConfigGetAttribute(self, algorithm: bytes, attribute: int, value: object, *_: object) -> int:
        value._obj.value = algorithm[{module.CUBLASLT_ALGO_CONFIG_SPLITK_NUM: 0, module.CUBLASLT_ALGO_CONFIG_ID: 1}[attribute]]
        return 0


class Bias(unittest.TestCase):
    """A sum of 16 bits and its bias are rounded once: kernels before Hopper's that cut k are not taken."""

    def algorithms(self, configs: list[tuple[int, int]], **layout: object) -> list[tuple[int, int]]:
        library = Splitting(configs)
        gpu = SimpleNamespace(rank=0, name="Fake GPU", multiprocessors=132, check=None)
        with mock.patch.object(module, "_library", lambda: library):
            gemms = module.Gemms(gpu)
        taken: list[bytes] = []
        gemms._chooser = SimpleNamespace(choose=lambda *of: taken.extend(of[3]) or 0)
        gemms._recipe({**LAYOUT, "accumulate": False, **layout}, 0, BIAS, [], [256, 256, 256])
        return [(each[0], each[1]) for each in taken]

    def test_algorithms_that_round_before_it_are_left_out(self) -> None:
        configs = [(4, 24), (1, 24), (2, 66), (2, 23)]
        self.assertEqual(self.algorithms(configs, hasBias=True), [(1, 24), (2, 66)])
        self.assertEqual(self.algorithms(configs, hasBias=True, dtype="float"), configs)
        self.assertEqual(self.algorithms(configs), configs)

    def test_without_others_the_library_is_asked_for_some_without_parts(self) -> None:
        self.assertEqual(self.algorithms([(4, 24)], hasBias=True), [(1, 99)])


class Documents(unittest.TestCase):
    def test_it_extends_as_far_as_the_result(self) -> None:
        whole = 2 * (64 + 8 * 4)
        extents = list(_gemm_extents(WITH, LAYOUT))
        self.assertIn((WITH["addend"], whole), extents)
        self.assertEqual([each for each in extents if each[0] != WITH["addend"]], list(_gemm_extents(WITHOUT, LAYOUT)))
        self.assertIn((WITHOUT["c"], whole), extents)

    def test_it_is_an_address_or_absent(self) -> None:
        operation = SCHEMA["properties"]["ops"]["items"]
        for op in (WITH, WITHOUT):
            check(op, operation, SCHEMA)
        for addend in (None, 0, {"space": "nowhere"}):
            with self.assertRaises(Mismatch):
                check({**WITH, "addend": addend}, operation, SCHEMA)


if __name__ == "__main__":
    unittest.main()
