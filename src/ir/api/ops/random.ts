/** Random numbers by counting, which no sharding, chunk or schedule changes. */
import { type Call, call, callOn, type CallArgument, reject, requireExtent } from "../../ops/call.ts";
import { requireTaken } from "../../ops/dtype-rules.ts";
import type { RandomForm } from "../../ops/functions/philox.ts";
import { foldProduct } from "../../scalar/fold.ts";
import { constant } from "../../scalar/scalar.ts";
import { iotaSpec } from "../../ops/kinds/creation.ts";
import { type Extent, extentText } from "../extent.ts";
import type { FusionBuilder } from "../fusion-builder.ts";
import { argumentOf, commonBuilder, internals, requireTensor } from "../handle.ts";
import type { TensorView } from "../tensor-view.ts";
import { apply, applyIn, castTo, extentsIn } from "./apply.ts";
import { mark } from "./compositions/compose.ts";
import { div, mul } from "./elementwise.ts";

/** How random numbers are counted. */
export interface RandomOptions {
  /** Tells ops of one seed apart. By default, how many ops with random numbers the Fusion has. */
  readonly offset?: number;
}

/**
 * Random words as int, by Philox 4x32-10. A word depends on the seed, the offset and the row-major index of its element
 * in the whole tensor. `seed` is an int64 tensor without axes, such as `fusion.input([], "int64")`. Throws
 * `bad-argument`, `bad-extent`, `dtype-mismatch`, `shape-mismatch`, `foreign-tensor`.
 */
export function randomBits(seed: TensorView, shape: readonly Extent[], options?: RandomOptions): TensorView {
  return random("randomBits", seed, shape, options, { kind: "bits" }).view;
}

/** Random floats in [0, 1): multiples of 2^-24. Errors as in `randomBits`. */
export function uniform(seed: TensorView, shape: readonly Extent[], options?: RandomOptions): TensorView {
  return random("uniform", seed, shape, options, { kind: "uniform" }).view;
}

/**
 * Zeros each element with probability `p`, and divides the others by 1 - p. An element stays if its word of `randomBits`
 * is below (1 - p) 2^32. Throws `bad-argument` unless 0 <= p <= 1, and what `randomBits` throws.
 */
export function dropout(x: TensorView, p: number, seed: TensorView, options?: RandomOptions): TensorView {
  requireTensor(x, "dropout", 0);
  requireTensor(seed, "dropout", 2);
  const { builder } = x[internals];
  const place = callOn(builder.tensors, "dropout", () => [
    { tensor: x.id },
    { code: String(p) },
    argumentOf(seed, builder),
  ]);
  requireDropout(p, seed, place);
  const limit = Math.floor((1 - p) * 2 ** 32);
  commonBuilder([x, seed], place);
  requireTaken("dropout", "number", x.dtype, place);
  const { view: stays, offset } = random("dropout", seed, x.extents, options, { kind: "below", limit });
  const kept = mul(x, castTo(stays, x.dtype, place));
  const y = p === 0 || p === 1 ? kept : div(kept, 1 - p);
  const operands = { x: x.id, seed: seed.id };
  mark(y, { name: "dropout", operands, outputs: [y.id], kept: [], axes: [], random: { p, offset } });
  return y;
}

function random(
  name: string,
  seed: TensorView,
  shape: readonly Extent[],
  options: RandomOptions = {},
  form: RandomForm,
): { readonly view: TensorView; readonly offset: number } {
  requireTensor(seed, name, 0);
  const { builder } = seed[internals];
  const given: CallArgument = options.offset === undefined ? undefined : { code: `{ offset: ${options.offset} }` };
  const place: Call = {
    ...call(name, { tensor: seed.id }, shape.map(extentText), given),
    tensors: builder.tensors,
  };
  const extents = extentsIn(seed, shape, place).map((extent) =>
    typeof extent === "object" ? extent : constant(requireExtent(extent, place)),
  );
  requireSeed(seed, place);
  const offset = offsetOf(builder, options, place);
  // For each axis, index times row-major stride: their sum is the index of an element.
  const parts = extents.map((extent, axis) => {
    const stride = foldProduct(extents.slice(axis + 1));
    return applyIn(builder, iotaSpec(extent, constant(0), stride, "int64", place), [], place);
  });
  return { view: apply({ kind: "RandomBits", offset, form }, [seed, ...parts], place), offset };
}

function offsetOf({ ops }: FusionBuilder, { offset }: RandomOptions, place: Call): number {
  if (offset === undefined) return ops.filter(({ kind }) => kind === "RandomBits").length;
  if (Number.isSafeInteger(offset) && offset >= 0) return offset;
  return reject(place, "bad-argument", "the offset of random numbers is not a whole number of at least 0", {
    found: String(offset),
    expected: "a whole number from 0 to 2^53 - 1",
    help: "leave it out, or give each op of one seed another number",
  });
}

function requireSeed(seed: TensorView, place: Call): void {
  if (seed.rank === 0 && seed.dtype === "int64") return;
  const isTensor = seed.rank > 0;
  reject(place, isTensor ? "shape-mismatch" : "dtype-mismatch", isTensor ? "a seed has axes" : "a seed is not int64", {
    found: `T${seed.id} ${seed.dtype} with ${seed.rank} axes`,
    expected: "an int64 tensor without axes",
    help: 'pass fusion.input([], "int64")',
  });
}

/** What dropout asks of its probability and seed. Throws `bad-argument`, `dtype-mismatch`, `shape-mismatch`. */
export function requireDropout(p: unknown, seed: TensorView, place: Call): void {
  requireSeed(seed, place);
  if (typeof p === "number" && p >= 0 && p <= 1) return;
  reject(place, "bad-argument", "the probability of a dropout is not between 0 and 1", {
    found: String(p),
    expected: "a number from 0 to 1",
    help: "pass the probability with which an element becomes 0: dropout(x, 0.1, seed)",
  });
}
