/**
 * Reverse mode: one sweep from outputs to inputs over the ops between `wrt` and `of`. The contributions to a cotangent
 * are added in the order of the sweep, so that the bits do not depend on anything else.
 *
 * A cotangent has the dtype of its primal. No mesh or parallel type is read or set here: the sweep records which tensor
 * is the cotangent of which, and lowering places them (passes/propagate/place-cotangents.ts).
 */
import { at, keysIn, mapValues, invariant } from "../../support/invariant.ts";
import { builderFrom, type FusionBuilder, nameTensor, snapshotFusion } from "../api/fusion-builder.ts";
import { add, cat, set } from "../api/ops.ts";
import { TensorView } from "../api/tensor-view.ts";
import { type TensorId, withoutReductions, type Tensor } from "../domain.ts";
import type { CotangentUse, Derivation, FusionData, Marker, MarkerName } from "../fusion-data.ts";
import { type Call, reject } from "../ops/call.ts";
import { isWholeRange } from "../ops/kinds/views/slice.ts";
import { type Op, outputsOf, type SliceOp } from "../ops/op.ts";
import { constantValue } from "../scalar/fold.ts";
import { type CompositionVjp, compositionVjps, type MarkedRegion, markedRegions } from "./compositions.ts";
import { freeDimension, gradientParts, rejectParts } from "./partial.ts";
import { vjps } from "./rules.ts";
import { type Cotangent, filled, type Vjp } from "./vjp.ts";
import { isScaled } from "../ops/kinds/contractions.ts";
import type { Diagnostic } from "../../diagnostics/diagnostic.ts";
import { computedFloats, dtypes, isComputed } from "../../numerics/dtype.ts";
import { originated } from "../origin.ts";
import { unaryVjps } from "./functions.ts";

export interface Differentiation extends Pick<Derivation, "of" | "cotangents" | "wrt"> {
  /** Those of `wrt` whose gradients stay parts of the devices. */
  readonly partial: readonly TensorId[];
  /** A tensor that no derivative reaches has null for its gradient. */
  readonly allowUnused: boolean;
}

export interface Differentiated {
  /** The Fusion with the ops of the backward pass behind its own. */
  readonly data: FusionData;
  /**
   * One per `wrt`: null if no `of` depends on it, or no derivative reaches it. No two are the same tensor, and none is an
   * input.
   */
  readonly gradients: readonly (TensorId | null)[];
}

/** The caller has checked the cotangents. Throws `not-differentiable`. */
export function differentiate(data: FusionData, request: Differentiation, place: Call): Differentiated {
  for (const id of [...request.of, ...request.wrt]) requireFloatTensor(at(data.tensors, id), place);
  const active = activeTensors(data, request.wrt);
  const sweep: Sweep = {
    builder: builderFrom(data),
    known: data.tensors.length,
    cotangents: new Map(),
    wrt: new Set(request.wrt),
    passedFrom: new Map(),
    uses: [],
    place,
  };
  request.of.forEach((id, i) => {
    const given = at(request.cotangents, i);
    if (active.has(id)) contribute(sweep, id, given === null ? filled(view(sweep, id), [], 1) : view(sweep, given));
  });
  const regions = markedRegions(data);
  const tiles = tilesOf(data, regions);
  const done = new Set<TensorId>();
  for (const op of data.ops.toReversed()) {
    if (done.has(op.output)) continue;
    const region = regions.get(op.output)?.find((each) => !isReadInside(sweep, each));
    const tiled = tiles.get(op);
    if (tiled !== undefined) {
      if (tiled.first === op) reverseTiles(sweep, tiled, active);
    } else if (region === undefined) {
      reverse(sweep, op, active);
    } else {
      reverseComposition(sweep, region.marker, active);
      for (const id of region.made) done.add(id);
    }
  }
  const taken = new Set<TensorId>();
  const gradients = request.wrt.map((id) => {
    const g = sweep.cotangents.get(id);
    if (g === undefined) return request.allowUnused ? null : requireIndependent(data, request.of, id, place);
    const own = request.partial.includes(id)
      ? partsOfGradient(sweep, g, id)
      : g.id >= sweep.known && !taken.has(g.id)
        ? g
        : set(g);
    taken.add(own.id);
    return own.id;
  });
  request.wrt.forEach((id, i) => nameGradient(sweep, id, at(gradients, i)));
  for (const [id, g] of sweep.cotangents) nameGradient(sweep, id, g.id);
  const { of, cotangents, wrt } = request;
  sweep.builder.derivations.push({ of, cotangents, wrt, gradients, ops: data.ops, uses: sweep.uses });
  return { data: snapshotFusion(sweep.builder), gradients };
}

/** Names the gradient of `w` `w.grad`, or `w.grad2` and so on where that is taken, unless it has a name. */
function nameGradient({ builder, known }: Sweep, primal: TensorId, gradient: TensorId | null): void {
  const name = at(builder.tensors, primal).origin?.name;
  if (name === undefined || gradient === null || gradient < known) return;
  const own = at(builder.tensors, gradient);
  if (own.origin?.name !== undefined) return;
  const free = (count: number): string => {
    const ofPrimal = `${name}.grad${count === 1 ? "" : count}`;
    return builder.names.has(ofPrimal) ? free(count + 1) : ofPrimal;
  };
  nameTensor(builder, own, free(1));
}

interface Sweep {
  /** Of the whole Fusion: the sweep appends to it. */
  readonly builder: FusionBuilder;
  /** How many tensors the Fusion had. */
  readonly known: number;
  readonly cotangents: Map<TensorId, TensorView>;
  readonly wrt: ReadonlySet<TensorId>;
  /** Of a tensor whose cotangent is that of a result: the result. */
  readonly passedFrom: Map<TensorId, TensorId>;
  readonly uses: CotangentUse[];
  readonly place: Call;
}

function view({ builder }: Sweep, id: TensorId): TensorView {
  return new TensorView({ builder, id });
}

function contribute(sweep: Sweep, id: TensorId, value: TensorView): void {
  const sum = sweep.cotangents.get(id);
  sweep.cotangents.set(id, sum === undefined ? value : add(sum, value));
}

/** What a rule gives an operand. */
interface Contribution {
  readonly to: TensorId;
  readonly value: () => TensorView;
}

/** Contributes what the rule of an op or composition makes of the cotangents of `results`. */
function contributeAll(sweep: Sweep, results: readonly TensorId[], contributions: readonly Contribution[]): void {
  const { builder, cotangents, passedFrom, uses } = sweep;
  const from = builder.tensors.length;
  for (const { to, value } of contributions) {
    const made = value();
    const passed = results.find((id) => cotangents.get(id)?.id === made.id);
    if (passed !== undefined && !cotangents.has(to)) passedFrom.set(to, passed);
    else passedFrom.delete(to);
    contribute(sweep, to, made);
  }
  for (const primal of results) {
    const cotangent = cotangents.get(primal)?.id;
    if (cotangent === undefined) continue;
    const readers = { from, to: builder.tensors.length };
    uses.push({ primal, cotangent, passedFrom: passedFrom.get(primal) ?? null, readers });
  }
}

function reverse(sweep: Sweep, op: Op, active: ReadonlySet<TensorId>): void {
  const rule: Vjp<Op> | null = vjps[op.kind];
  const g = sweep.cotangents.get(op.output) ?? null;
  const other = op.further?.find((id) => sweep.cotangents.has(id));
  if (other !== undefined) rejectFurther(op, other, sweep.place);
  if (g === null || rule === null) return;
  const operands = op.inputs.map((id) => view(sweep, id));
  const outputs = outputsOf(op).map((id) => view(sweep, id));
  const made = rule(op, { g, operands, output: view(sweep, op.output), outputs });
  // A set changes the placement: its cotangent is placed like its input.
  const results = op.kind === "Set" && !sweep.wrt.has(op.output) ? [] : [op.output];
  contributeAll(sweep, results, contributionsTo(op.inputs, made, active));
}

function contributionsTo(
  operands: readonly TensorId[],
  made: readonly (Cotangent | undefined)[],
  active: ReadonlySet<TensorId>,
): readonly Contribution[] {
  return operands.flatMap((to, i) => {
    const value = made[i] ?? null;
    return value !== null && active.has(to) ? [{ to, value }] : [];
  });
}

/** If a part has no cotangent, those of the others are added up with zeros around them. */
function reverseTiles(sweep: Sweep, { axis, slices }: Tiles, active: ReadonlySet<TensorId>): void {
  const source = at(at(slices, 0).inputs, 0);
  const outputs = slices.map(({ output }) => output);
  const parts = outputs.flatMap((id) => sweep.cotangents.get(id) ?? []);
  if (parts.length < slices.length) for (const op of slices.toReversed()) reverse(sweep, op, active);
  else if (active.has(source)) contributeAll(sweep, outputs, [{ to: source, value: () => cat(parts, axis) }]);
}

/** Whether a tensor within the composition has a cotangent from elsewhere, or is one of `wrt`. */
function isReadInside({ cotangents, wrt }: Sweep, { marker, made }: MarkedRegion): boolean {
  return made.some((id) => !marker.outputs.includes(id) && (cotangents.has(id) || wrt.has(id)));
}

function reverseComposition<K extends MarkerName>(
  sweep: Sweep,
  marker: Marker<K>,
  active: ReadonlySet<TensorId>,
): void {
  const rule: CompositionVjp<K> | null = compositionVjps[marker.name];
  const g = marker.outputs.map((id) => sweep.cotangents.get(id) ?? null);
  if (rule === null || g.every((each) => each === null)) return;
  const viewed = (id: TensorId): TensorView => view(sweep, id);
  const operands = mapValues(marker.operands, viewed);
  const [outputs, kept] = [marker.outputs.map(viewed), marker.kept.map(viewed)];
  const cotangents = rule({ g, operands, outputs, kept, marker });
  const names = keysIn(operands);
  const made = names.map((name) => cotangents[name]);
  const ids = names.map((name) => operands[name].id);
  contributeAll(sweep, marker.outputs, contributionsTo(ids, made, active));
}

/** Throws `not-differentiable`. */
function rejectFurther(op: Op, output: TensorId, place: Call): never {
  return reject(place, {
    code: "not-differentiable",
    message: `a derivative of T${output} is needed, which is not the first output of its op`,
    found: `${outputsOf(op)
      .map((id) => `T${id}`)
      .join(", ")} = ${op.kind.toLowerCase()}(...)`,
    expected: `derivatives of T${op.output} alone`,
    help: `compute what depends on T${output} from other ops, such as matmul, exp and sum`,
  });
}

/** The parts of a gradient, one for each device of a dimension of the mesh. Throws `bad-argument`. */
function partsOfGradient({ builder, place }: Sweep, g: TensorView, primal: TensorId): TensorView {
  const tensor = at(builder.tensors, primal);
  return gradientParts(builder, g, freeDimension(tensor, place).size) ?? rejectParts(tensor, g, place);
}

// Slices that cut a tensor in parts, as `split` makes them: its cotangent is the cotangents of the parts, one after the
// other, rather than their sum with zeros around each.

interface Tiles {
  /** The axis that is cut. */
  readonly axis: number;
  /** In order of their ranges. */
  readonly slices: readonly SliceOp[];
  /** The first one among the ops: when the sweep reaches it, all parts have their cotangents. */
  readonly first: SliceOp;
}

/** The tiles of each slice that is one of them. Slices of compositions, which have closed forms, are none. */
function tilesOf(
  { ops, tensors }: FusionData,
  regions: ReadonlyMap<TensorId, readonly MarkedRegion[]>,
): ReadonlyMap<Op, Tiles> {
  const composed = new Set([...regions.values()].flatMap((own) => own.flatMap(({ made }) => made)));
  const byInput = new Map<number, SliceOp[]>();
  for (const op of ops) {
    if (op.kind !== "Slice") continue;
    const source = at(op.inputs, 0);
    const list = byInput.get(source);
    if (list) list.push(op);
    else byInput.set(source, [op]);
  }
  const tiles = new Map<Op, Tiles>();
  for (const slices of byInput.values()) {
    const [first] = slices;
    if (first === undefined || slices.length < 2 || slices.some(({ output }) => composed.has(output))) continue;
    const axes = withoutReductions(at(tensors, at(first.inputs, 0)).domain.logical);
    const axis = first.ranges.findIndex((range, i) => !isWholeRange(range, at(axes, i)));
    const cutsOnly = (op: SliceOp): boolean =>
      op.ranges.every((range, i) => (i === axis ? (range.step ?? 1) === 1 : isWholeRange(range, at(axes, i))));
    if (axis < 0 || !slices.every(cutsOnly)) continue;
    const bounds = slices.map((op) => {
      const { start, stop } = at(op.ranges, axis);
      return { op, start: constantValue(start), stop: constantValue(stop) };
    });
    // Bounds that are known only at run time may leave gaps.
    if (bounds.some(({ start, stop }) => start === null || stop === null)) continue;
    const ordered = bounds.toSorted((a, b) => (a.start ?? 0) - (b.start ?? 0));
    const extent = constantValue(at(axes, axis).extent);
    const tile = ordered.every(({ start }, i) => start === (i === 0 ? 0 : at(ordered, i - 1).stop));
    if (!tile || extent === null || at(ordered, ordered.length - 1).stop !== extent) continue;
    const group: Tiles = { axis, slices: ordered.map(({ op }) => op), first };
    for (const op of slices) tiles.set(op, group);
  }
  return tiles;
}

/* Which tensors a derivative reaches, and the diagnostics for those that it does not reach. */

/** The float tensors that depend on `wrt` by ops with rules, or by compositions with rules. */
function activeTensors({ ops, tensors, markers = [] }: FusionData, wrt: readonly TensorId[]): ReadonlySet<TensorId> {
  const operands = new Map<TensorId, readonly TensorId[]>(
    markers.flatMap(({ name, operands: own, outputs }) =>
      compositionVjps[name] === null ? [] : outputs.map((id) => [id, Object.values<TensorId>(own)] as const),
    ),
  );
  const stopped = new Set(markers.flatMap(({ name, outputs }) => (compositionVjps[name] === null ? outputs : [])));
  const reaches = (ids: readonly TensorId[], reached: ReadonlySet<TensorId>): boolean =>
    ids.some((id) => reached.has(id));
  return dependents(
    ops,
    wrt,
    (op, reached) =>
      !stopped.has(op.output) &&
      (reaches(operands.get(op.output) ?? [], reached) || (!isBlocked(op, tensors) && reaches(op.inputs, reached))),
  );
}

function isFloat({ dtype }: Tensor): boolean {
  return dtypes[dtype].family === "float" && isComputed(dtype);
}

/** Whether no derivative passes the op. */
function isBlocked(op: Op, tensors: readonly Tensor[]): boolean {
  const isFlat = op.kind === "Unary" && unaryVjps[op.op] === null;
  return isFlat || isScaled(op) || vjps[op.kind] === null || !isFloat(at(tensors, op.output));
}

function dependents(
  ops: readonly Op[],
  from: readonly TensorId[],
  follows: (op: Op, reached: ReadonlySet<TensorId>) => boolean,
): ReadonlySet<TensorId> {
  const reached = new Set(from);
  for (const op of ops) {
    if (follows(op, reached)) for (const id of outputsOf(op)) reached.add(id);
  }
  return reached;
}

/** Throws `not-differentiable`. */
export function requireFloatTensor(tensor: Tensor, place: Call): void {
  if (isFloat(tensor)) return;
  reject(place, "not-differentiable", `T${tensor.id} is not a tensor of floats`, {
    found: tensor.dtype,
    expected: computedFloats.join(", "),
    help: "differentiate tensors of these dtypes; others have no gradients",
  });
}

/** Null if no tensor of `of` depends on `id`. Otherwise throws `not-differentiable`, with the op that is in the way. */
function requireIndependent(data: FusionData, of: readonly TensorId[], id: TensorId, place: Call): null {
  const { ops, tensors } = data;
  const from = dependents(ops, [id], (op, reached) => op.inputs.some((each) => reached.has(each)));
  if (!of.some((each) => from.has(each))) return null;
  const needed = new Set(of);
  for (const op of ops.toReversed())
    if (outputsOf(op).some((id) => needed.has(id))) for (const input of op.inputs) needed.add(input);
  // The last one of all paths that a derivative reaches: what is before may have other paths.
  const active = activeTensors(data, [id]);
  const blocking = ops.findLast(
    (op) =>
      isBlocked(op, tensors) &&
      outputsOf(op).some((output) => needed.has(output)) &&
      op.inputs.some((input) => active.has(input)),
  );
  invariant(blocking !== undefined, "an op is in the way where a tensor depends on another without a derivative", id);
  const { name, inputs, output } = asWritten(data, blocking);
  const found = `T${output} = ${name}(${inputs.map((input) => `T${input}`).join(", ")})`;
  const about: Diagnostic = { code: "not-differentiable", message: found };
  const { tensors: mentions } = originated(about, tensors);
  return reject(place, "not-differentiable", `no gradient of T${id} passes ${name}`, {
    found,
    expected: "at least one path of differentiable ops",
    help: `leave T${id} out of wrt, or compute the result without this op`,
    ...(mentions === undefined ? {} : { tensors: mentions }),
  });
}

/** The op, or the composition without a derivative that it is part of. */
function asWritten(
  data: FusionData,
  op: Op,
): { readonly name: string; readonly inputs: readonly TensorId[]; readonly output: TensorId } {
  const region = [...markedRegions(data).values()]
    .flat()
    .find(({ marker, made }) => compositionVjps[marker.name] === null && made.includes(op.output));
  if (region === undefined) return { name: opName(op), inputs: op.inputs, output: op.output };
  const { name, operands, outputs } = region.marker;
  return { name, inputs: Object.values<TensorId>(operands), output: at(outputs, 0) };
}

function opName(op: Op): string {
  return "op" in op ? op.op : op.kind.toLowerCase();
}
