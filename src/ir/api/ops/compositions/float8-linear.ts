/** Linears that train in floats of 8 bits, as torchtitan's recipes do: all three products quantize what they read. */
import { type DType, dtypes } from "../../../../numerics/dtype.ts";
import { at } from "../../../../support/invariant.ts";
import type { Float8Recipe } from "../../../fusion-data.ts";
import { scaledBlock } from "../../../ops/kinds/contractions.ts";
import { constantValue, foldDiv, foldProduct } from "../../../scalar/fold.ts";
import { constant, printScalar, type Scalar } from "../../../scalar/scalar.ts";
import { internals } from "../../handle.ts";
import type { TensorView } from "../../tensor-view.ts";
import { linear, scaledLinear, type ScaledOptions } from "../contractions.ts";
import { add, cast, div } from "../elementwise.ts";
import { permute, reshape, squeeze } from "../views.ts";
import { alignRight, floatCall, inDType, mark, keepAxes } from "./compose.ts";
import { type Call, reject } from "../../../ops/call.ts";
import { requireDType } from "../../fusion.ts";
import { maximum } from "../choices.ts";
import { abs } from "../functions.ts";
import { amax, sum } from "../reductions.ts";

/**
 * `linear` of operands that are quantized, with scales of rows (`rowwise`), tensors (`tensorwise`) or blocks
 * (`blockwise`). So are both gradients, which pass the rounding as if it were none: operands in float8_e4m3fn, and the
 * cotangent, where `tensorwise`, in float8_e5m2. Sums of the forward pass may be kept in the bits of tensor cores
 * (`fastAccumulation`), those of gradients and of blocks not. A product of a depth that 16 does not divide is not
 * quantized, nor by blocks one of a depth that 128 does not divide: blocks are 1 x 128, and of weights 128 x 128, as in
 * DeepSeek-V3. Throws `shape-mismatch`, `dtype-mismatch`, `foreign-tensor`, `bad-argument`.
 *
 * Where devices share the inputs or the outputs, `parts` says how many: each part of a row then has its own scale, as
 * where each device quantizes what it has, and nothing is exchanged for scales. A row that does not have a multiple of 16
 * elements for each part has one.
 */
export function float8Linear(
  x: TensorView,
  weight: TensorView,
  bias: TensorView | null = null,
  recipe: Float8Recipe = "rowwise",
  parts: Float8Parts = {},
): TensorView {
  const place = floatCall("float8Linear", [x, weight]);
  for (const name of ["in", "out"] as const) requireParts(name, parts[name], place);
  const y = float8Product(x, weight, recipe, { parts: parts.in, ofRows: parts.out, fastAccumulation: true });
  mark(y, {
    name: "float8Linear",
    operands: { x: x.id, weight: weight.id },
    outputs: [y.id],
    kept: [],
    axes: [],
    recipe,
    ...(parts.out === undefined ? {} : { parts: parts.out }),
  });
  return bias === null ? y : add(y, alignRight(inDType(bias, y.dtype), y));
}

/** How many parts of the inputs and of the outputs have a scale of their own in each row; 1 unless given. */
export interface Float8Parts {
  readonly in?: number;
  readonly out?: number;
}

function requireParts(name: keyof Float8Parts, count: number | undefined, place: Call): void {
  if (count === undefined || (Number.isInteger(count) && count > 0)) return;
  reject(place, "bad-argument", "rows are not cut in so many parts", {
    found: `parts.${name} = ${count}`,
    expected: "a whole number from 1 on",
    help: "give the number of devices that share the axis, or leave it out",
  });
}

interface ProductOptions extends Pick<ScaledOptions, "fastAccumulation"> {
  /** What a is quantized to; float8_e4m3fn unless given. */
  readonly ofA?: DType;
  /** By rows, so many parts of K have scales of their own; by blocks, each is of whole blocks. 1 unless given. */
  readonly parts?: number | undefined;
  /** By blocks, so many parts of b's rows are of whole blocks, if it is a weight: 1 unless given, and null if it is none. */
  readonly ofRows?: number | undefined | null;
}

/** What the scales of a and b are of, and what divides a depth that is quantized. */
const recipes: Readonly<Record<Float8Recipe, readonly [a: Granularity, b: Granularity, step: number]>> = {
  rowwise: ["row", "row", 16],
  tensorwise: ["tensor", "tensor", 16],
  blockwise: ["1x128", "128x128", scaledBlock],
};

/** a [.., K] b [N, K]^T in the dtype of a. */
export function float8Product(
  a: TensorView,
  b: TensorView,
  recipe: Float8Recipe,
  options: ProductOptions = {},
): TensorView {
  const { parts = 1 } = options;
  const depth = constantValue(at(b.extents, b.rank - 1));
  const step = recipes[recipe][2] * (recipe === "blockwise" ? parts : 1);
  if (b.rank !== 2 || depth === null || depth % step !== 0 || a.dtype === "double") return linear(a, b);
  const isCut = recipe === "rowwise" && parts > 1 && depth % (16 * parts) === 0;
  return isCut
    ? sum(scaledProduct(partsFirst(a, parts), partsFirst(b, parts), recipe, options), [0])
    : scaledProduct(a, b, recipe, options);
}

/** [.., K] as [parts, .., K / parts]. */
function partsFirst(x: TensorView, parts: number): TensorView {
  const lead = x.extents.slice(0, -1);
  const last = Number(constantValue(at(x.extents, x.rank - 1)));
  const order = [x.rank - 1, ...lead.map((_, axis) => axis), x.rank];
  return inCommon(x, () => permute(reshape(x, [...lead, parts, last / parts]), order));
}

/** a [.., M, K] b [.., N, K]^T of equal batch axes. */
function scaledProduct(
  a: TensorView,
  b: TensorView,
  recipe: Float8Recipe,
  { ofA = "float8_e4m3fn", fastAccumulation = false, ofRows = 1 }: ProductOptions,
): TensorView {
  const quantized = (x: TensorView, dtype: DType, by: Granularity): readonly [TensorView, TensorView] => {
    const { values, scale } = quantize(x, { granularity: by, dtype });
    return [values, by === "row" ? squeeze(scale, [x.rank - 1]) : scale];
  };
  const [granularity, ofB] = recipes[recipe];
  const rows = constantValue(at(b.extents, b.rank - 2)) ?? 1;
  const hasWhole = ofB !== "128x128" || (ofRows !== null && rows % (ofRows * scaledBlock) === 0);
  const [p, q] = inCommon(
    a,
    () => [quantized(a, ofA, granularity), quantized(b, "float8_e4m3fn", hasWhole ? ofB : granularity)] as const,
  );
  return scaledLinear(p[0], q[0], p[1], q[1], { dtype: a.dtype, fastAccumulation });
}

/** The columns of all rows: [.., N] as [N, M]. */
export function columnsOf(x: TensorView): TensorView {
  const last = at(x.extents, x.rank - 1);
  return inCommon(x, () => permute(x.rank === 2 ? x : reshape(x, [foldProduct(x.extents.slice(0, -1)), last]), [1, 0]));
}

/** Linears that read one tensor quantize it once, and devices gather it once. */
function inCommon<T>(x: TensorView, make: () => T): T {
  const { builder } = x[internals];
  builder.shares = true;
  try {
    return make();
  } finally {
    builder.shares = false;
  }
}

/* Floats of 8 bits with the scales that bring numbers into their range. */

/** What one scale is of: the tensor, a row, or a block of rows and of elements of the last axis. */
export type Granularity = "tensor" | "row" | "1x128" | "128x128";

export interface QuantizeOptions {
  readonly dtype?: DType;
  /** One scale, or one per row: per index of all axes but the last. Or one per block: the last axis is a multiple of 128. */
  readonly granularity?: Granularity;
  /** The scale, of which `granularity` then says only whether it is of blocks: that of an earlier step, say. */
  readonly scale?: TensorView;
}

export interface Quantized {
  readonly values: TensorView;
  /**
   * [], or the tensor's axes with extent 1 for the last one, or with a block in place of 128 elements. `values` times
   * it are the tensor's numbers.
   */
  readonly scale: TensorView;
}

/** Of zeros, so that nothing is divided by 0. */
const leastPeak = 1e-12;

/**
 * The tensor divided by scales and cast to `dtype`, float8_e4m3fn unless given, saturated. Without a given scale it is
 * that of the largest absolute value, which becomes the largest of the dtype. `scaledMatmul` takes both results: by
 * blocks, `1x128` of x and `1x128` or `128x128` of w. Throws `dtype-mismatch`, `bad-argument`, `foreign-tensor`.
 */
export function quantize(tensor: TensorView, options: QuantizeOptions = {}): Quantized {
  const { dtype = "float8_e4m3fn", granularity = "tensor" } = options;
  const place = floatCall("quantize", [tensor]);
  requireDType(dtype, place);
  const whole = inDType(tensor, "float");
  const blocks = blocksOf(whole.extents, granularity, place);
  const turned = (each: TensorView): TensorView => (blocks?.order ? permute(each, blocks.order) : each);
  const x = blocks === null ? whole : turned(reshape(whole, blocks.extents));
  const all = Array.from({ length: x.rank }, (_, axis) => axis);
  const axes = blocks === null && granularity === "row" ? [x.rank - 1] : all.slice(blocks?.within ?? 0);
  const peak = (): TensorView => maximum(amax(abs(x), axes), leastPeak);
  const found = options.scale ?? div(peak(), Number(dtypes[dtype].most));
  const scale =
    granularity === "tensor" || (blocks === null && options.scale !== undefined) ? found : keepAxes(found, axes, x);
  const values = cast(div(x, scale), dtype, { saturate: true });
  if (blocks === null) return { values, scale };
  return { values: reshape(turned(values), whole.extents), scale: found };
}

interface Blocks {
  /** An axis for the blocks in place of each that they cut, and one for what a block has. */
  readonly extents: readonly Scalar[];
  /** To what blocks have last, and back; null if it is. */
  readonly order: readonly number[] | null;
  /** The first axis of what a block has, in this order. */
  readonly within: number;
}

function blocksOf(extents: readonly Scalar[], granularity: Granularity, place: Call): Blocks | null {
  if (granularity !== "1x128" && granularity !== "128x128") return null;
  const first = extents.length - (granularity === "1x128" ? 1 : 2);
  const isCut = (axis: number): boolean => axis >= first;
  const odd = extents.some((extent, axis) => isCut(axis) && (constantValue(extent) ?? 1) % scaledBlock !== 0);
  if (first < 0 || odd)
    reject(place, "bad-argument", `a tensor is not cut in blocks of ${granularity}`, {
      found: `[${extents.map((extent) => printScalar(extent)).join(", ")}]`,
      expected: `multiples of ${scaledBlock}, as numbers, along the axes of a block`,
      help: "pad it with zeros, or quantize it by rows",
    });
  const made = extents.flatMap((extent, axis) =>
    isCut(axis) ? [foldDiv(extent, constant(scaledBlock)), constant(scaledBlock)] : [extent],
  );
  if (granularity === "1x128") return { extents: made, order: null, within: first + 1 };
  // The axes of rows and of blocks of K change places: one kernel then finds the scales.
  const order = made.map((_, axis) => axis);
  return { extents: made, order: order.with(first + 1, first + 2).with(first + 2, first + 1), within: first + 2 };
}
