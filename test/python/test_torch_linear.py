"""Which ops the linear layers call, under torch.compile and without. PyTorch is a stand-in: nothing here computes."""

import sys
import unittest
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

sys.path.insert(0, str(Path(__file__).parents[2] / "python/src"))
TORCH = mock.MagicMock()
TORCH.distributed = TORCH
TORCH.autograd.Function, TORCH.nn.Module = object, object
NAMES = ("torch", "torch.distributed", "torch.distributed._symmetric_memory")
sys.modules.update(dict.fromkeys(NAMES, TORCH))

from braid_torch import torch_linear  # noqa: E402


class Ops(unittest.TestCase):
    def setUp(self) -> None:
        TORCH.reset_mock()
        TORCH.is_autocast_enabled.return_value = False
        self.calls: list[str] = []
        self.x, self.weight, self.gradient = (mock.MagicMock(name=name) for name in ("x", "weight", "gradient"))
        del self.weight.main_grad
        self.ctx = SimpleNamespace(
            saved_tensors=(self.x, self.weight),
            group_name="0",
            needs_input_grad=(True, True, False),
            save_for_backward=lambda *_: None,
        )

        def noted(name: str, result: object) -> object:
            def call(*args: object, **options: object) -> object:
                self.calls.append(name)
                return result

            return call

        whole = (mock.MagicMock(), [mock.MagicMock()])
        symm, functional = TORCH.ops.symm_mem, TORCH.ops._c10d_functional
        symm.fused_all_gather_matmul = noted("op: gather", whole)
        symm.fused_matmul_reduce_scatter = noted("op: scatter", mock.MagicMock())
        functional.all_gather_into_tensor = noted("begin to gather", mock.MagicMock())
        functional.wait_tensor = noted("wait", mock.MagicMock())
        work = SimpleNamespace(wait=noted("wait", None))
        TORCH.all_gather_into_tensor = noted("begin to gather", work)
        TORCH.mm = noted("mm", mock.MagicMock())
        for name, stand_in in (
            ("all_gather_matmul", noted("gather", whole)),
            ("matmul_reduce_scatter", noted("scatter", mock.MagicMock())),
        ):
            patch = mock.patch.object(torch_linear, name, stand_in)
            patch.start()
            self.addCleanup(patch.stop)

    def run_with(self, function: type, compiling: bool) -> list[str]:
        TORCH.compiler.is_compiling.return_value = compiling
        self.calls.clear()
        function.forward(self.ctx, self.x, self.weight, "0")
        function.backward(self.ctx, self.gradient)
        return list(self.calls)

    def test_column(self) -> None:
        backward = ["begin to gather", "scatter", "wait", "mm"]
        self.assertEqual(self.run_with(torch_linear._Column, False), ["gather", *backward])
        backward = ["begin to gather", "op: scatter", "wait", "mm"]
        self.assertEqual(self.run_with(torch_linear._Column, True), ["op: gather", *backward])

    def test_row(self) -> None:
        self.assertEqual(self.run_with(torch_linear._Row, False), ["scatter", "gather", "mm"])
        self.assertEqual(self.run_with(torch_linear._Row, True), ["op: scatter", "op: gather", "mm"])

    def test_a_frozen_weight_is_not_gathered_for(self) -> None:
        self.ctx.needs_input_grad = (True, False, False)
        self.assertEqual(self.run_with(torch_linear._Column, False), ["gather", "scatter"])
        self.assertEqual(self.run_with(torch_linear._Row, False), ["scatter", "gather"])

    def test_a_main_grad_is_added_to(self) -> None:
        self.weight.main_grad = mock.MagicMock()
        TORCH.compiler.is_compiling.return_value = False
        _, dw, _ = torch_linear._Column.backward(self.ctx, self.gradient)
        self.assertIsNone(dw)
        self.weight.main_grad.add_.assert_called_once()


class Layers(unittest.TestCase):
    def setUp(self) -> None:
        TORCH.reset_mock()
        TORCH.is_autocast_enabled.return_value = False

    def test_ranks_that_are_seeded_alike_draw_other_weights(self) -> None:
        seeds = []
        TORCH.randint.return_value = 41
        for rank in (0, 1):
            TORCH.Generator.return_value.manual_seed.side_effect = seeds.append
            torch_linear._initialize(mock.MagicMock(), 0.5, rank)
        self.assertEqual(seeds, [41, 42])

    def test_autocast_casts_both_as_it_does_for_nn_linear(self) -> None:
        x, weight = mock.MagicMock(), mock.MagicMock()
        self.assertEqual(torch_linear._autocast(x, weight), (x, weight))
        TORCH.is_autocast_enabled.return_value = True
        TORCH.get_autocast_dtype.return_value = "half"
        self.assertEqual(torch_linear._autocast(x, weight), (x.to("half"), weight.to("half")))


if __name__ == "__main__":
    unittest.main()
