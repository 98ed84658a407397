/**
 * Reverse mode: one sweep from outputs to inputs over the ops between `wrt` and `of`. The contributions to a cotangent
 * are added in the order of the sweep, so that the bits do not depend on anything else.
 *
 * A cotangent has the dtype of its primal, and its placement if the user gave one. What is not placed follows by
 * propagation (passes/propagate).
 */
import { at } from "../../support/invariant.ts";
import { keysIn, mapValues } from "../../support/keys-of.ts";
import { builderFrom, snapshotFusion } from "../api/builder-data.ts";
import { type FusionBuilder, nameTensor, replaceTensor } from "../api/fusion-builder.ts";
import { add, cat, set } from "../api/ops.ts";
import { TensorView } from "../api/tensor-view.ts";
import { isDID, type Tensor, type TensorId } from "../domain.ts";
import { shardsOf } from "../shards.ts";
import type { Derivation } from "../derivation.ts";
import type { FusionData } from "../fusion-data.ts";
import { axisMap } from "../ops/axis-map.ts";
import { type Call, reject } from "../ops/call.ts";
import { type Op, outputsOf } from "../ops/op.ts";
import { parallelizeAxis } from "../transforms.ts";
import type { Marker, MarkerName } from "../marker.ts";
import { type CompositionVjp, compositionVjps } from "./compositions.ts";
import { freeType, partsOf, rejectParts } from "./partial.ts";
import { type Region, regionsOf } from "./regions.ts";
import { placedLike, placementOf } from "./place.ts";
import { vjps } from "./rules.ts";
import { filled } from "./shapes.ts";
import { activeTensors, requireFloat, requireIndependent } from "./reach.ts";
import { type Tiles, tilesOf } from "./tiles.ts";
import type { Vjp } from "./vjp.ts";

export interface Differentiation extends Pick<Derivation, "of" | "cotangents" | "wrt"> {
  /** Those of `wrt` whose gradients stay parts of the devices. */
  readonly partial: readonly TensorId[];
}

export interface Differentiated {
  /** The Fusion with the ops of the backward pass behind its own. */
  readonly data: FusionData;
  /** One per `wrt`: null if no `of` depends on it. No two are the same tensor, and none is an input. */
  readonly gradients: readonly (TensorId | null)[];
}

/** The caller has checked the cotangents. Throws `not-differentiable`. */
export function differentiate(data: FusionData, request: Differentiation, place: Call): Differentiated {
  for (const id of [...request.of, ...request.wrt]) requireFloat(at(data.tensors, id), place);
  const active = activeTensors(data, request.wrt);
  const sweep: Sweep = {
    builder: builderFrom(data),
    known: data.tensors.length,
    cotangents: new Map(),
    wrt: new Set(request.wrt),
    sums: sumsOverDevices(data),
    place,
  };
  request.of.forEach((id, i) => {
    const given = at(request.cotangents, i);
    if (active.has(id)) contribute(sweep, id, given === null ? filled(view(sweep, id), [], 1) : view(sweep, given));
  });
  const regions = regionsOf(data);
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
    const g = placedCotangent(sweep, id);
    if (g === null) return requireIndependent(data, request.of, id, place);
    if (request.partial.includes(id)) return placedParts(sweep, g, id).id;
    const own = isNew(sweep, g) && !taken.has(g.id) ? g : placeLike(sweep, set(g), id);
    taken.add(own.id);
    return own.id;
  });
  request.wrt.forEach((id, i) => nameGradient(sweep, id, at(gradients, i)));
  for (const [id, g] of sweep.cotangents) nameGradient(sweep, id, g.id);
  const { of, cotangents, wrt } = request;
  sweep.builder.derivations.push({ of, cotangents, wrt, gradients });
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
  /** Tensors whose cotangents their contractions need in full. */
  readonly sums: ReadonlySet<TensorId>;
  readonly place: Call;
}

function view({ builder }: Sweep, id: TensorId): TensorView {
  return new TensorView({ builder, id });
}

function contribute(sweep: Sweep, id: TensorId, value: TensorView): void {
  const sum = sweep.cotangents.get(id);
  sweep.cotangents.set(id, sum === undefined ? value : add(sum, value));
}

function reverse(sweep: Sweep, op: Op, active: ReadonlySet<TensorId>): void {
  const rule: Vjp<Op> | null = vjps[op.kind];
  // A set changes the placement, which is not that of its output then, but of its input.
  const isPassedOn = op.kind === "Set" && !sweep.wrt.has(op.output);
  const g = isPassedOn ? (sweep.cotangents.get(op.output) ?? null) : placedCotangent(sweep, op.output);
  const other = op.further?.find((id) => sweep.cotangents.has(id));
  if (other !== undefined) rejectFurther(op, other, sweep.place);
  if (g === null || rule === null) return;
  const operands = op.inputs.map((id) => view(sweep, id));
  const outputs = outputsOf(op).map((id) => view(sweep, id));
  rule(op, { g, operands, output: view(sweep, op.output), outputs }).forEach((cotangent, operand) => {
    const id = at(op.inputs, operand);
    if (cotangent !== null && active.has(id)) contribute(sweep, id, cotangent());
  });
}

/** If a part has no cotangent, those of the others are added up with zeros around them. */
function reverseTiles(sweep: Sweep, { axis, slices }: Tiles, active: ReadonlySet<TensorId>): void {
  const source = at(at(slices, 0).inputs, 0);
  const parts = slices.map(({ output }) => placedCotangent(sweep, output));
  const made = parts.flatMap((part) => (part === null ? [] : [part]));
  if (made.length < parts.length) for (const op of slices.toReversed()) reverse(sweep, op, active);
  else if (active.has(source)) contribute(sweep, source, cat(made, axis));
}

/** Whether a tensor within the composition has a cotangent from elsewhere, or is one of `wrt`. */
function isReadInside({ cotangents, wrt }: Sweep, { marker, made }: Region): boolean {
  return made.some((id) => !marker.outputs.includes(id) && (cotangents.has(id) || wrt.has(id)));
}

function reverseComposition<K extends MarkerName>(
  sweep: Sweep,
  marker: Marker<K>,
  active: ReadonlySet<TensorId>,
): void {
  const rule: CompositionVjp<K> | null = compositionVjps[marker.name];
  const g = marker.outputs.map((id) => placedCotangent(sweep, id));
  if (rule === null || g.every((each) => each === null)) return;
  const viewed = (id: TensorId): TensorView => view(sweep, id);
  const operands = mapValues(marker.operands, viewed);
  const [outputs, kept] = [marker.outputs.map(viewed), marker.kept.map(viewed)];
  const cotangents = rule({ g, operands, outputs, kept, marker });
  for (const name of keysIn(operands)) {
    const [{ id }, cotangent] = [operands[name], cotangents[name]];
    if (cotangent !== null && active.has(id)) contribute(sweep, id, cotangent());
  }
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

/**
 * The cotangent of a tensor to which all its readers have contributed, placed like the tensor. One that every device has
 * in full stays so for a sum over the devices: the gradients of a row-parallel linear would gather it.
 */
function placedCotangent(sweep: Sweep, primal: TensorId): TensorView | null {
  const g = sweep.cotangents.get(primal);
  if (g === undefined) return null;
  const tensor = at(sweep.builder.tensors, primal);
  const placement = placementOf(tensor);
  if (placement === null || placementOf(g.data()) === placement) return g;
  if (!sweep.wrt.has(primal) && sweep.sums.has(primal) && isWholeOn(g.data(), tensor.mesh)) return g;
  const placed = placeLike(sweep, isNew(sweep, g) && g.mesh === null ? g : set(g), primal);
  sweep.cotangents.set(primal, placed);
  return placed;
}

/** Tensors that are, perhaps by sets and additions, results of a contraction along an axis that devices share. */
function sumsOverDevices({ ops, tensors }: FusionData): ReadonlySet<TensorId> {
  const sums = new Set<TensorId>();
  for (const op of ops) {
    const isSum =
      op.kind === "Set" || (op.kind === "Binary" && op.op === "add")
        ? op.inputs.some((input) => sums.has(input))
        : (op.kind === "Linear" || op.kind === "Matmul") && contractsShares(op, tensors);
    if (isSum) sums.add(op.output);
  }
  return sums;
}

function contractsShares(op: Op, tensors: readonly Tensor[]): boolean {
  return axisMap(op, tensors).some(
    ({ operand, producer, consumer }) =>
      consumer.iterType === "reduction" &&
      shardsOf(at(tensors, at(op.inputs, operand))).some(({ axis }) => axis.id === producer.id),
  );
}

function isWholeOn({ domain, mesh }: Tensor, devices: Tensor["mesh"]): boolean {
  if (mesh === null || devices === null || !mesh.equals(devices)) return false;
  return !domain.loop.some(({ parallelType }) => isDID(parallelType));
}

function isNew({ known }: Sweep, { id }: TensorView): boolean {
  return id >= known;
}

/** The parts of a gradient, each on the device that computes it. Throws `bad-argument`. */
function placedParts(sweep: Sweep, g: TensorView, primal: TensorId): TensorView {
  const { builder, place } = sweep;
  const tensor = at(builder.tensors, primal);
  const type = freeType(tensor, place);
  const parts = partsOf(builder, g, tensor.mesh?.size(type) ?? 1);
  if (parts === null) return rejectParts(tensor, g, place);
  placeLike(sweep, parts, primal, 1);
  replaceTensor(builder, parallelizeAxis(parts.data(), at(parts.data().domain.logical, 0).id, type, place));
  return parts;
}

/** Places `g`, which has no placement, like the tensor. */
function placeLike({ builder, place }: Sweep, g: TensorView, primal: TensorId, added = 0): TensorView {
  const newIds = (count: number): number => {
    builder.iterDomainCount += count;
    return builder.iterDomainCount - count;
  };
  replaceTensor(builder, placedLike(g.data(), at(builder.tensors, primal), newIds, place, added));
  return g;
}
