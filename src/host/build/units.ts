/**
 * Host units of a HostProgramBuilder. A Fusion has its own names for extents. In the program they stand for the extents
 * of the tensors that are passed, so a Fusion that is posted with other extents becomes another unit.
 */
import type { TensorView } from "../../ir/api/tensor-view.ts";
import { isDID, type IterDomain, type Tensor, withoutReductions } from "../../ir/domain.ts";
import type { FusionData } from "../../ir/fusion-data.ts";
import { argumentOf, requireTensor } from "../../ir/api/handle.ts";
import { type Call, call } from "../../ir/ops/call.ts";
import type { Op } from "../../ir/ops/op.ts";
import { binary, constant, printScalar, type Scalar } from "../../ir/scalar/scalar.ts";
import { makeId, at } from "../../support/invariant.ts";
import type { UnitId } from "../nodes.ts";
import { addLike, annotate, append, type BuilderState, ownId } from "./state.ts";

/** Posts `fusion` on the current stream. Throws `foreign-tensor`. */
export function postUnit(
  state: BuilderState,
  fusion: FusionData,
  inputs: readonly TensorView[],
  outputs: readonly TensorView[] | undefined,
): readonly TensorView[] {
  inputs.forEach((input, i) => {
    requireTensor(input, "postOnStream", i);
  });
  const place = call("postOnStream", ...inputs.map((input) => argumentOf(input, state.tensors)));
  const ids = inputs.map((input) => ownId(state, input, place));
  const extents = extentsOf(fusion, inputs);
  const unit = unitFor(state, fusion, extents);
  const made = outputs ?? outputsLike(state, at(state.units, unit).fusion, place);
  append(state, {
    kind: "PostOnStream",
    unit,
    inputs: ids,
    outputs: made.map((output) => ownId(state, output, place)),
  });
  return made;
}

/**
 * The extents that the Fusion's symbols stand for. If only the tensor shards an axis, the Fusion sees the local extent,
 * 1.
 */
function extentsOf(fusion: FusionData, inputs: readonly TensorView[]): ReadonlyMap<string, Scalar> {
  const extents = new Map<string, Scalar>();
  fusion.inputs.forEach((id, position) => {
    const given = inputs[position]?.data();
    if (given === undefined) return;
    const own = withoutReductions(at(fusion.tensors, id).domain.logical);
    withoutReductions(given.domain.logical).forEach(({ extent, parallelType }, i) => {
      const axis = own[i];
      if (axis?.extent.kind !== "symbol" || extents.has(axis.extent.name)) return;
      extents.set(axis.extent.name, isDID(parallelType) && !isDID(axis.parallelType) ? constant(1) : extent);
    });
  });
  return extents;
}

function unitFor(state: BuilderState, fusion: FusionData, extents: ReadonlyMap<string, Scalar>): UnitId {
  const text = [...extents].map(([name, extent]) => `${name}=${printScalar(extent)}`).join(", ");
  const known = state.unitSources.findIndex((source) => source.fusion === fusion && source.extents === text);
  if (known >= 0) return makeId<UnitId>(known);
  const id = makeId<UnitId>(state.units.length);
  state.unitSources.push({ fusion, extents: text });
  state.units.push({ id, fusion: extents.size === 0 ? fusion : withExtents(fusion, extents) });
  return id;
}

function outputsLike(state: BuilderState, fusion: FusionData, place: Call): readonly TensorView[] {
  return fusion.outputs.map((id) => {
    const { dtype, mesh, domain } = at(fusion.tensors, id);
    const axes = withoutReductions(domain.logical);
    const output = addLike(state, dtype, axes);
    const parallel = axes.map(({ parallelType }) => parallelType);
    annotate(output, mesh === null ? { parallel } : { parallel, mesh }, place);
    return output;
  });
}

function withExtents(fusion: FusionData, extents: ReadonlyMap<string, Scalar>): FusionData {
  const replace = (scalar: Scalar): Scalar => {
    if (scalar.kind === "symbol") return extents.get(scalar.name) ?? scalar;
    return scalar.kind === "binary" ? binary(scalar.op, replace(scalar.lhs), replace(scalar.rhs), scalar.name) : scalar;
  };
  const axes = (list: readonly IterDomain[]): readonly IterDomain[] =>
    list.map((axis) => ({ ...axis, extent: replace(axis.extent) }));
  const tensors = fusion.tensors.map((tensor): Tensor => {
    const { logical, transforms, loop, allocation } = tensor.domain;
    const domain = { logical: axes(logical), transforms, loop: axes(loop), allocation: allocation && axes(allocation) };
    return { ...tensor, domain };
  });
  const ops = fusion.ops.map((op): Op => {
    if (op.kind === "Select") return { ...op, index: replace(op.index) };
    if (op.kind !== "Slice") return op;
    return {
      ...op,
      ranges: op.ranges.map((range) => ({ ...range, start: replace(range.start), stop: replace(range.stop) })),
    };
  });
  return { ...fusion, tensors, ops };
}
