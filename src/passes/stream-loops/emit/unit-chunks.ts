/**
 * One iteration of a host unit: the unit on chunks of its inputs and outputs. Its Fusion sees the extent of a chunk: a
 * new symbol, which each run takes from the chunk, unless all chunks are known to have one size.
 */
import type { HostUnit, PostOnStream, Statement, UnitId } from "../../../host/nodes.ts";
import { isDID, type IterDomain, type Tensor, type TensorId } from "../../../ir/domain.ts";
import { cutOf } from "../../../ir/parts.ts";
import { constantValue } from "../../../ir/scalar/fold.ts";
import { constant, printScalar, type Scalar, symbol } from "../../../ir/scalar/scalar.ts";
import type { Chunks } from "../../../ir/stream.ts";
import { makeId, at, invariant } from "../../../support/invariant.ts";
import { type ModelledAxis, redomain, type TensorEdit } from "../../edit/tensor-edit.ts";
import type { LoopMember } from "../loop-member.ts";
import { slicedTensors } from "../looped-axis.ts";
import { chunkModel, countedAs, onChunk } from "./slicer.ts";
import type { LoopContext, LoopEdit } from "./loop-context.ts";

export function unitStatements(
  post: PostOnStream,
  { read, made, chunks, counted }: LoopMember,
  { slicer, edit }: LoopContext,
): readonly Statement[] {
  const axes = made.map((axis) => {
    invariant(axis !== null, "a unit completes a chunk of each output", post);
    return axis;
  });
  const unit = chunkUnit(edit, post, axes, chunks, counted.extent);
  const bindings: Statement[] = [];
  const chunkOf = (id: TensorId, axis: IterDomain | null): TensorId => {
    if (axis === null) return id;
    const { slice, binding } = slicer.chunk(id, axis);
    bindings.push(...binding);
    return slice;
  };
  const inputs = post.inputs.map((id, i) => chunkOf(id, read[i] ?? null));
  const outputs = post.outputs.map((id, i) => chunkOf(id, at(axes, i)));
  return [...bindings, { kind: "PostOnStream", unit, inputs, outputs }];
}

/** The unit on chunks. It replaces the whole unit, unless another statement posts that too. */
function chunkUnit(
  edit: LoopEdit,
  post: PostOnStream,
  made: readonly IterDomain[],
  chunks: Chunks | null,
  counted: Scalar,
): UnitId {
  const whole = at(edit.units, post.unit);
  const sliced = slicedTensors(post, made, chunks, edit);
  const extentOf = chunkExtents(edit, whole, chunks);
  const tensors: TensorEdit = {
    tensors: [...whole.fusion.tensors],
    iterDomainCount: whole.fusion.iterDomainCount,
  };
  for (const [id, own] of sliced) {
    const axis = countedAs(own, counted);
    const tensor = at(tensors.tensors, id);
    const cut = chunks ?? { parts: axis.extent, within: [] };
    redomain(tensors, tensor, chunkAxes(tensor, axis, cut, extentOf(id, axis)));
  }
  const ops = whole.fusion.ops.map((op) => {
    const [input] = op.inputs;
    const axis = input === undefined ? undefined : sliced.get(input);
    return input === undefined || axis === undefined
      ? op
      : onChunk(op, axis, at(whole.fusion.tensors, input), at(tensors.tensors, input));
  });
  const fusion = {
    ...whole.fusion,
    ...tensors,
    ops,
    scalarCount: Math.max(whole.fusion.scalarCount, edit.scalarCount),
  };
  const id = edit.shared.has(post.unit) ? makeId<UnitId>(edit.units.length) : post.unit;
  edit.units[id] = { ...whole, id, fusion };
  return id;
}

/**
 * The extent of an iteration's part of an axis: 1 for an index of a whole axis, the size of all chunks if they are alike
 * on all devices, or a new symbol for each extent that is cut.
 */
function chunkExtents(
  edit: LoopEdit,
  { fusion }: HostUnit,
  chunks: Chunks | null,
): (tensor: TensorId, axis: IterDomain) => Scalar {
  if (chunks === null) return () => constant(1);
  const symbols = new Map<string, Scalar>();
  const parts = constantValue(chunks.parts);
  return (id, axis) => {
    const size = constantValue(axis.extent);
    const devices = cutOf(at(fusion.tensors, id).domain, axis).parts.reduce(
      (product, own) => (isDID(own.type) ? product * (constantValue(own.extent) ?? 0) : product),
      1,
    );
    const isEven = size !== null && parts !== null && size % (parts * devices) === 0;
    if (isEven) return constant(size / parts);
    // One device's one chunk has the element.
    if (size === 1) return constant(1);
    const key = printScalar(axis.extent);
    const known = symbols.get(key) ?? symbol(`i${edit.scalarCount++}`);
    symbols.set(key, known);
    return known;
  };
}

/** The axes of a tensor of the unit with `axis` of an iteration's extent, and no Stream. */
function chunkAxes(tensor: Tensor, axis: IterDomain, chunks: Chunks, extent: Scalar): readonly ModelledAxis[] {
  return tensor.domain.logical.map((own): ModelledAxis => {
    if (own.id !== axis.id) return { axis: own, model: cutOf(tensor.domain, own) };
    return { axis: { ...own, extent, parallelType: "Serial" }, model: chunkModel(tensor, axis, chunks).model };
  });
}
