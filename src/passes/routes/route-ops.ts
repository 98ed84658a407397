/**
 * Routes the ops of a Fusion one after the other. Each op says how its operands lie for it (place-op.ts,
 * split-over-devices.ts), what lies otherwise is moved there (move.ts), and what the op leaves to be added is reduced over the
 * devices (split-over-devices.ts).
 */
import { type TensorId, withoutReductions } from "../../ir/domain.ts";
import { type FusionData, readersOf, readOnceOf } from "../../ir/fusion-data.ts";
import { layoutOf, sameLayout } from "../../ir/layout.ts";
import { axisMap, partialAxes } from "../../ir/ops/axis-map.ts";
import { type ContractionOp, isContraction, type Op, type ReductionOp } from "../../ir/ops/op.ts";
import { streamPart } from "../../ir/stream.ts";
import { at } from "../../support/invariant.ts";
import { editFusion } from "../edit/tensor-edit.ts";
import type { LoweringOptions } from "../options.ts";
import { isSumOverDevices, mergeSums } from "./merge-sums.ts";
import { addMoved, addReduction, maybeSource, moveInto, type Streamed } from "./move.ts";
import { viewPartialSums } from "./partial-views.ts";
import { placeOp } from "./place-op.ts";
import { endOf, read, reading, type Routing, unrouted } from "./routing.ts";
import { isCommunicable, sameMesh } from "./sharding.ts";
import { sharedPlaces, splitOverDevices } from "./split-over-devices.ts";

/** What is known or decided before ops are routed. */
export interface Decisions {
  readonly decide?: (routing: Routing, op: Op, written: Op) => void;
  /** See late-sums.ts. */
  readonly late?: readonly TensorId[];
  /** See weigh-ops.ts. */
  readonly follows?: ReadonlyMap<TensorId, number>;
}

export function routeOps(
  fusion: FusionData,
  options: LoweringOptions,
  { decide, late = [], follows = new Map() }: Decisions,
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
    late: new Set(late),
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
    else if (!options.nvfuserLimits && !mergeSums(routing, op)) viewPartialSums(routing, op);
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
