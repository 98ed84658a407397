/** The internals of an API handle. The package does not export the key, so users see only the handle's methods. */
import { at } from "../../support/invariant.ts";
import { type Call, reject } from "../ops/call.ts";
import type { Tensor, TensorId } from "../domain.ts";
import { spokenName } from "../origin.ts";
import type { FusionBuilder } from "./fusion-builder.ts";

export const internals: unique symbol = Symbol("braid.internals");

/** The state behind a Fusion. */
export const fusionState: unique symbol = Symbol("braid.fusion-state");

/** The tensor of an axis handle. */
export const axisOwner: unique symbol = Symbol("braid.axis");

export interface TensorInternals {
  readonly builder: FusionBuilder;
  readonly id: TensorId;
}

export interface TensorHandle {
  readonly [internals]: TensorInternals;
}

export function tensorOf({ [internals]: { builder, id } }: TensorHandle): Tensor {
  return at(builder.tensors, id);
}

/**
 * The builder that all operands share. Throws `foreign-tensor`, and `bad-argument` for a value that is not a tensor.
 */
export function commonBuilder(operands: readonly TensorHandle[], place: Call): FusionBuilder {
  const { builder } = at(operands, 0)[internals];
  operands.forEach((operand, i) => {
    requireOwner(operand, builder, `operand ${i}`, place);
  });
  return builder;
}

type ShownTensor = { readonly tensor: TensorId } | { readonly code: string };

/** A tensor in the text of a call. Numbers are those of the call's program: a tensor of another one has its name. */
export function argumentOf(tensor: TensorHandle, builder: FusionBuilder): ShownTensor {
  const { builder: own, id } = tensor[internals];
  return own === builder ? { tensor: id } : { code: foreignText(tensor, "program") };
}

/** `x of another Fusion` */
export function foreignText(tensor: TensorHandle, program: "Fusion" | "program"): string {
  return `${spokenName(tensorOf(tensor)) ?? "a tensor"} of another ${program}`;
}

/** Throws `foreign-tensor`. */
export function requireOwner(tensor: TensorHandle, builder: FusionBuilder, what: string, place: Call): void {
  if (tensor[internals].builder === builder) return;
  reject(place, "foreign-tensor", `${what} belongs to another Fusion`, {
    found: foreignText(tensor, "Fusion"),
    expected: "tensors of one Fusion",
    help: "make it an input of this Fusion",
  });
}

/** Checks operands of calls from JavaScript: each must be a tensor of this copy of Braid. Throws `bad-argument`. */
export function requireTensor(value: unknown, name: string, position: number): asserts value is TensorHandle {
  if (typeof value === "object" && value !== null && internals in value) return;
  reject({ kind: "call", text: `${name}(...)` }, "bad-argument", `operand ${position} of ${name} is not a tensor`, {
    found: value === null ? "null" : Array.isArray(value) ? "an array" : typeof value,
    expected: "a TensorView: an input of a Fusion or the result of an op",
    help:
      value === null
        ? "check for null: gradients() returns it for a tensor that the result does not depend on"
        : "make it with fusion.input()",
  });
}
