/** Operations that give a tensor other extents or another number of axes. */
import { at } from "../../../support/invariant.ts";
import { type Call, type CallArgument, reject, resolveAxis } from "../../ops/call.ts";
import { promoteDTypes } from "../../ops/dtype-rules.ts";
import { broadcastSpec, expandSpec, reshapeSpec } from "../../ops/kinds/views/broadcast.ts";
import { catSpec, padSpec } from "../../ops/kinds/views/pad.ts";
import { sliceSpec } from "../../ops/kinds/views/slice.ts";
import { constantValue, foldAdd, foldCeilDiv, foldMul } from "../../scalar/fold.ts";
import { constant, printScalar, type Scalar } from "../../scalar/scalar.ts";
import { type Extent, extentText } from "../extent.ts";
import { requireTensor } from "../handle.ts";
import type { TensorView } from "../tensor-view.ts";
import { apply, callOf, castTo, extentsIn } from "./apply.ts";

/**
 * Stretches axes of extent 1 to `shape`; -1 keeps an axis. `shape` has an extent for every axis. Nothing is copied:
 * every index reads the one element. Throws `bad-argument`, `bad-extent`, `shape-mismatch`, `foreign-tensor`.
 */
export function expand(tensor: TensorView, shape: readonly Extent[]): TensorView {
  const place = callOf("expand", [tensor], shape.map(extentText));
  return apply(expandSpec(tensor.data(), extentsIn(tensor, shape, place), place), [tensor], place);
}

/** Adds an axis of extent 1 in front of `axis`; -1 adds it at the end. Throws `axis-out-of-range`. */
export function unsqueeze(tensor: TensorView, axis: number): TensorView {
  const place = callOf("unsqueeze", [tensor], axis);
  const added = resolveAxis(axis, tensor.rank + 1, place);
  const flags = Array.from({ length: tensor.rank + 1 }, (_, i) => i === added);
  return apply(broadcastSpec(tensor.data(), flags, place), [tensor], place);
}

/**
 * Joins `tensors` along `axis`, in order, after casts to one dtype. All other extents are equal. Throws
 * `axis-out-of-range`, `shape-mismatch`, `foreign-tensor`, `bad-argument`.
 */
export function cat(tensors: readonly TensorView[], axis = 0): TensorView {
  if (tensors.length === 0) {
    reject({ kind: "call", text: "cat([])" }, "bad-argument", "cat of no tensor", {
      found: "an empty list",
      expected: "at least one tensor",
      help: "pass the tensors to join",
    });
  }
  const place = callOf("cat", tensors, axis);
  const spec = catSpec(
    tensors.map((tensor) => tensor.data()),
    axis,
    place,
  );
  const dtype = tensors.map((tensor) => tensor.dtype).reduce(promoteDTypes);
  return apply(
    spec,
    tensors.map((tensor) => castTo(tensor, dtype, place)),
    place,
  );
}

/**
 * Adds elements of `value` before and after each axis: `widths[i]` are both numbers. A negative number removes
 * elements. Throws `bad-argument`, `shape-mismatch`.
 */
export function pad(
  tensor: TensorView,
  widths: readonly (readonly [before: number, after: number])[],
  value: number | bigint = 0,
): TensorView {
  const pairs = widths.map((pair) => `[${pair.join(", ")}]`);
  const place = callOf("pad", [tensor], { code: `[${pairs.join(", ")}]` }, { code: String(value) });
  return apply(padSpec(tensor.data(), widths, value, place), [tensor], place);
}

/**
 * Parts of `axis`, as torch.chunk. A symbolic extent must have an index for each part once its size is known. Throws
 * `axis-out-of-range`, `bad-argument`, `index-out-of-range`.
 */
export function chunk(tensor: TensorView, chunks: number, axis = 0): readonly TensorView[] {
  const place = callOf("chunk", [tensor], chunks, axis);
  requirePart(chunks, "the number of chunks", place);
  const extent = extentAt(tensor, axis, place);
  const part = foldCeilDiv(extent, constant(chunks));
  const [size, length] = [constantValue(extent), constantValue(part)];
  const count = size === null || length === null ? chunks : Math.ceil(size / Math.max(length, 1));
  const stops = Array.from({ length: count - 1 }, (_, i) => foldMul(part, constant(i + 1)));
  return partsOf(tensor, [...stops, extent], axis, place);
}

/**
 * Parts of `axis`, as torch.split, of `sizes` indices each or of the listed sizes. One size needs a constant extent.
 * Throws `axis-out-of-range`, `bad-argument`.
 */
export function split<const Sizes extends readonly Extent[]>(
  tensor: TensorView,
  sizes: Sizes,
  axis?: number,
): { readonly [K in keyof Sizes]: TensorView };
export function split(tensor: TensorView, sizes: number | readonly Extent[], axis?: number): readonly TensorView[];
export function split(tensor: TensorView, sizes: number | readonly Extent[], axis = 0): readonly TensorView[] {
  const shown: CallArgument = typeof sizes === "number" ? sizes : sizes.map(extentText);
  const place = callOf("split", [tensor], shown, axis);
  const extent = extentAt(tensor, axis, place);
  if (typeof sizes === "number") {
    requirePart(sizes, "the size of a part", place);
    const size = constantValue(extent);
    if (size === null) rejectSizes(extent, "a symbolic extent has no known number of parts", place);
    const stops = Array.from({ length: Math.ceil(size / sizes) - 1 }, (_, i) => constant((i + 1) * sizes));
    return partsOf(tensor, [...stops, extent], axis, place);
  }
  const stops: Scalar[] = [];
  for (const size of extentsIn(tensor, sizes, place)) {
    const next = typeof size === "number" ? constant(size) : size;
    stops.push(stops.length === 0 ? next : foldAdd(at(stops, stops.length - 1), next));
  }
  const [sum, whole] = [constantValue(stops.at(-1) ?? constant(0)), constantValue(extent)];
  if (sum !== null && whole !== null && sum !== whole) {
    rejectSizes(extent, `the sizes of a split are not the extent in sum, but ${sum}`, place);
  }
  return partsOf(tensor, stops, axis, place);
}

/** Repeats each index of `axis` `repeats` times. Throws `axis-out-of-range`, `bad-extent`. */
export function repeatInterleave(tensor: TensorView, repeats: number, axis: number): TensorView {
  const place = callOf("repeatInterleave", [tensor], repeats, axis);
  requirePart(repeats, "the number of repeats", place);
  const own = resolveAxis(axis, tensor.rank, place);
  const { extents } = tensor;
  const flags = Array.from({ length: tensor.rank + 1 }, (_, i) => i === own + 1);
  const added = apply(broadcastSpec(tensor.data(), flags, place), [tensor], place);
  const repeated = extents.toSpliced(own + 1, 0, constant(repeats));
  const stretched = apply(expandSpec(added.data(), repeated, place), [added], place);
  const shape = extents.with(own, foldMul(at(extents, own), constant(repeats)));
  return apply(reshapeSpec(stretched.data(), shape, place), [stretched], place);
}

/** The parts that end at `stops`. */
function partsOf(tensor: TensorView, stops: readonly Scalar[], axis: number, place: Call): readonly TensorView[] {
  const own = resolveAxis(axis, tensor.rank, place);
  const { extents } = tensor;
  return stops.map((stop, i) => {
    const starts = extents.map((_, each) => (each === own && i > 0 ? at(stops, i - 1) : constant(0)));
    return apply(sliceSpec(tensor.data(), starts, extents.with(own, stop), place), [tensor], place);
  });
}

function extentAt(tensor: TensorView, axis: number, place: Call): Scalar {
  requireTensor(tensor, "split", 0);
  return at(tensor.extents, resolveAxis(axis, tensor.rank, place));
}

function requirePart(count: number, what: string, place: Call): void {
  if (Number.isSafeInteger(count) && count >= 1) return;
  reject(place, "bad-argument", `${what} is not a whole number of at least 1`, {
    found: String(count),
    expected: "a whole number of at least 1",
    help: "choose a positive number",
  });
}

function rejectSizes(extent: Scalar, message: string, place: Call): never {
  return reject(place, "bad-argument", message, {
    found: `extent ${printScalar(extent)}`,
    expected: "sizes whose sum is the extent",
    help: "list the sizes of all parts, or use chunk() for parts of equal size",
  });
}
