"""What the fused ops decide at the first call of a shape. PyTorch is a stand-in: nothing here computes."""

import inspect
import math
import sys
import unittest
import warnings
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

sys.path.insert(0, str(Path(__file__).parents[2] / "python/src"))
TORCH = mock.MagicMock()
NAMES = ("torch", "torch.distributed", "torch.distributed._symmetric_memory")
sys.modules.update(dict.fromkeys(NAMES, TORCH))
TORCH.distributed, TORCH.is_grad_enabled.return_value = TORCH, False
# What the schemas' numbers stand for.
TORCH._symmetric_memory._maybe_convert_scalar_types_to_dtypes = lambda dtypes: dtypes

from braid_torch import torch_install, torch_op_plans, torch_ops  # noqa: E402
from braid_torch.refusal import Refusal  # noqa: E402


class Tensor:
    """A contiguous one of bfloat16, or a transposed view of one."""

    requires_grad, device = False, "cuda:0"

    def __init__(self, *shape: int, by_rows: bool = True, dtype: object = TORCH.bfloat16) -> None:
        self.shape, self._by_rows, self.dtype = shape, by_rows, dtype

    def stride(self) -> tuple[int, ...]:
        strides = tuple(math.prod(self.shape[i + 1 :]) for i in range(len(self.shape)))
        return strides if self._by_rows else (1, self.shape[0])

    def get_device(self) -> int:
        return 0 if self.device == "cuda:0" else -1

    def dim(self) -> int:
        return len(self.shape)

    def numel(self) -> int:
        return math.prod(self.shape)

    def is_contiguous(self) -> bool:
        return self._by_rows

    def movedim(self, axis: int, to: int) -> "Tensor":
        rest = list(self.shape)
        rest.insert(to, rest.pop(axis))
        return Tensor(*rest, dtype=self.dtype)

    def contiguous(self) -> "Tensor":
        return self

    def view(self, *shape: int) -> "Tensor":
        return Tensor(*shape, dtype=self.dtype)

    def t(self) -> "Tensor":
        return Tensor(*reversed(self.shape), by_rows=not self._by_rows, dtype=self.dtype)


def eight_bits(*shape: int, by_rows: bool = True) -> Tensor:
    return Tensor(*shape, by_rows=by_rows, dtype=TORCH.float8_e4m3fn)


def scale(*shape: int) -> Tensor:
    return Tensor(*shape, dtype=TORCH.float32)


class Made(str):
    """A result."""

    def contiguous(self) -> "Made":
        return self


def library(a: Tensor, weights: list[Tensor]) -> str:
    return "by the library"


class Decisions(unittest.TestCase):
    def setUp(self) -> None:
        self.plans: list[str] = []
        self.measured: list[list[str]] = []
        self.rank = 0

        def plan_folder(problem: object, gpu: object, group: object) -> str:
            self.plans.append(str(problem))
            return "folder"

        def fastest(candidates: dict[str, object], group: object) -> str:
            self.measured.append(list(candidates))
            return next(iter(candidates))

        def caller(plan: object, dtype: object, results: list[object]) -> object:
            self.results = results

            def call(operands: list[Tensor]) -> list[Made]:
                self.first, self.operands = operands[0].shape, [each.shape for each in operands]
                self.dtypes = dtype
                return [Made("by a plan") for _ in results]

            return call

        for known in (torch_ops._ways, torch_ops._measured, torch_ops._names):
            known.clear()
        torch_ops._told.clear()
        TORCH.get_world_size.return_value = 2
        TORCH.get_rank.side_effect = lambda group=None: self.rank
        self.compiler = mock.Mock(side_effect=plan_folder)
        self.capturing = mock.Mock(return_value=False)
        stand_ins = {
            "plan_folder": self.compiler,
            "fastest": fastest,
            "load": lambda folder, group: SimpleNamespace(runner=mock.Mock(), order=[], device=0),
            "session_of": mock.Mock(),
            "is_capturing": self.capturing,
            "current_device": lambda: 0,
            "gather_ways": lambda *_: {"library": library},
            "scatter_ways": lambda *_: {"library": library},
            "scaled_gather_ways": lambda *_: {"library": library},
            "scaled_scatter_ways": lambda *_: {"library": library},
        }
        for patch in (mock.patch.multiple(torch_ops, **stand_ins), mock.patch.object(torch_op_plans, "_caller", caller)):
            patch.start()
            self.addCleanup(patch.stop)

    def gather(self, rows: int = 8, dim: int = 0, group: str = "0") -> object:
        return torch_ops.all_gather_matmul(Tensor(rows, 4), [Tensor(4, 6, by_rows=False)], dim, group, False)

    def test_the_first_call_of_a_shape_measures_and_later_ones_do_not(self) -> None:
        for _ in range(3):
            self.assertEqual(self.gather(), (None, ["by a plan"]))
        self.assertEqual(self.measured, [["braid", "library"]])
        self.assertEqual(self.plans, ["all-gather-matmul-m16-k4-n06-return_a0-rows0-dtypebfloat16"])
        self.gather(16)
        self.assertEqual(len(self.measured), 2)

    def test_an_axis_counted_from_the_end_is_refused_as_by_pytorch(self) -> None:
        with self.assertRaisesRegex(ValueError, "gather_dim: found -1, expected 0 to 1"):
            self.gather(4, -1)
        with self.assertRaisesRegex(ValueError, "scatter_dim: found -1, expected 0 to 1"):
            torch_ops.matmul_reduce_scatter(Tensor(4, 4), Tensor(4, 4), "sum", -1, "0")
        with self.assertRaisesRegex(ValueError, "gather_dim: found 2"):
            self.gather(4, 2)
        self.assertEqual(self.measured, [])

    def test_a_tensor_elsewhere_is_refused_also_after_a_call_of_the_same_shape(self) -> None:
        self.gather()
        weight = Tensor(4, 6, by_rows=False)
        weight.device = "cpu"
        with self.assertRaisesRegex(Refusal, "a tensor on cpu"):
            torch_ops.all_gather_matmul(Tensor(8, 4), [weight], 0, "0", False)

    def test_the_last_axis_is_gathered_and_scattered_by_columns(self) -> None:
        weight = Tensor(8, 6, by_rows=False)
        gathered = torch_ops.all_gather_matmul(Tensor(2, 3, 4), [weight], 2, "0", True)
        self.assertEqual(gathered, ("by a plan", ["by a plan"]))
        self.assertEqual(self.plans.pop(), "all-gather-matmul-m6-k8-n06-chunks2-return_a1-rows0-dtypebfloat16")
        self.assertEqual(self.first, (2, 3, 4))
        self.assertEqual(self.results, [((2, 3, 8), (24, 8, 1)), ((2, 3, 6), (18, 6, 1))])
        torch_ops.matmul_reduce_scatter(Tensor(2, 3, 4), Tensor(4, 6), "sum", 2, "0")
        self.assertEqual(self.plans.pop(), "matmul-reduce-scatter-m6-k4-n6-last1-rows1-dtypebfloat16")
        self.assertEqual(self.results, [((2, 3, 3), (9, 3, 1))])

    def test_other_axes_are_first_in_the_memory_of_results(self) -> None:
        torch_ops.all_gather_matmul(Tensor(2, 3, 4), [Tensor(4, 6)], 1, "0", False)
        self.assertEqual(self.plans.pop(), "all-gather-matmul-m12-k4-n06-return_a0-rows1-dtypebfloat16")
        self.assertEqual(self.first, (3, 2, 4))
        self.assertEqual(self.results, [((2, 6, 6), (6, 12, 1))])
        torch_ops.matmul_reduce_scatter(Tensor(3, 2, 4), Tensor(4, 6), "sum", 1, "0")
        self.assertEqual(self.first, (2, 3, 4))
        self.assertEqual(self.results, [((3, 1, 6), (6, 18, 1))])

    def test_weights_that_do_not_fit_have_no_plan(self) -> None:
        self.assertEqual(torch_ops.all_gather_matmul(Tensor(8, 4), [Tensor(4, 6)], 1, "0", False), "by the library")
        self.assertEqual(self.plans, [])

    def scaled(self, a: Tensor, of_a: Tensor, of_b: Tensor, dim: int = 0, inner: int = 32, **options: object) -> object:
        weights = [eight_bits(inner, 6, by_rows=False)]
        nothing = {"biases": [None], "result_scales": [None], "use_fast_accum": [True], **options}
        dtypes = [TORCH.bfloat16]
        return torch_install._scaled_gather(a, weights, of_a, [of_b], dim, "0", out_dtypes=dtypes, **nothing)

    def test_scales_are_of_rows_or_of_tensors(self) -> None:
        gathered = ("by a plan", ["by a plan"])
        self.assertEqual(self.scaled(eight_bits(8, 32), scale(8, 1), scale(1, 6)), gathered)
        self.assertEqual(self.plans.pop(), "all-gather-scaled-matmul-m16-k32-n06-rowwise1-e5m20-fast1-dtypebfloat16")
        self.assertEqual(self.results, [((16, 32), (32, 1)), ((16, 6), (6, 1))])
        self.assertEqual(self.dtypes, [TORCH.float8_e4m3fn, TORCH.bfloat16])
        self.assertEqual(self.scaled(eight_bits(8, 32), scale(), scale()), gathered)
        self.assertEqual(self.plans.pop(), "all-gather-scaled-matmul-m16-k32-n06-rowwise0-e5m20-fast1-dtypebfloat16")
        # The scales of rows follow an axis that is gathered.
        self.assertEqual(self.scaled(eight_bits(2, 4, 32), scale(2, 4, 1), scale(1, 6), 1), gathered)
        self.assertEqual(self.operands, [(4, 2, 32), (32, 6), (4, 2, 1), (1, 6)])
        # Flattened rows have the axes of the result again.
        args = ("sum", 1, 0, "0", [2, 4, 6])
        b = eight_bits(32, 6, by_rows=False)
        made = torch_install._scaled_scatter(
            eight_bits(8, 32), b, scale(8, 1), scale(1, 6), *args, out_dtype=TORCH.bfloat16
        )
        self.assertEqual(made, "by a plan")
        self.assertIn("-fast0-", self.plans.pop())
        self.assertEqual(self.operands, [(4, 2, 32), (32, 6), (4, 2, 1), (1, 6)])
        self.assertEqual(self.results, [((2, 2, 6), (6, 12, 1))])

    def test_scaled_operands_that_do_not_fit_have_no_plan(self) -> None:
        for a, of_a, of_b, inner in (
            (eight_bits(8, 24), scale(8, 1), scale(1, 6), 24),
            (eight_bits(8, 32), scale(8, 1), scale(), 32),
            (eight_bits(8, 32), scale(), scale(1, 6), 32),
        ):
            self.assertEqual(self.scaled(a, of_a, of_b, inner=inner), "by the library")
        fused = TORCH._symmetric_memory._fused_all_gather_scaled_matmul
        for options, of_a in (({}, scale(16, 1)), ({"biases": [Tensor(6)]}, scale(8, 1))):
            self.scaled(eight_bits(8, 32), of_a, scale(1, 6), **options)
            fused.assert_called_once()
            fused.reset_mock()
        self.assertEqual(self.plans, [])

    def test_parameters_have_the_names_and_order_of_pytorchs_schemas(self) -> None:
        """Of PyTorch 2.13."""
        gather = "A Bs A_scale B_scales gather_dim group_name biases result_scales out_dtypes use_fast_accum"
        scatter = (
            "A B A_scale B_scale reduce_op orig_scatter_dim scatter_dim_after_maybe_reshape group_name output_shape"
            " bias result_scale out_dtype use_fast_accum"
        )
        for function, names in ((torch_install._scaled_gather, gather), (torch_install._scaled_scatter, scatter)):
            self.assertEqual(list(inspect.signature(function).parameters), names.split())

    def test_without_a_compiler_pytorch_runs_and_the_first_rank_says_so_once(self) -> None:
        self.compiler.side_effect = Refusal("compiler-failed", "problem", "no npx", "a plan")
        for self.rank, said in ((1, 0), (0, 0)):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                torch_ops._ways.clear()
                torch_ops._told.clear()
                for _ in range(3):
                    self.assertEqual(self.gather(), "by the library")
                said = len(caught)
            self.assertEqual(said, 1 if self.rank == 0 else 0)
        self.assertIn("no npx", str(caught[0].message))

    def test_shapes_that_differ_between_ranks_are_not_measured(self) -> None:
        self.compiler.side_effect = Refusal("program-differs", "the call", "rank 0: a; rank 1: b", "the same")
        with self.assertRaises(Refusal):
            self.gather()
        self.assertEqual(self.measured, [])

    def test_a_first_call_inside_a_capture_decides_nothing(self) -> None:
        self.capturing.return_value = True
        with self.assertWarnsRegex(UserWarning, "first call is inside a capture"):
            self.assertEqual(self.gather(), "by the library")
        self.capturing.return_value = False
        self.assertEqual(self.gather(), (None, ["by a plan"]))

    def test_after_many_shapes_new_ones_are_left_to_pytorch(self) -> None:
        with mock.patch.object(torch_ops, "MOST_SHAPES", 3):
            for rows in (2, 4, 6):
                self.gather(rows)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                for rows in (8, 10, 12, 8):
                    self.assertEqual(self.gather(rows), "by the library")
            self.assertEqual(self.gather(4), (None, ["by a plan"]))
            self.assertEqual(self.gather(8, group="1"), (None, ["by a plan"]))
        self.assertEqual(len(self.measured), 4)
        said = [str(each.message).split(": ")[1] for each in caught]
        self.assertEqual(said, ["this group has called 3 other shapes; pad to fewer lengths"])


if __name__ == "__main__":
    unittest.main()
