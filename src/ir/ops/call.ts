/**
 * The text of an API call for diagnostics (`matmul(T0, T1)`, `sum(T0, [2])`), and the checks of axis numbers that calls
 * share.
 */
import {
  type DiagnosticDetails,
  fail,
  type GivenDiagnostic,
  asDiagnostic,
  type Place,
} from "../../diagnostics/diagnostic.ts";
import { type Tensor, type TensorId, withoutReductions } from "../domain.ts";
import { originated } from "../origin.ts";
import { printScalar } from "../scalar/scalar.ts";

/** `tensors`: the program's tensors by id, whose names a diagnostic adds. */
export type Call = Extract<Place, { kind: "call" }> & { readonly tensors?: readonly Tensor[] };

/** A tensor by number, source text, or a value to print. `undefined` is omitted. */
export type CallArgument =
  { readonly tensor: TensorId } | { readonly code: string } | number | string | readonly unknown[] | null | undefined;

/** The place `name(args)` for diagnostics. Tensors print by name, and `undefined` arguments are omitted. */
export function call(name: string, ...args: readonly CallArgument[]): Call {
  return { kind: "call", text: callText(name, args) };
}

/** The same in a program with these tensors. Only messages read the text, so that it is made for them alone. */
export function callOn(tensors: readonly Tensor[], name: string, args: () => readonly CallArgument[]): Call {
  return {
    kind: "call",
    get text() {
      return callText(name, args());
    },
    tensors,
  };
}

function callText(name: string, args: readonly CallArgument[]): string {
  return `${name}(${args.flatMap((arg) => (arg === undefined ? [] : [argumentText(arg)])).join(", ")})`;
}

export function argumentText(arg: Exclude<CallArgument, undefined>): string {
  if (arg === null) return "null";
  if (typeof arg === "string") return JSON.stringify(arg);
  if (typeof arg === "number") return String(arg);
  if ("tensor" in arg) return `T${arg.tensor}`;
  if ("code" in arg) return arg.code;
  return `[${arg.map(String).join(", ")}]`;
}

/** Throws a diagnostic whose place is the call. */
export function reject(place: Call, ...fault: GivenDiagnostic<Omit<DiagnosticDetails, "place">>): never {
  const { kind, text, tensors = [] } = place;
  return fail(originated({ ...asDiagnostic(fault), place: { kind, text } }, tensors));
}

/** `T0[4, i2]`: the tensor's axes at run time. */
export function shapeText(tensor: Tensor): string {
  const extents = withoutReductions(tensor.domain.logical).map((axis) => printScalar(axis.extent));
  return `T${tensor.id}[${extents.join(", ")}]`;
}

/** The number of axes at run time. */
export function rankOf(tensor: Tensor): number {
  return withoutReductions(tensor.domain.logical).length;
}

/** The axis number counted from 0; a negative `axis` counts from the end. Throws `axis-out-of-range`. */
export function resolveAxis(axis: number, rank: number, place: Call): number {
  if (Number.isSafeInteger(axis) && axis >= -rank && axis < rank) return axis < 0 ? axis + rank : axis;
  return reject(place, "axis-out-of-range", `axis ${axis} does not exist`, {
    found: `axis ${axis} of a tensor with ${rank} ${rank === 1 ? "axis" : "axes"}`,
    expected: rank === 0 ? "no axis: the tensor is a scalar" : `a whole number from ${-rank} to ${rank - 1}`,
    help: "count from 0, or from -1 at the end",
  });
}

/** Distinct axis numbers counted from 0, in the given order. Throws `axis-out-of-range`, `axis-repeated`. */
export function resolveAxes(axes: readonly number[], rank: number, place: Call): readonly number[] {
  const resolved = axes.map((axis) => resolveAxis(axis, rank, place));
  const repeated = resolved.find((axis, i) => resolved.indexOf(axis) !== i);
  if (repeated === undefined) return resolved;
  return reject(place, "axis-repeated", `axis ${repeated} is named twice`, {
    found: `[${axes.join(", ")}]`,
    expected: "each axis at most once",
    help: `remove one of the two${axes.some((axis) => axis < 0) ? "; negative numbers count from the end" : ""}`,
  });
}

/** Returns `extent` if it is a number of elements, at least `least`. Throws `bad-extent`. */
export function requireExtent(extent: number, place: Call, least: 0 | 1 = 0): number {
  if (Number.isSafeInteger(extent) && extent >= least) return extent;
  const tooLarge = extent > Number.MAX_SAFE_INTEGER;
  return reject(place, {
    code: "bad-extent",
    message: tooLarge ? "an extent is too large" : `an extent is not a whole number of at least ${least}`,
    found: String(extent),
    expected: tooLarge ? "a whole number of at most 2^53 - 1" : `a whole number of at least ${least}`,
    help: tooLarge
      ? "choose a smaller size"
      : extent > 0
        ? "round it, or choose sizes that divide"
        : "choose a positive size",
  });
}
