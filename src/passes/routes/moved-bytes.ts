/**
 * What a few ops make devices receive, by lowering these ops alone: the measure by which ways to share an op are
 * compared.
 */
import type { Tensor, TensorId } from "../../ir/domain.ts";
import type { FusionData } from "../../ir/fusion-data.ts";
import { type Op, outputsOf } from "../../ir/ops/op.ts";
import { makeId } from "../../support/ids.ts";
import { at } from "../../support/invariant.ts";
import type { LoweringOptions } from "../options.ts";
import { type Decisions, routeOps } from "./route-ops.ts";
import { bytesOf, receivedFraction } from "./steps/bytes.ts";
import { opStep } from "./steps/step.ts";

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
  const renamed = ops.map((op): Op => ({
    ...op,
    inputs: op.inputs.map(idOf),
    output: idOf(op.output),
    ...(op.further === undefined ? {} : { further: op.further.map(idOf) }),
  }));
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
  const { ops, tensors } = routeOps(fusion, options, decisions);
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
