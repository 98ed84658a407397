"""parallelize without PyTorch: plans of others, what a call is made of, and how two plans share tensors. A stand-in."""

import contextlib
import copy
import functools
import sys
import unittest
from pathlib import Path
from types import MethodType, SimpleNamespace
from unittest import mock

sys.path.insert(0, str(Path(__file__).parents[2] / "python/src"))


class Tensor:
    """Counts what it was made of: no elements."""

    def __init__(self, shape=(2, 4), dtype="bfloat16", label="", requires_grad=False):
        self.shape, self.dtype, self.label, self.requires_grad = shape, dtype, label, requires_grad
        self.is_cuda, self.device, self.added = True, SimpleNamespace(type="cuda"), []

    def is_complex(self):
        return False

    def is_contiguous(self):
        return True

    def data_ptr(self):
        return 16 * id(self)

    def detach(self):
        return self

    def add_(self, other):
        self.added.append(other)

    def to_local(self):
        return self


class Parameter(Tensor):
    pass


class DTensor(Tensor):
    def __init__(self, part, placements, requires_grad=True):
        super().__init__(part.shape, part.dtype, part.label, requires_grad)
        self._local_tensor, self.placements, self.device_mesh, self._spec = part, placements, "mesh", placements


class Async(Tensor):
    """The result of a collective before anybody waits for it."""

    def __init__(self, result):
        super().__init__(result.shape)
        self.result = result

    def data_ptr(self):
        return 0

    def trigger_wait(self):
        return self.result


class Replicate:
    pass


class Shard:
    def __init__(self, dim):
        self.dim = dim


class Style:
    def __init__(self, **options):
        self.options = options


class Colwise(Style):
    pass


class Rowwise(Style):
    pass


class Sequence(Style):
    pass


class Module:
    def __init__(self, **children):
        self.__dict__["children"] = children
        self._parameters, self._buffers, self.training = {}, {}, True
        for name, child in children.items():
            setattr(self, name, child)

    def named_children(self):
        return self.children.items()

    def named_modules(self, prefix=""):
        yield prefix, self
        for name, child in self.children.items():
            yield from child.named_modules(f"{prefix}.{name}" if prefix else name)

    def modules(self):
        return [each for _, each in self.named_modules()]

    def buffers(self):
        return []

    def parameters(self, recurse=True):
        for each in self.modules() if recurse else [self]:
            yield from each._parameters.values()

    def register_forward_pre_hook(self, hook, with_kwargs=False):
        return SimpleNamespace(remove=lambda: None)

    def forward(self, *args):
        return ("today", args)

    def __call__(self, *args):
        return self.__dict__.get("forward", lambda *a: type(self).forward(self, *a))(*args)


class ModuleList(Module):
    pass


class ModuleDict(Module):
    pass


class Sequential(Module):
    pass


class Dropout(Module):
    p = 0.1


TORCH = mock.MagicMock()
TORCH.distributed = TORCH
TORCH.Tensor, TORCH.dtype, TORCH.device, TORCH.Size = Tensor, type("dtype", (), {}), type("device", (), {}), type("Size", (), {})
TORCH.nn = SimpleNamespace(
    Module=Module, Parameter=Parameter, ModuleList=ModuleList, ModuleDict=ModuleDict, Sequential=Sequential,
    modules=SimpleNamespace(dropout=SimpleNamespace(_DropoutNd=Dropout)),
)  # fmt: skip
TORCH.autograd.Function, TORCH.compiler.disable, TORCH.once_differentiable = object, lambda f: f, lambda f: f
TORCH.AsyncCollectiveTensor = Async
TORCH.DTensor, TORCH.Replicate, TORCH.Shard = DTensor, Replicate, Shard
TORCH.ColwiseParallel, TORCH.RowwiseParallel, TORCH.SequenceParallel, TORCH.ParallelStyle = Colwise, Rowwise, Sequence, Style
NAMES = (
    "torch", "torch.autograd.function", "torch.distributed", "torch.distributed._functional_collectives",
    "torch.distributed._symmetric_memory",
    "torch.distributed.device_mesh", "torch.distributed.tensor", "torch.distributed.tensor.parallel",
    "torch.distributed.tensor.parallel.style", "torch.nn",
)  # fmt: skip
sys.modules.update(dict.fromkeys(NAMES, TORCH))
sys.modules["torch.nn"] = TORCH.nn

from braid_torch import torch_block, torch_parallelize, torch_planned, torch_twin  # noqa: E402
from braid_torch.refusal import Refusal  # noqa: E402
from braid_torch.torch_arguments import flatten, rebuild  # noqa: E402
from braid_torch.torch_layouts import Seen, placement_of_part, placement_text, whole_shape  # noqa: E402
from braid_torch.torch_planned import bind  # noqa: E402
from braid_torch.torch_styles import plan_of, styles_of  # noqa: E402


def refusal(call) -> Refusal:
    try:
        call()
    except Refusal as found:
        return found
    raise AssertionError("nothing was refused")


def linear() -> Module:
    made = Module()
    made._parameters["weight"] = Parameter()
    return made


def llama() -> Module:
    def layer() -> Module:
        attention = Module(**{f"{name}_proj": linear() for name in "qkvo"})
        return Module(self_attn=attention, mlp=Module(gate_proj=linear(), up_proj=linear(), down_proj=linear()))

    return Module(embed=linear(), layers=ModuleList(**{"0": layer(), "1": layer()}), head=linear())


class Arguments(unittest.TestCase):
    def test_come_back_as_they_were(self) -> None:
        x, y = Tensor(), Tensor()
        value = ((x, None, 3), {"cos": [y, "text"], "flag": True})
        tensors, form = flatten(value)
        self.assertEqual(tensors, [x, y])
        self.assertEqual(rebuild(form, ["a", "b"]), (("a", None, 3), {"cos": ["b", "text"], "flag": True}))
        hash(form)

    def test_differ_by_constants(self) -> None:
        forms = {flatten(each)[1] for each in ((1, Tensor()), (1.0, Tensor()), (True, Tensor()), [1, Tensor()])}
        self.assertEqual(len(forms), 4)

    def test_with_a_state_are_refused(self) -> None:
        class DynamicCache(dict):
            pass

        self.assertIn("DynamicCache", refusal(lambda: flatten(({"cache": DynamicCache()},))).found)


class Plans(unittest.TestCase):
    def test_words_become_styles_of_every_layer(self) -> None:
        styles = styles_of(llama(), {"layers.*.self_attn.q_proj": "colwise", "down_proj": "rowwise", "head": "colwise_rep"})
        found = {path: type(style).__name__ for path, (_, style) in styles.items()}
        self.assertEqual(found, {
            "layers.0.self_attn.q_proj": "Colwise", "layers.1.self_attn.q_proj": "Colwise",
            "layers.0.mlp.down_proj": "Rowwise", "layers.1.mlp.down_proj": "Rowwise", "head": "Colwise",
        })  # fmt: skip
        self.assertIsInstance(styles["head"][1].options["output_layouts"], Replicate)

    def test_styles_of_pytorch_stay(self) -> None:
        style = Rowwise()
        self.assertEqual(styles_of(llama(), {"head": style})["head"][1], style)
        self.assertEqual(list(styles_of(llama(), style)), [""])

    def test_a_path_that_is_not_there_is_refused_with_the_nearest(self) -> None:
        found = refusal(lambda: styles_of(llama(), {"layers.*.mlp.up_prj": "colwise"}))
        self.assertEqual(found.fix, "did you mean layers.*.mlp.up_proj?")

    def test_an_unknown_word_is_refused_with_the_nearest(self) -> None:
        self.assertEqual(refusal(lambda: styles_of(llama(), {"head": "colwize"})).fix, "did you mean colwise?")

    def test_tied_weights_stay_whole(self) -> None:
        model = llama()
        model.children["head"]._parameters = model.children["embed"]._parameters
        self.assertEqual(styles_of(model, {"head": "colwise"}), {})

    def test_of_the_model_and_by_names(self) -> None:
        model = llama()
        self.assertEqual(plan_of(model)["mlp.down_proj"], "rowwise")
        model._tp_plan = {"head": "colwise_rep"}
        model.config = SimpleNamespace(base_model_tp_plan={"layers.*.mlp.up_proj": "colwise"})
        self.assertEqual(plan_of(model), {"layers.*.mlp.up_proj": "colwise", "head": "colwise_rep"})
        self.assertEqual(refusal(lambda: plan_of(Module(up=linear()))).code, "plan-missing")


class Layouts(unittest.TestCase):
    def test_are_asked_of_dtensors_and_seen_of_plain_tensors(self) -> None:
        x, other = Tensor((1, 4, 8)), Tensor((1, 4, 8))
        seen = Seen()
        seen.note(({"x": DTensor(x, [Shard(1)])},))
        self.assertEqual(seen.of(x, "x"), "Shard(1)")
        self.assertEqual(seen.of(other, "other"), "Replicate()")
        self.assertEqual(whole_shape(x, "Shard(1)", 4), (1, 16, 8))
        self.assertEqual(seen.of(DTensor(x, [Replicate()]), "x"), "Replicate()")

    def test_of_another_kind_are_refused(self) -> None:
        for placements in ([object()], [Replicate(), Shard(0)]):
            self.assertEqual(refusal(lambda each=placements: placement_text(each, "x")).code, "plan-mismatch")

    def test_of_results_follow_from_their_sizes(self) -> None:
        self.assertEqual(placement_of_part((1, 4, 8), (1, 8, 8), 2, "y"), "Shard(1)")
        self.assertEqual(placement_of_part((1, 8, 8), (1, 8, 8), 2, "y"), "Replicate()")
        for part in ((1, 3, 8), (1, 4, 4), (4, 8)):
            refusal(lambda each=part: placement_of_part(each, (1, 8, 8), 2, "y"))


class FakePlan:
    """A plan whose outputs are named after the run that made them."""

    device, folder = 0, "plan/"

    def __init__(self, inputs, outputs) -> None:
        document = {"inputs": [{"named": each} for each in inputs], "outputs": [{"named": each} for each in outputs]}
        self.runner = SimpleNamespace(plan=SimpleNamespace(document=document))
        self.inputs = [SimpleNamespace(shape=(2, 4), dtype="bfloat16")] * len(inputs)
        self.outputs = [SimpleNamespace(shape=(2, 4), dtype="bfloat16")] * len(outputs)
        self.names, self.runs = outputs, []

    def __call__(self, *given):
        self.runs.append([each.label for each in given])
        made = tuple(Tensor(label=f"{name} of run {len(self.runs)}") for name in self.names)
        return made if len(made) > 1 else made[0]


class Context(SimpleNamespace):
    def save_for_backward(self, *tensors):
        self.saved_tensors = tensors

    def set_materialize_grads(self, value):
        self.materializes = value


NAMED = ["x", "module.up", "module.down"]


def planned(**changes):
    forward = FakePlan(["x", "module.up", "module.down"], ["y", "saved.0"])
    backward = FakePlan(["module.down", "braid_cotangent", "saved.0", "x"], ["grad.x", "grad.module.down"])
    given = [Tensor(label="x"), Parameter(label="up"), DTensor(Tensor(label="down"), [Shard(1)])]
    return forward, backward, given, bind(forward, backward, NAMED, given, 1, ("tensor",), [None])


class Calls(unittest.TestCase):
    def test_under_way_keep_what_they_saved(self) -> None:
        forward, backward, given, plan = planned()
        contexts = [Context(needs_input_grad=(False, True, True, True)) for _ in range(2)]
        results = [torch_planned._Call.forward(each, plan, *given) for each in contexts]
        self.assertEqual([[each.label for each in result] for result in results], [["y of run 1"], ["y of run 2"]])
        self.assertEqual(forward.runs, [["x", "up", "down"]] * 2)
        for number in (1, 0):
            torch_planned._Call.backward(contexts[number], Tensor(label=f"dy {number}"))
        self.assertEqual(backward.runs, [
            ["down", "dy 1", "saved.0 of run 2", "x"], ["down", "dy 0", "saved.0 of run 1", "x"],
        ])  # fmt: skip

    def test_give_gradients_as_their_tensors_are_placed(self) -> None:
        _, _, given, plan = planned()
        context = Context(needs_input_grad=(False, True, False, True))
        torch_planned._Call.forward(context, plan, *given)
        none, dx, up, down = torch_planned._Call.backward(context, Tensor(label="dy"))
        self.assertIsNone(none)
        self.assertIsNone(up)
        self.assertEqual((dx.label, type(dx)), ("grad.x of run 1", Tensor))
        self.assertEqual((down._local_tensor.label, type(down)), ("grad.module.down of run 1", DTensor))

    def test_run_without_a_copy_where_no_gradient_is_wanted(self) -> None:
        forward, _, given, _ = planned()
        plan = bind(forward, None, NAMED, given, 1, ("tensor",), [None])
        given[0].requires_grad = True
        given[0].detach = lambda: Tensor(label="detached")
        for wanted, label in ((False, "x"), (True, "detached")):
            TORCH.is_grad_enabled.return_value = wanted
            self.assertEqual(plan(given).label, f"y of run {len(forward.runs)}")
            self.assertEqual(forward.runs[-1], [label, "up", "down"])

    def test_wait_for_results_of_collectives(self) -> None:
        forward, backward, given, plan = planned()
        given[0] = Async(given[0])
        given[2]._local_tensor = Async(given[2]._local_tensor)
        context = Context(needs_input_grad=(False, True, True, True))
        torch_planned._Call.forward(context, plan, *given)
        torch_planned._Call.backward(context, Async(Tensor(label="dy")))
        self.assertEqual((forward.runs, backward.runs), (
            [["x", "up", "down"]], [["down", "dy", "saved.0 of run 1", "x"]],
        ))  # fmt: skip

    def test_add_to_main_grad(self) -> None:
        _, _, given, plan = planned()
        given[2].main_grad = Tensor()
        context = Context(needs_input_grad=(False, True, True, True))
        torch_planned._Call.forward(context, plan, *given)
        self.assertIsNone(torch_planned._Call.backward(context, Tensor())[3])
        self.assertEqual([each.label for each in given[2].main_grad.added], ["grad.module.down of run 1"])

    def test_without_a_cotangent_take_zeros(self) -> None:
        _, backward, given, plan = planned()
        TORCH.zeros.return_value = Tensor(label="zeros")
        context = Context(needs_input_grad=(False, True, True, True))
        torch_planned._Call.forward(context, plan, *given)
        torch_planned._Call.backward(context, None)
        self.assertEqual(backward.runs[0][1], "zeros")

    def test_with_what_is_not_given_are_refused(self) -> None:
        forward = FakePlan(["x", "folded/mask"], ["y"])
        self.assertIn("folded/mask", refusal(lambda: bind(forward, None, ["x"], [Tensor()], 1, ("tensor",), [None])).found)
        forward = FakePlan(["x"], ["y"])
        other = Tensor((2, 8))
        self.assertIn("[2, 8]", refusal(lambda: bind(forward, None, ["x"], [other], 1, ("tensor",), [None])).found)


class Blocks(unittest.TestCase):
    def setUp(self) -> None:
        torch_block._told.clear()
        TORCH.get_rank.return_value = 0
        TORCH.is_grad_enabled.return_value = False
        TORCH.is_autocast_enabled.return_value = False
        TORCH.compiler.is_compiling.return_value = False
        self.warned: list[str] = []
        for name, stand_in in (
            ("is_capturing", lambda: False),
            ("same", lambda *_: None),
            ("session_of", lambda _: SimpleNamespace(group=None)),
            ("warnings", SimpleNamespace(warn=lambda text, **_: self.warned.append(text))),
        ):
            patch = mock.patch.object(torch_block, name, stand_in)
            patch.start()
            self.addCleanup(patch.stop)

    def block(self, sharded: bool = True) -> tuple[Module, torch_block.Block]:
        module = Module()
        module._parameters["weight"] = DTensor(Tensor(), [Shard(0)]) if sharded else Parameter()
        settings = SimpleNamespace(group="group", fp8=None)
        module.forward = block = torch_block.Block(module, "layers.0", Module(), settings)
        return module, block

    def test_decide_once_for_each_call(self) -> None:
        module, block = self.block()
        decided: list[str] = []

        def decide(call, *_):
            decided.append(call)
            return torch_block.Choice(call, "braid", "", lambda given: ("braid", len(given)))

        with mock.patch.object(block, "_decided", decide):
            for shape in ((2, 4), (2, 4), (2, 8), (2, 4)):
                self.assertEqual(module(Tensor(shape)), ("braid", 2))
        self.assertEqual(decided, ["bfloat16[2, 4]", "bfloat16[2, 8]"])
        self.assertEqual(self.warned, [])

    def test_like_the_one_before_are_not_looked_up(self) -> None:
        module, block = self.block()
        runs: list[str] = []

        def decide(call, *_):
            return torch_block.Choice(call, "braid", "", lambda given: runs.append(f"{call} of {len(given)}"))

        x = Tensor()
        with mock.patch.object(block, "_decided", decide):
            module(x)
            with mock.patch.object(block, "choices", mock.Mock(get=mock.Mock(side_effect=AssertionError("looked up")))):
                module(x)
                module(Tensor())
                for change in (
                    lambda: module(Tensor((2, 8))),
                    lambda: module(Tensor(dtype="float32")),
                    lambda: module(Tensor(requires_grad=True)),
                    lambda: module(DTensor(Tensor(), [Shard(0)], False)),
                    lambda: module(x, 3),
                    lambda: setattr(module, "training", False) or module(x),
                    lambda: setattr(module, "training", True)
                    or TORCH.is_grad_enabled.configure_mock(return_value=True)
                    or module(x),
                    lambda: TORCH.is_grad_enabled.configure_mock(return_value=False)
                    or module._parameters.update(weight=DTensor(Tensor(), [Shard(0)]))
                    or module(x),
                ):
                    self.assertRaisesRegex(AssertionError, "looked up", change)
            module(x)
        self.assertEqual(runs, ["bfloat16[2, 4] of 2"] * 4)

    def test_of_many_lengths_keep_the_plans_of_the_first_ones(self) -> None:
        module, block = self.block()

        def decide(call, *_):
            return torch_block.Choice(call, "braid", "", lambda given: call)

        with mock.patch.object(block, "_decided", decide), mock.patch.object(torch_block, "MOST_CALLS", 2):
            found = [module(Tensor((rows, 4))) for rows in (2, 3, 5, 2, 3, 7)]
        plans = [each if isinstance(each, str) else each[0] for each in found]
        first, second = "bfloat16[2, 4]", "bfloat16[3, 4]"
        self.assertEqual(plans, [first, second, "today", first, second, "today"])
        self.assertEqual([text for text in self.warned if "pad to fewer lengths" not in text], [])
        self.assertEqual(len(self.warned), 1)

    def test_with_dropout_in_training_are_refused(self) -> None:
        module, block = self.block()
        module.children["drop"] = Dropout()
        with mock.patch.object(torch_block, "_apart", mock.Mock(side_effect=AssertionError)):
            x = Tensor()
            self.assertEqual(module(x), ("today", (x,)))
            self.assertIn("dropout in training, in drop", self.warned[0])
        module.children["drop"].training = False
        block._require_no_dropout()
        module.children["drop"].training, module.children["drop"].p = True, 0
        block._require_no_dropout()

    def test_name_no_folder_of_an_export(self) -> None:
        error = Refusal("compiler-failed", "Block", "error: at: /tmp/braid-export-x_1/Block-3-0.pt2: nodes[4]", "a plan")
        self.assertEqual(torch_block._line(error), "compiler-failed: error: at: Block-3-0.pt2: nodes[4] (expected a plan)")

    def test_that_fail_stay_as_they_are_and_say_so_once(self) -> None:
        failing = mock.Mock(side_effect=Refusal("compiler-failed", "block", "error[model-unsupported]", "a plan"))
        for _ in range(2):
            module, block = self.block()
            with mock.patch.object(block, "_decided", failing):
                x = Tensor()
                for _ in range(3):
                    self.assertEqual(module(x), ("today", (x,)))
        self.assertEqual(failing.call_count, 2)
        self.assertEqual(len(self.warned), 1)
        self.assertRegex(self.warned[0], r"leaves layers\.0 \(Module\) as it is: compiler-failed: error\[model-unsup")

    def test_wait_for_nobody_who_has_died(self) -> None:
        module, block = self.block()
        with mock.patch.object(block, "_decided", mock.Mock(side_effect=TimeoutError("rank 1"))):
            self.assertRaises(TimeoutError, module, Tensor())

    def test_that_cannot_be_asked_are_left_without_a_meeting(self) -> None:
        def reason(change, sharded=True) -> str:
            torch_block._told.clear()
            self.warned.clear()
            module, block = self.block(sharded)
            with mock.patch.object(block, "_decided", mock.Mock(side_effect=AssertionError)):
                x = Tensor()
                change(block, x)
                self.assertEqual(module(x), ("today", (x,)))
            return self.warned[0]

        self.assertIn("sharded", reason(lambda *_: None, sharded=False))
        self.assertIn("GPUs", reason(lambda _, x: setattr(x, "is_cuda", False)))
        self.assertIn("copied", reason(lambda block, _: setattr(block, "twin", "it cannot be copied")))
        TORCH.is_autocast_enabled.return_value = True
        self.assertIn("autocast", reason(lambda *_: None))

    def test_of_a_copied_model_are_of_the_copy(self) -> None:
        module, block = self.block()
        block.settings = object()
        copied = copy.deepcopy(module)
        self.assertIs(copied.forward.module, copied)
        self.assertIs(copied.forward.settings, block.settings)

    def test_share_rows_between_linear_maps_where_the_caller_has_whole_ones(self) -> None:
        def lines(rows: str = "Replicate()") -> dict:
            linear = {"module.up.weight": ["Shard(0)"], "module.down.weight": ["Shard(1)"]}
            return {"mesh": {"tp": 2}, **linear, "inputs": {"x": [rows]}, "outputs": {"y": [rows]}}

        found = torch_block.over_devices(lines(), [(1, 512, 8)], 2)
        self.assertEqual(found.pop("activations"), {"module.down": ["Shard(1)"]})
        self.assertEqual(found.pop("module"), "all_reduce")
        self.assertEqual(found, {name: each for name, each in lines().items() if name != "outputs"})
        self.assertEqual(torch_block.over_devices(lines(), [(512, 8)], 2)["activations"], {"module.down": ["Shard(0)"]})
        without = {name: each for name, each in lines().items() if name != "module.down.weight"}
        for given, outputs, size in (
            (lines("Shard(1)"), [(1, 512, 8)], 2), (lines(), [(1, 128, 8)], 2), (lines(), [(1, 512, 8)], 3),
            (lines(), [(1, 512, 8)] * 2, 2), (without, [(1, 512, 8)], 2), (lines(), [(512,)], 2),
        ):  # fmt: skip
            self.assertIsNone(torch_block.over_devices(given, outputs, size))

    def compared(self, errors: dict, times: dict, always: bool = False, fp8: str | None = None) -> tuple:
        """`times`: the fastest is chosen of those that are asked."""
        _, block = self.block()
        block.settings = SimpleNamespace(group="group", mesh=None, fp8=fp8)
        planned = {name: mock.Mock() for name in errors}
        asked = []

        def fastest(ways, group, measured):
            asked.extend(ways)
            measured.update({name: times[name] for name in ways})
            return min(ways, key=times.get)

        TORCH.tensor = lambda values, **_: SimpleNamespace(tolist=lambda: values)
        TORCH.bfloat16 = "bfloat16"
        with (
            mock.patch.object(torch_block, "_step", lambda run, *_: run([])),
            mock.patch.object(torch_block, "_difference", lambda own, _: own),
            mock.patch.object(torch_block, "BOUNDS", {"bfloat16": 0.03}),
            mock.patch.object(torch_block, "fastest", fastest),
            mock.patch.dict("os.environ", {"BRAID_PARALLELIZE": "always"} if always else {}),
            mock.patch.object(block, "today", lambda *_: 0.0),
            mock.patch.object(torch_block, "rebuild", lambda *_: ((), {})),
        ):
            for name, each in planned.items():
                each.return_value = errors[name]
            choice = block._compared("call", planned, [], [Tensor()], ("tensor",))
        self.asked = asked
        name = next((name for name, each in planned.items() if each is choice.planned), "today")
        return choice, name

    def test_do_without_a_second_plan_that_is_refused(self) -> None:
        _, block = self.block()
        block.settings = SimpleNamespace(group="group", fp8=None)
        made = {"key": "a second plan", "folders": {"braid": ["first"], "rows": ["second"]}, "arguments": []}

        def loaded(refused):
            def load(folder, _):
                if folder == refused:
                    raise Refusal("plan-invalid", folder, "nothing", "a plan")
                return folder

            return load

        def decided(refused):
            with (
                mock.patch.object(torch_block, "_apart", lambda _: contextlib.nullcontext()),
                mock.patch.object(torch_block, "load", loaded(refused)),
                mock.patch.object(torch_block, "agree", lambda _, what, call: call()),
                mock.patch.object(torch_block, "bind", lambda forward, *_: forward),
                mock.patch.dict(torch_block._shared, clear=True),
                mock.patch.object(block, "_observed", lambda *_: ([], None, [], [])),
                mock.patch.object(block, "_plans", lambda *_: made),
                mock.patch.object(block, "_compared", lambda _, planned, *others: planned),
            ):
                return block._decided("call", [], [Tensor()], ("tensor",))

        self.assertEqual(decided(None), {"braid": "first", "rows": "second"})
        self.assertEqual(decided("second"), {"braid": "first"})
        self.assertEqual(refusal(lambda: decided("first")).place, "first")

    def test_run_the_fastest_plan_that_is_right(self) -> None:
        both = {"braid": 0.01, "rows": 0.02}
        self.assertEqual(self.compared(both, {"braid": 2, "rows": 1, "today": 3})[1], "rows")
        self.assertEqual(self.compared(both, {"braid": 1, "rows": 2, "today": 3})[1], "braid")
        choice, name = self.compared(both, {"braid": 2, "rows": 2, "today": 1})
        self.assertEqual((choice.runs, name), ("today", "today"))
        self.assertIn("not faster", choice.reason)
        self.assertEqual(self.compared({"braid": 0.01, "rows": 0.1}, {"braid": 2, "rows": 1, "today": 3})[1], "braid")
        # Products of 8-bit floats err by more.
        inexact = ({"braid": 0.1, "rows": 0.3}, {"braid": 2, "rows": 1, "today": 3})
        self.assertEqual([self.compared(*inexact, fp8=each)[1] for each in (None, "rowwise")], ["today", "braid"])
        self.assertIn("differ by 0.1,", self.compared({"braid": 0.1, "rows": 0.2}, {})[0].reason)
        self.assertEqual(self.compared(both, {"braid": 3, "rows": 2, "today": 1}, always=True)[1], "rows")
        self.assertEqual(self.compared({"braid": 0.01}, {}, always=True)[1], "braid")
        self.assertEqual(self.asked, [])

    def test_compare_by_the_largest_relative_norm(self) -> None:
        self.assertEqual(torch_block._difference([Tensor()], []), float("inf"))
        self.assertEqual(torch_block._difference([Tensor((2, 4))], [Tensor((4, 2))]), float("inf"))


class Twins(unittest.TestCase):
    def test_have_no_functions_in_place_of_their_methods(self) -> None:
        model = llama()
        wrapped, patched = model.children["head"], model.children["embed"]
        group = mock.Mock(__deepcopy__=mock.Mock(side_effect=TypeError("a process group")))
        wrapped.forward = functools.partial(lambda *_: "another module's", group)
        patched.forward = MethodType(lambda self, x: (self, x), patched)
        with mock.patch.object(torch_twin, "_like", lambda tensor, *_: tensor):
            twin = torch_twin.twin_of(model)
        self.assertEqual(twin.children["head"]("x"), ("today", ("x",)))
        self.assertIs(twin.children["embed"]("x")[0], twin.children["embed"])
        self.assertIn("forward", wrapped.__dict__)


class Whole(unittest.TestCase):
    def parallelized(self, switch: str | None) -> Module:
        model = llama()

        def shard(module, mesh, style):
            module._parameters = {name: DTensor(each, [style]) for name, each in module._parameters.items()}

        variables = {} if switch is None else {"BRAID_PARALLELIZE": switch}
        with (
            mock.patch.object(torch_parallelize, "parallelize_module", shard),
            mock.patch.object(torch_parallelize, "twin_of", lambda module: module),
            mock.patch.dict("os.environ", variables),
        ):
            self.assertIs(torch_parallelize.parallelize(model, SimpleNamespace(ndim=1)), model)
        return model

    def test_gets_plans_for_its_repeated_blocks(self) -> None:
        found = {path for path, each in self.parallelized(None).named_modules() if "forward" in each.__dict__}
        self.assertEqual(found, {"layers.0", "layers.1"})

    def test_is_only_sharded_when_switched_off(self) -> None:
        model = self.parallelized("off")
        self.assertFalse([each for each in model.modules() if "forward" in each.__dict__])
        self.assertTrue(any(isinstance(each, DTensor) for each in model.parameters()))

    def test_of_plain_shards_is_refused(self) -> None:
        model = llama()
        model.layers.children["0"].mlp.up_proj._hf_tp_plan = "colwise"
        found = refusal(lambda: torch_parallelize.parallelize(model, SimpleNamespace(ndim=1)))
        self.assertEqual(found.found, "layers.0.mlp.up_proj, a plain part of a weight")
        for each in model.modules():
            each._parameters = {name: DTensor(part, [Shard(0)]) for name, part in each._parameters.items()}
        torch_parallelize._require_whole(model)

    def test_refuses_other_meshes_and_settings(self) -> None:
        for mesh, options in ((None, {}), (SimpleNamespace(ndim=2, mesh_dim_names=("dp", "ep")), {})):
            found = refusal(lambda m=mesh, o=options: torch_parallelize.parallelize(llama(), m, **o))
            self.assertEqual(found.place, "parallelize, mesh")
        mesh = SimpleNamespace(ndim=1)
        for save in ("some", True, -1):
            found = refusal(lambda s=save: torch_parallelize.parallelize(llama(), mesh, save=s))
            self.assertEqual(found.place, "parallelize, save")
        found = refusal(lambda: torch_parallelize.parallelize(llama(), mesh, fp8="columnwise"))
        self.assertEqual((found.place, found.expected), ("parallelize, fp8", '"rowwise", "tensorwise" or "blockwise"'))


if __name__ == "__main__":
    unittest.main()
