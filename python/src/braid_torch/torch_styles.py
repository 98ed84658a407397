"""Plans of others: the words of Hugging Face's tp_plan as styles of PyTorch, and the plans that models bring."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from typing import Any

from torch import nn
from torch.distributed.tensor import Replicate
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, SequenceParallel
from torch.distributed.tensor.parallel.style import ParallelStyle

from .refusal import Refusal

# None: the module stays whole on every rank.
WORDS: dict[str, Callable[[], ParallelStyle | None]] = {
    "colwise": ColwiseParallel,
    "colwise_rep": lambda: ColwiseParallel(output_layouts=Replicate()),
    "colwise_gather_output": lambda: ColwiseParallel(output_layouts=Replicate()),
    "rowwise": RowwiseParallel,
    "rowwise_rep": lambda: RowwiseParallel(input_layouts=Replicate()),
    "rowwise_split_input": lambda: RowwiseParallel(input_layouts=Replicate()),
    "embedding_colwise": lambda: ColwiseParallel(output_layouts=Replicate()),
    "embedding_rowwise": lambda: RowwiseParallel(input_layouts=Replicate()),
    "sequence_parallel": SequenceParallel,
    "replicated": lambda: None,
}

# By the names of modules: Hugging Face's Llama, Qwen, Mistral and Gemma, and torchtitan's Llama.
KNOWN: dict[str, str] = {
    **{f"self_attn.{name}_proj": "colwise" for name in "qkv"},
    "self_attn.o_proj": "rowwise",
    "mlp.gate_proj": "colwise",
    "mlp.up_proj": "colwise",
    "mlp.down_proj": "rowwise",
    **{f"attention.w{name}": "colwise" for name in "qkv"},
    "attention.wo": "rowwise",
    "feed_forward.w1": "colwise",
    "feed_forward.w3": "colwise",
    "feed_forward.w2": "rowwise",
}

Styles = dict[str, "tuple[nn.Module, ParallelStyle]"]


def plan_of(model: nn.Module) -> Mapping[str, Any]:
    """The plan that the model brings, or the one of its modules' names. Raises Refusal if there is none."""
    found: dict[str, Any] = {}
    for module in model.modules():
        for given in (getattr(getattr(module, "config", None), "base_model_tp_plan", None), getattr(module, "_tp_plan", None)):
            if isinstance(given, Mapping):
                found.update(given)
    if found:
        return found
    paths = [path for path, _ in model.named_modules()]
    known = {pattern: word for pattern, word in KNOWN.items() if any(matches(pattern, path) for path in paths)}
    if len(known) >= 3:
        return known
    example = 'plan={"layers.*.up": "colwise", "layers.*.down": "rowwise"}'
    expected = "a model with a tp_plan, with DTensor parameters, or with the names of Llama's modules"
    raise Refusal("plan-missing", "parallelize", f"modules such as {', '.join(paths[1:4])}", expected, f"pass {example}")


def styles_of(model: nn.Module, plan: Mapping[str, Any] | ParallelStyle) -> Styles:
    """The style of each module, by path. Raises Refusal for a line that means nothing here."""
    lines = {"": plan} if isinstance(plan, ParallelStyle) else plan
    modules = dict(model.named_modules())
    shared = _tied(modules)
    found: Styles = {}
    for pattern, given in lines.items():
        paths = [path for path in modules if matches(pattern, path)]
        if not paths:
            near = difflib.get_close_matches(pattern, _patterns(modules), 1)
            fix = f"did you mean {near[0]}?" if near else f"name a module, such as {', '.join(list(modules)[-3:])}"
            raise Refusal("plan-mismatch", "parallelize, plan", pattern, "the path of a module; * is one segment", fix)
        for path in paths:
            style = _style(pattern, given)
            # The weight of another module, too: sharding it here would part the two.
            if style is not None and path not in shared:
                found[path] = (modules[path], style)
    return found


def _style(pattern: str, given: Any) -> ParallelStyle | None:
    if isinstance(given, ParallelStyle):
        return given
    if isinstance(given, str) and given in WORDS:
        return WORDS[given]()
    expected = f"a ParallelStyle of PyTorch, or one of {', '.join(WORDS)}"
    fix = f"did you mean {near[0]}?" if (near := difflib.get_close_matches(str(given), WORDS, 1)) else "leave it out"
    raise Refusal("plan-mismatch", f"parallelize, plan, {pattern}", str(given), expected, fix)


def matches(pattern: str, path: str) -> bool:
    """`*` is one segment. A pattern may leave out leading segments; "" is the model itself."""
    if pattern == "":
        return path == ""
    expression = "[^.]+".join(map(re.escape, pattern.split("*")))
    return re.fullmatch(rf"(?:.*\.)?{expression}", path) is not None


def _patterns(modules: Mapping[str, nn.Module]) -> list[str]:
    general = {re.sub(r"(?<![^.])\d+(?![^.])", "*", path) for path in modules}
    return [path[start:] for path in general for start in (0, *[m.end() for m in re.finditer(r"\.", path)])]


def _tied(modules: Mapping[str, nn.Module]) -> set[str]:
    """Paths of modules that have a parameter of another module."""
    owners: dict[int, list[str]] = {}
    for path, module in modules.items():
        for parameter in module.parameters(recurse=False):
            owners.setdefault(id(parameter), []).append(path)
    return {path for paths in owners.values() if len(paths) > 1 for path in paths}
