/**
 * Decides where an op whose operands would move is computed. Moving them is one way. Two others, of which the one that
 * costs least is taken if it costs less:
 *
 *   the result is computed where one of several operands lies, and moved
 *     y[_, DIDx M, N] = matmul(x[DIDx E, M, K], w[DIDx E, K, N])   ->   T3[DIDx E, M, N] = matmul(x, w); y = set(T3)
 *
 *   devices share the contracted axis of a matmul or linear, and reduce its partial results
 *     y[DIDx M, N] = matmul(x[DIDx M, K], w[DIDx K, N]), M small   ->   y[DIDx M, N, rDIDx K] = matmul(x, w)
 *
 * The first is place-op.ts's. For the second split-over-devices.ts exchanges x for x[M, DIDx K], and a ReduceScatter gives
 * y, where w would be gathered; a type on the reduced axis of the output says so, as nvFuser's propagation writes it. All
 * ways are lowered and their bytes compared. Extents must be numbers.
 */
import { isDID, type Tensor, type TensorId, withoutReductions } from "../../ir/domain.ts";
import { type FusionData, readOnceOf, readersOf } from "../../ir/fusion-data.ts";
import { axisMap, partialAxes } from "../../ir/ops/axis-map.ts";
import { type ContractionOp, isContraction, type Op, outputsOf, renamedOp, type ReductionOp } from "../../ir/ops/op.ts";
import { cutOf, isCut, withTypes } from "../../ir/parts.ts";
import { streamAxis, streamPart } from "../../ir/stream.ts";
import type { DType } from "../../numerics/dtype.ts";
import { makeId, at } from "../../support/invariant.ts";
import { type ModelledAxis, redomain, type TensorEdit, editFusion } from "../edit/tensor-edit.ts";
import type { LoweringOptions } from "../options.ts";
import { referenceOperand, placeOp } from "./place-op.ts";
import { type Routing, endOf, read, reading, unrouted } from "./routing.ts";
import { type OperandChange, reshardedOperands, sameMesh, isCommunicable } from "./layouts.ts";
import { sharedPlaces, splitOverDevices } from "./split-over-devices.ts";
import { bytesOf, receivedFraction } from "./steps/bytes.ts";
import { opStep } from "./steps/step.ts";
import { layoutOf, sameLayout } from "../../ir/layout.ts";
import { isSumOverDevices, mergeSums } from "./merge-sums.ts";
import { addMoved, addReduction, maybeSource, moveInto, type Streamed } from "./move.ts";
import { computeOnParts } from "./partial-views.ts";

/** The result with DID types on its reduced axis, or the operand where it is computed. */
type Way = { readonly kind: "share"; readonly output: Tensor } | { readonly kind: "follow"; readonly operand: number };

/** Gives the function that weighs an op of the Fusion. `written`: as it is in the Fusion. */
export function weighing(fusion: FusionData): (routing: Routing, op: Op, written: Op) => void {
  const hasOneReader = oneReader(fusion);
  return (routing, op, written) => {
    if (op.further !== undefined) return;
    // What others need as well is gathered anyway.
    const moved = reshardedOperands(op, routing.tensors);
    if (moved.length === 0 || !moved.every(({ operand }) => hasOneReader(at(written.inputs, operand)))) return;
    const way = cheapestWay(routing, op, moved);
    if (way?.kind === "share") routing.tensors[op.output] = way.output;
    else if (way !== null) routing.follows.set(op.output, way.operand);
  };
}

/** Whether one op alone reads a tensor, and what the tensor is a view of. */
function oneReader(fusion: FusionData): (id: TensorId) => boolean {
  const readOnce = readOnceOf(fusion);
  const producers = new Map(fusion.ops.map((op) => [op.output, op]));
  const hasOne = (id: TensorId): boolean => {
    const producer = producers.get(id);
    const isView = producer?.kind === "Reshape" || producer?.kind === "Permute" || producer?.kind === "Set";
    return readOnce.has(id) && (!isView || hasOne(at(producer.inputs, 0)));
  };
  return hasOne;
}

/** Null if no way costs less than to move the operands. */
function cheapestWay(routing: Routing, op: Op, moved: readonly OperandChange[]): Way | null {
  const { tensors, fusion, options } = routing;
  const output = at(tensors, op.output);
  if (output.mesh === null) return null;
  if (isContraction(op) && sharedPlaces(op, tensors) !== null) return null;
  // A loop over chunks hides what moves.
  if ([...op.inputs, op.output].some((id) => streamAxis(at(tensors, id)) !== null)) return null;
  const ways: readonly Way[] = [
    ...(isContraction(op) ? waysToShare(op, routing, output) : []).map((shared): Way => ({
      kind: "share",
      output: shared,
    })),
    // A gather of one operand is what a user asks for who annotates the result of a contraction so.
    ...(moved.length > 1 ? moved : [])
      .filter((change) => referenceOperand(op, change, tensors) !== null)
      .map(({ operand }): Way => ({ kind: "follow", operand })),
  ];
  const given = ways.length === 0 ? null : movesOf(excerpt(fusion, [op], tensors), options);
  if (given === null) return null;
  let best: { readonly way: Way | null; readonly moves: Moves } = { way: null, moves: given };
  for (const way of ways) {
    const moves = movesBy(way, routing, op);
    const isCheaper = moves !== null && moves.bytes <= given.bytes && costOf(moves) < costOf(best.moves);
    if (isCheaper) best = { way, moves };
  }
  return best.way;
}

function movesBy(way: Way, { tensors, fusion, iterDomainCount, options }: Routing, op: Op): Moves | null {
  if (way.kind === "share") {
    const shared = excerpt(fusion, [op], tensors.with(op.output, way.output));
    return movesOf({ ...shared, iterDomainCount }, options);
  }
  const alone = excerpt(fusion, [op], tensors);
  const follows = new Map(alone.outputs.map((id) => [id, way.operand]));
  return movesOf({ ...alone, iterDomainCount }, options, { follows });
}

/** The output with its contracted axis cut as each operand has it. */
function waysToShare(op: ContractionOp, edit: TensorEdit, output: Tensor): readonly Tensor[] {
  const pairs = axisMap(op, edit.tensors).filter(({ consumer }) => consumer.iterType === "reduction");
  return pairs.flatMap(({ operand, producer, consumer }): readonly Tensor[] => {
    const source = at(edit.tensors, at(op.inputs, operand));
    if (!sameMesh(source.mesh, output.mesh)) return [];
    const model = withTypes(cutOf(source.domain, producer), isDID);
    if (!isCut(model)) return [];
    const axes = output.domain.logical.map((axis): ModelledAxis =>
      axis.id === consumer.id ? { axis, model } : { axis, model: cutOf(output.domain, axis) },
    );
    redomain(edit, output, axes);
    const made = at(edit.tensors, output.id);
    edit.tensors[output.id] = output;
    return [made];
  });
}

// What a few ops make devices receive, by lowering these ops alone: the measure by which ways to share an op are
// compared.

/** Bytes of the device that receives most, and the number of communications. */
export interface Moves {
  readonly bytes: number;
  readonly steps: number;
}

/**
 * 10 us at 200 GB/s: a communication costs as much as this many bytes, on any machine, so that a program lowers the same
 * everywhere.
 */
const bytesPerStep = 2 ** 21;

export function costOf({ bytes, steps }: Moves): number {
  return bytes + steps * bytesPerStep;
}

/** The Fusion of the given ops alone, in their order. `tensors` may have other versions of what they read and make. */
export function excerpt(fusion: FusionData, ops: readonly Op[], tensors: readonly Tensor[]): FusionData {
  const ids = new Map<TensorId, TensorId>();
  const taken: Tensor[] = [];
  const idOf = (id: TensorId): TensorId => {
    const known = ids.get(id);
    if (known !== undefined) return known;
    const own = makeId<TensorId>(taken.length);
    ids.set(id, own);
    taken.push({ ...at(tensors, id), id: own });
    return own;
  };
  const made = new Set(ops.flatMap(outputsOf));
  const renamed = ops.map((op) => renamedOp(op, idOf));
  const read = new Set(ops.flatMap(({ inputs }) => inputs));
  return {
    kind: "Fusion",
    tensors: taken,
    ops: renamed,
    inputs: [...read].filter((id) => !made.has(id)).map(idOf),
    outputs: [...made].filter((id) => !read.has(id)).map(idOf),
    iterDomainCount: fusion.iterDomainCount,
    scalarCount: fusion.scalarCount,
  };
}

/** Null if a size is not a number. */
export function movesOf(fusion: FusionData, options: LoweringOptions, decisions: Decisions = {}): Moves | null {
  return movesIn(routeOps(fusion, options, decisions), options);
}

/** Of a routed Fusion. */
export function movesIn({ ops, tensors }: FusionData, options: LoweringOptions): Moves | null {
  let bytes = 0;
  let count = 0;
  for (const op of ops) {
    const own = opStep(op, tensors, options.nvfuserLimits);
    if (own === null) continue;
    const received = bytesOf(receivedFraction(own.step, own.from, own.to), at(tensors, op.output));
    if (received === null) return null;
    bytes += received;
    count += 1;
  }
  return { bytes, steps: count };
}

/** What is known or decided before ops are routed. */
export interface Decisions {
  readonly decide?: (routing: Routing, op: Op, written: Op) => void;
  /** See insert-routes.ts. */
  readonly late?: ReadonlyMap<TensorId, DType>;
  /** See weigh-ops.ts. */
  readonly follows?: ReadonlyMap<TensorId, number>;
}

/**
 * Routes the ops of a Fusion one after the other. Each op says how its operands lie for it (place-op.ts,
 * split-over-devices.ts), what lies otherwise is moved there (move.ts), and what the op leaves to be added is reduced
 * over the devices (split-over-devices.ts).
 */
export function routeOps(
  fusion: FusionData,
  options: LoweringOptions,
  { decide, late = new Map(), follows = new Map() }: Decisions,
): FusionData {
  const routing: Routing = {
    ...editFusion(fusion),
    position: 0,
    fusion,
    readers: readersOf(fusion),
    options,
    waiting: new Map(),
    ends: new Map(),
    moved: new Map(),
    readOnce: new Set(readOnceOf(fusion)),
    outputs: new Set(fusion.outputs),
    late: new Map(late),
    follows: new Map(follows),
    route: (op) => {
      routeOp(routing, withEnds(routing, op));
    },
  };
  const places = fusion.ops.map((op, position): readonly Op[] => {
    routing.position = position;
    routing.ops = [];
    if (op.inputs.length > 1) decide?.(routing, withEnds(routing, op), op);
    addOp(routing, op);
    return routing.ops;
  });
  const outputs = fusion.outputs.map((id) => read(routing, id));
  const ops = places.flat();
  const isSame = ops.length === fusion.ops.length && ops.every((op, i) => op === fusion.ops[i]);
  const { tensors, iterDomainCount } = routing;
  return isSame ? fusion : { ...fusion, tensors, ops, outputs, iterDomainCount };
}

/** Routes the op, or lets it wait. */
function addOp(routing: Routing, written: Op): void {
  const { waiting, ops, position, options, outputs } = routing;
  const op = withEnds(routing, written);
  const mayWait = !options.nvfuserLimits && !outputs.has(op.output);
  if (mayWait && (isSumOverDevices(routing, op) || maybeSource(routing, op)))
    waiting.set(op.output, { op, ops, position });
  else routeOp(routing, op);
}

function routeOp(routing: Routing, op: Op): void {
  const { tensors, options, fusion, readOnce } = routing;
  if (op.kind === "Set") return moveInto(routing, op);
  const shared = sharedOp(routing, op);
  const parts = unrouted(routing, () => {
    if (shared !== null) splitOverDevices(routing, shared);
    else if (!options.nvfuserLimits && !mergeSums(routing, op)) computeOnParts(routing, op);
  });
  for (const part of parts) {
    if (part.output >= fusion.tensors.length) readOnce.add(part.output);
    addOp(routing, part);
  }
  if (parts.length > 0) return;
  if ((op.kind === "Reduction" || op.kind === "Squeeze") && isCommunicable(op, tensors)) addReduction(routing, op);
  else for (const set of placeOp(routing, op)) addOp(routing, set);
}

/** An op that devices share, with operands that lie for it; null for other ops. */
function sharedOp(routing: Routing, op: Op): ReductionOp | ContractionOp | null {
  const { tensors } = routing;
  if (op.kind !== "Reduction" && !isContraction(op)) return null;
  // One of partial results is such a part.
  const places = partialAxes(op, tensors).length > 0 ? null : sharedPlaces(op, tensors);
  if (places === null) return null;
  return reading(op, (id, operand) => {
    const place = places[operand];
    const own = layoutOf(at(tensors, id));
    const isThere = place === undefined || (own !== null && sameLayout(own, place));
    if (isThere) return id;
    // Its other axes may be cut otherwise: it waits for that.
    const copy = addMoved(routing, at(tensors, id), { place, stream: operandStream(routing, op, operand) });
    routing.readOnce.add(copy);
    addOp(routing, { kind: "Set", inputs: [id], output: copy });
    return copy;
  });
}

/** The chunks of the op's output along an axis of the operand that it keeps: chunks move to another mesh one by one. */
function operandStream({ tensors, options }: Routing, op: Op, operand: number): Streamed | null {
  const part = streamPart(at(tensors, op.output));
  const source = at(tensors, at(op.inputs, operand));
  if (part === null || options.nvfuserLimits || sameMesh(source.mesh, at(tensors, op.output).mesh)) return null;
  const pair = axisMap(op, tensors).find((each) => {
    return each.operand === operand && !each.broadcast && each.consumer.id === part.axis.id;
  });
  const number = withoutReductions(source.domain.logical).findIndex(({ id }) => id === pair?.producer.id);
  return number < 0 ? null : { number, part };
}

function withEnds<T extends Op>(routing: Routing, op: T): T {
  return reading(op, (id) => endOf(routing, id, op));
}
