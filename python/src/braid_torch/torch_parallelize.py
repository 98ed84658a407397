"""`parallelize`: a model whose repeated blocks run Braid's plans, and everything else as PyTorch runs it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.parallel import parallelize_module
from torch.distributed.tensor.parallel.style import ParallelStyle

from .refusal import Refusal
from .torch_block import SWITCH, Block, Settings
from .torch_styles import matches, plan_of, styles_of
from .torch_twin import twin_of


def parallelize(
    model: nn.Module,
    mesh: DeviceMesh | None = None,
    plan: Mapping[str, str | ParallelStyle] | ParallelStyle | None = None,
    *,
    blocks: str | None = None,
    save: str | int = "minimal",
    fp8: str | None = None,
) -> nn.Module:
    """
    Shards the model's parameters in place, as torch's parallelize_module does, and makes its repeated blocks call
    Braid's plans for the forward and the backward pass, where these are right and faster. Returns the model.
    BRAID_PARALLELIZE=off only shards.

    `mesh`: of one dimension, or with a dimension "tp"; that of the parameters if they are DTensors already.
    `plan`: by path of a module, a style of torch.distributed.tensor.parallel or a word of Hugging Face's tp_plan. The
    default is what the model brings: DTensor parameters, a tp_plan, or the names of Llama's modules.
    `blocks`: the modules that get plans, as `layers.*`; otherwise those of lists of equal modules with sharded
    parameters, or the whole model if it has none.
    `save`: what the forward pass keeps for the backward pass: "minimal" (results of matmuls and attention), "all", or
    the most bytes of whole tensors for each block. What is not kept is computed again.
    `fp8`: plans multiply the linears of blocks in floats of 8 bits, forward and backward, quantized with scales of now of
    their rows ("rowwise") or of tensors ("tensorwise"), as torchao's recipes of these names, or of blocks ("blockwise"),
    as in DeepSeek-V3.

    Call it before fully_shard, checkpoint_wrapper and torch.compile. Raises Refusal, a ValueError.
    """
    _require_save(save)
    if fp8 not in (None, "rowwise", "tensorwise", "blockwise"):
        fix = "choose one, or leave it out"
        raise Refusal("plan-mismatch", "parallelize, fp8", repr(fp8), '"rowwise", "tensorwise" or "blockwise"', fix)
    _require_whole(model)
    given = [each for each in model.parameters() if isinstance(each, DTensor)]
    own = _mesh(mesh if mesh is not None or not given else given[0].device_mesh)
    if plan is not None or not given:
        for module, style in styles_of(model, plan_of(model) if plan is None else plan).values():
            parallelize_module(module, own, style)
    if os.environ.get(SWITCH) == "off":
        return model
    settings = Settings(own, save, fp8)
    for path, module in _blocks(model, blocks):
        if isinstance(module.__dict__.get("forward"), Block):
            continue
        module.forward = Block(module, path, _twin(module), settings)
    return model


def block_choices(model: nn.Module) -> list[dict[str, Any]]:
    """What runs for each call of each block that was made, and why."""
    found = []
    for module in model.modules():
        block = module.__dict__.get("forward")
        for choice in block.choices.values() if isinstance(block, Block) else ():
            facts = {key: value for key, value in vars(choice).items() if key != "planned"}
            found.append({"block": block.path, **facts})
    return found


def _require_save(save: str | int) -> None:
    if save in ("all", "minimal") or (isinstance(save, int) and not isinstance(save, bool) and save >= 0):
        return
    raise Refusal("plan-mismatch", "parallelize, save", repr(save), '"all", "minimal" or a number of bytes', "choose one")


def _require_whole(model: nn.Module) -> None:
    """Hugging Face's tp_plan leaves plain shards in some of its versions: nothing says of which tensors."""
    cut = next((path for path, each in model.named_modules() if getattr(each, "_hf_tp_plan", None) is not None), None)
    if cut is None or any(isinstance(each, DTensor) for each in model.parameters()):
        return
    fix = "load it by from_pretrained without tp_plan, and pass the mesh: the plan is that of the model"
    raise Refusal("plan-mismatch", "parallelize", f"{cut}, a plain part of a weight", "whole tensors or DTensors", fix)


def _mesh(mesh: DeviceMesh | None) -> DeviceMesh:
    if mesh is not None and mesh.ndim > 1 and "tp" in (mesh.mesh_dim_names or ()):
        mesh = mesh["tp"]
    if mesh is not None and mesh.ndim == 1:
        return mesh
    found = "none" if mesh is None else f"one of {mesh.ndim} dimensions, {mesh.mesh_dim_names}"
    fix = 'pass init_device_mesh("cuda", (size,)), or mesh["NAME"] of a larger one'
    raise Refusal("plan-mismatch", "parallelize, mesh", found, "a mesh of one dimension, or with a dimension tp", fix)


def _twin(module: nn.Module) -> nn.Module | str:
    try:
        return twin_of(module)
    except Exception as error:  # noqa: BLE001  (modules may hold anything)
        return f"it cannot be copied: {' '.join(str(error).split())[:300]}"


def _blocks(model: nn.Module, pattern: str | None) -> list[tuple[str, nn.Module]]:
    if pattern is not None:
        found = [(path, module) for path, module in model.named_modules() if matches(pattern, path)]
        if found:
            return found
        raise Refusal("plan-mismatch", "parallelize, blocks", pattern, "the path of modules", "name some, as layers.*")
    return list(_repeated(model, "")) or [("the model", model)]


def _repeated(module: nn.Module, path: str) -> Iterator[tuple[str, nn.Module]]:
    """The members of the outermost lists of equal modules that have sharded parameters."""
    members = list(module.named_children())
    is_list = isinstance(module, (nn.ModuleList, nn.ModuleDict, nn.Sequential))
    if is_list and len({type(each) for _, each in members}) == 1 and all(map(_is_sharded, (each for _, each in members))):
        yield from ((f"{path}.{name}" if path else name, each) for name, each in members)
        return
    for name, each in members:
        yield from _repeated(each, f"{path}.{name}" if path else name)


def _is_sharded(module: nn.Module) -> bool:
    return any(isinstance(each, DTensor) for each in module.parameters())
