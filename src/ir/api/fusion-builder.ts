/**
 * The mutable state behind a Fusion: tables and counters. Tables only grow, except that a transform replaces its
 * tensor's entry. Numbers follow nvFuser's creation order, so that dumps agree. IterDomains count up over all axes of
 * all tensors. Every extent of an input gets the next scalar number; the number after the first is skipped, because
 * nvFuser creates its cached constant 0 there. Outputs of ops reuse the extents of their operands.
 */
import type { DType } from "../../numerics/dtype.ts";
import { type CallMark, markCall, siteOf } from "../../support/call-site.ts";
import { makeId, at } from "../../support/invariant.ts";
import {
  type AxisShape,
  type IterDomain,
  type IterDomainId,
  plainDomain,
  type Tensor,
  type TensorId,
} from "../domain.ts";
import type { Alias, Derivation, FusionData, Marker } from "../fusion-data.ts";
import type { Call } from "../ops/call.ts";
import { type Op, opOf, type OpSpec } from "../ops/op.ts";
import { inferOutputs } from "../ops/rows.ts";
import { constant, leavesOf, type Scalar, symbol } from "../scalar/scalar.ts";

export interface FusionBuilder {
  readonly tensors: Tensor[];
  readonly ops: Op[];
  readonly inputs: TensorId[];
  readonly outputs: TensorId[];
  readonly aliases: Alias[];
  /** The names of the inputs' symbolic extents. */
  readonly symbols: Set<string>;
  /** The tensors that have a name. */
  readonly names: Map<string, TensorId>;
  /** Whether calls are a user's, whose lines are remembered; those of a reader of files are not. */
  marksCalls: boolean;
  /** Where tensors were made, until a snapshot needs the lines. */
  readonly marks: Map<TensorId, CallMark>;
  /** The calls that placed tensors, likewise. */
  readonly annotations: { readonly id: TensorId; readonly call: string; readonly mark: CallMark }[];
  readonly markers: Marker[];
  readonly derivations: Derivation[];
  iterDomainCount: number;
  scalarCount: number;
  /** While it is set, an op that is there already, of the same operands, is not appended again. */
  shares: boolean;
  /** The last snapshot, until the next change. */
  snapshot: FusionData | null;
}

export function createFusionBuilder(): FusionBuilder {
  return {
    tensors: [],
    ops: [],
    inputs: [],
    outputs: [],
    aliases: [],
    symbols: new Set(),
    names: new Map(),
    marksCalls: true,
    marks: new Map(),
    annotations: [],
    markers: [],
    derivations: [],
    iterDomainCount: 0,
    scalarCount: 0,
    shares: false,
    snapshot: null,
  };
}

/** Adds an input; a null extent becomes a new symbol. The caller has checked the extents. */
export function addInput(builder: FusionBuilder, extents: readonly (number | Scalar | null)[], dtype: DType): TensorId {
  const axes = extents.map((extent): AxisShape => ({ extent: inputExtent(builder, extent), iterType: "iteration" }));
  const id = addTensor(builder, dtype, axes);
  builder.inputs.push(id);
  return id;
}

function inputExtent(builder: FusionBuilder, extent: number | Scalar | null): Scalar {
  if (extent !== null && typeof extent !== "number") return extent;
  const number = builder.scalarCount;
  builder.scalarCount += number === 0 ? 2 : 1;
  if (extent !== null) return constant(extent);
  const name = `i${number}`;
  builder.symbols.add(name);
  return symbol(name);
}

/** Appends an op and its outputs. Throws what `inferOutput` throws. */
export function addOp(builder: FusionBuilder, spec: OpSpec, inputs: readonly TensorId[], place: Call): Op {
  const operands = inputs.map((id) => at(builder.tensors, id));
  const inferred = inferOutputs(spec, operands, place);
  const known = builder.shares ? sameOp(builder, spec, inputs, at(inferred, 0).axes) : undefined;
  if (known !== undefined) return known;
  const made = inferred.map(({ dtype, axes, numbering }) => addTensor(builder, dtype, axes, numbering));
  const op = opOf(spec, inputs, at(made, 0), made.slice(1));
  builder.ops.push(op);
  return op;
}

/** Ops do not say the shape of a reshape: `axes` are those of the output. */
function sameOp(
  { ops, tensors }: FusionBuilder,
  spec: OpSpec,
  inputs: readonly TensorId[],
  axes: readonly AxisShape[],
): Op | undefined {
  const shape = JSON.stringify(axes.map(({ extent }) => extent));
  return ops.find(
    (op) =>
      op.kind === spec.kind &&
      op.inputs.length === inputs.length &&
      op.inputs.every((id, i) => id === inputs[i]) &&
      JSON.stringify(op) === JSON.stringify(opOf(spec, inputs, op.output, op.further)) &&
      JSON.stringify(at(tensors, op.output).domain.logical.map(({ extent }) => extent)) === shape,
  );
}

/** New axes, numbered from `first`. */
export function makeAxes(axes: readonly AxisShape[], first: number, numbering?: readonly number[]): IterDomain[] {
  return axes.map(({ extent, iterType }, i) => ({
    id: makeId<IterDomainId>(first + (numbering === undefined ? i : at(numbering, i))),
    extent,
    iterType,
    parallelType: "Serial",
  }));
}

function addTensor(
  builder: FusionBuilder,
  dtype: DType,
  axes: readonly AxisShape[],
  numbering?: readonly number[],
): TensorId {
  const id = makeId<TensorId>(builder.tensors.length);
  const logical = makeAxes(axes, builder.iterDomainCount, numbering);
  builder.iterDomainCount += logical.length;
  builder.tensors.push({ id, dtype, memory: "global", domain: plainDomain(logical), mesh: null });
  builder.snapshot = null;
  return id;
}

/**
 * Programs with more tensors are generated, not written. A mark and its line take 5 to 15 microseconds, several times
 * as long as an op.
 */
const mostMarks = 500;

/** Remembers that the user's current call made the tensor, if it is one of the first. */
export function markTensor(builder: FusionBuilder, id: TensorId): void {
  if (!builder.marksCalls || id >= mostMarks) return;
  const mark = markCall();
  if (mark !== null) builder.marks.set(id, mark);
}

/** Remembers that the user's current call placed the tensor, if it is one of the first. */
export function markAnnotation(builder: FusionBuilder, id: TensorId, call: string): void {
  if (!builder.marksCalls || id >= mostMarks) return;
  const mark = markCall();
  if (mark !== null) builder.annotations.push({ id, call, mark });
}

/** Writes the lines of the calls into the tensors that they made and placed. */
export function resolveMarks({ tensors, marks, annotations }: FusionBuilder): void {
  for (const [id, mark] of marks) {
    const tensor = at(tensors, id);
    const source = siteOf(mark);
    if (source !== null) tensors[id] = { ...tensor, origin: { ...tensor.origin, source } };
  }
  marks.clear();
  for (const { id, call, mark } of annotations) {
    const tensor = at(tensors, id);
    const source = siteOf(mark);
    if (source === null) continue;
    const { annotations: before = [], ...origin } = tensor.origin ?? {};
    const others = before.filter((each) => replacedBy(each.call) !== replacedBy(call));
    const now = call.endsWith('("Serial")') ? others : [...others, { call, source }];
    tensors[id] = { ...tensor, origin: now.length === 0 ? origin : { ...origin, annotations: now } };
  }
  annotations.length = 0;
}

/** Of calls for which this is equal, the last counts: an axis has one parallel type. */
function replacedBy(call: string): string {
  return call.replace(/\("\w+"\)$/u, "");
}

/** Replaces a tensor's entry after a transform; the id stays. */
export function replaceTensor(builder: FusionBuilder, tensor: Tensor): void {
  builder.tensors[tensor.id] = tensor;
  builder.snapshot = null;
}

/** Names a tensor, in place of a name that it has. The caller has checked that no other tensor has the name. */
export function nameTensor(builder: FusionBuilder, tensor: Tensor, name: string): void {
  if (tensor.origin?.name !== undefined) builder.names.delete(tensor.origin.name);
  builder.names.set(name, tensor.id);
  replaceTensor(builder, { ...tensor, origin: { ...tensor.origin, name } });
}

/** `alias`: the input in whose buffer the output lies. The caller has checked that it fits. */
export function addOutput(builder: FusionBuilder, id: TensorId, alias: TensorId | null = null): void {
  builder.outputs.push(id);
  if (alias !== null) builder.aliases.push({ output: builder.outputs.length - 1, input: alias });
  builder.snapshot = null;
}

// The state behind a Fusion to immutable data, and back.

/** The Fusion as immutable data. Returns the same object until the next change. */
export function snapshotFusion(builder: FusionBuilder): FusionData {
  if (builder.snapshot !== null) return builder.snapshot;
  resolveMarks(builder);
  builder.snapshot = {
    kind: "Fusion",
    tensors: [...builder.tensors],
    ops: [...builder.ops],
    inputs: [...builder.inputs],
    outputs: [...builder.outputs],
    ...(builder.aliases.length === 0 ? {} : { aliases: [...builder.aliases] }),
    iterDomainCount: builder.iterDomainCount,
    scalarCount: builder.scalarCount,
    ...(builder.markers.length === 0 ? {} : { markers: [...builder.markers] }),
    ...(builder.derivations.length === 0 ? {} : { derivations: [...builder.derivations] }),
  };
  return builder.snapshot;
}

/** A state with the Fusion's tables, to which ops can be appended. */
export function builderFrom(fusion: FusionData): FusionBuilder {
  const builder = createFusionBuilder();
  growTo(builder, fusion);
  return builder;
}

/** Appends what `fusion`, which begins with the tables of the state, has more. */
export function growTo(builder: FusionBuilder, fusion: FusionData): void {
  for (const tensor of fusion.tensors.slice(builder.tensors.length)) {
    builder.tensors.push(tensor);
    for (const { extent } of tensor.domain.logical) for (const leaf of leavesOf(extent)) builder.symbols.add(leaf);
    if (tensor.origin?.name !== undefined) builder.names.set(tensor.origin.name, tensor.id);
  }
  for (const op of fusion.ops.slice(builder.ops.length)) builder.ops.push(op);
  for (const id of fusion.inputs.slice(builder.inputs.length)) builder.inputs.push(id);
  for (const id of fusion.outputs.slice(builder.outputs.length)) builder.outputs.push(id);
  builder.aliases.push(...(fusion.aliases ?? []).slice(builder.aliases.length));
  for (const marker of (fusion.markers ?? []).slice(builder.markers.length)) builder.markers.push(marker);
  builder.derivations.push(...(fusion.derivations ?? []).slice(builder.derivations.length));
  builder.iterDomainCount = fusion.iterDomainCount;
  builder.scalarCount = fusion.scalarCount;
  builder.snapshot = null;
}
