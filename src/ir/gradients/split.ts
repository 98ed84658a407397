/**
 * Cuts a Fusion with its backward pass in two. A tensor of the forward pass that the backward pass reads is saved, or
 * the ops that make it run again in the backward pass, from what is saved or from inputs.
 */
import { invariant } from "../../support/invariant.ts";
import type { TensorId } from "../domain.ts";
import type { FusionData } from "../fusion-data.ts";
import { type Op, type OpKind, outputsOf } from "../ops/op.ts";
import { rowOf } from "../ops/rows.ts";

/** A Fusion with its backward pass. */
export interface Joint {
  readonly data: FusionData;
  /** How many tensors the forward pass has. */
  readonly known: number;
  readonly gradients: readonly TensorId[];
}

export interface BackwardPart {
  /** Of the backward pass, in order: ops of the forward pass that run again, then those of the cotangents. */
  readonly ops: readonly Op[];
  /** The inputs of the Fusion that the backward pass reads. */
  readonly inputs: readonly TensorId[];
  readonly saved: readonly TensorId[];
}

/** Whether a tensor of the forward pass, of which `op` is the producer, is saved. */
export type Saves = (op: Op) => boolean;

/** The kinds of ops that are not worth running again. */
const contractions: ReadonlySet<OpKind> = new Set(["Matmul", "Linear", "Sdpa"]);

export const savePolicies = {
  /** Whatever the backward pass reads but views and casts: these cost no more than to read what is saved. */
  all: (op) => !rowOf(op).isView && op.kind !== "Cast",
  /** Results of contractions. */
  minimal: ({ kind }) => contractions.has(kind),
} as const satisfies Readonly<Record<string, Saves>>;

export function backwardPart({ data, known, gradients }: Joint, saves: Saves): BackwardPart {
  const producers = new Map(data.ops.flatMap((op) => outputsOf(op).map((id) => [id, op] as const)));
  const inputs = new Set(data.inputs);
  const read = new Set<TensorId>(gradients);
  const saved = new Set<TensorId>();
  for (const id of read) {
    const op = producers.get(id);
    if (op === undefined) {
      invariant(inputs.has(id), "a tensor is an input or made by an op", id);
    } else if (id < known && saves(op)) {
      saved.add(id);
    } else {
      for (const input of op.inputs) read.add(input);
    }
  }
  return {
    ops: lateOrder(
      data.ops.filter((op) => outputsOf(op).some((id) => read.has(id) && !saved.has(id))),
      known,
    ),
    inputs: data.inputs.filter((id) => read.has(id)),
    saved: data.ops.flatMap((op) => outputsOf(op).filter((id) => saved.has(id))),
  };
}

/** The ops of the forward pass as late as those of the backward pass allow, so that their results live shortly. */
function lateOrder(ops: readonly Op[], known: number): readonly Op[] {
  const again = new Map(ops.flatMap((op) => (op.output < known ? outputsOf(op).map((id) => [id, op] as const) : [])));
  const ordered = new Set<Op>();
  for (const op of ops) {
    if (op.output < known) continue;
    // A stack, because a program may be deeper than recursion.
    const open = [op];
    for (let next = open.at(-1); next !== undefined; next = open.at(-1)) {
      const missing = next.inputs.flatMap((id) => again.get(id) ?? []).filter((each) => !ordered.has(each));
      open.push(...missing.toReversed());
      if (missing.length > 0) continue;
      ordered.add(next);
      open.pop();
    }
  }
  return [...ordered];
}

/** The ops of the forward pass that may run again, if nothing is saved: those on which the gradients depend. */
export function rerunnable(joint: Joint): readonly Op[] {
  return backwardPart(joint, () => false).ops.filter(({ output }) => output < joint.known);
}
