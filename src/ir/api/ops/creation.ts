/** Operations without operands. */
import type { DType } from "../../../numerics/dtype.ts";
import { type Call, call, type CallArgument, reject } from "../../ops/call.ts";
import { fullSpec, iotaSpec } from "../../ops/kinds/creation.ts";
import { constant, type Scalar } from "../../scalar/scalar.ts";
import { type Extent, extentIn, extentText, knownExtent } from "../extent.ts";
import type { FusionBuilder } from "../fusion-builder.ts";
import { type Fusion, isFusion, requireDType } from "../fusion.ts";
import { fusionState } from "../handle.ts";
import type { TensorView } from "../tensor-view.ts";
import { applyIn } from "./apply.ts";

/**
 * A tensor of `shape` in which every element is `value`. An entry of the shape is a number, an axis of a tensor or its
 * extent (`x.axis(0)`, `x.extents[0]`). Without a mesh it is placed as what reads it. Throws `bad-extent`,
 * `bad-argument`, `foreign-tensor`.
 */
export function full(
  fusion: Fusion,
  shape: readonly Extent[],
  value: number | bigint | boolean,
  dtype: DType = "float",
): TensorView {
  return filled("full", fusion, shape, value, dtype, { code: String(value) });
}

/** `full` of zeros (of bool: false). */
export function zeros(fusion: Fusion, shape: readonly Extent[], dtype: DType = "float"): TensorView {
  return filled("zeros", fusion, shape, 0, dtype);
}

/** `full` of ones (of bool: true). */
export function ones(fusion: Fusion, shape: readonly Extent[], dtype: DType = "float"): TensorView {
  return filled("ones", fusion, shape, 1, dtype);
}

function filled(
  name: string,
  fusion: Fusion,
  shape: readonly Extent[],
  value: number | bigint | boolean,
  dtype: DType,
  argument?: CallArgument,
): TensorView {
  requireFusion(name, fusion);
  const builder = fusion[fusionState];
  const place = call(name, { code: "fusion" }, shape.map(extentText), argument, dtype);
  requireDType(dtype, place);
  const extents = shape.map((extent) => knownExtent(builder, extent, place));
  return applyIn(builder, fullSpec(extents, value, dtype, place), [], place);
}

/** The first value, the distance of neighbours and the dtype of an `iota`. */
export interface IotaOptions {
  /** 0 by default. */
  readonly start?: Extent;
  /** 1 by default. */
  readonly step?: Extent;
  /** `int` or `int64`, which is the default. */
  readonly dtype?: DType;
}

/**
 * `start + i * step` for i from 0 to `extent` - 1, as torch.arange. Integers wrap. i is the index in the whole tensor:
 * no sharding changes a value. Without a mesh it is placed as what reads it. Throws `bad-extent`, `bad-argument`,
 * `dtype-mismatch`, `foreign-tensor`.
 */
export function iota(
  fusion: Fusion,
  extent: Extent,
  { start = 0, step = 1, dtype = "int64" }: IotaOptions = {},
): TensorView {
  requireFusion("iota", fusion);
  const builder = fusion[fusionState];
  const code = `{ start: ${extentText(start)}, step: ${extentText(step)} }`;
  const place = call("iota", { code: "fusion" }, { code: extentText(extent) }, { code });
  requireDType(dtype, place);
  const [from, by] = [start, step].map((value) => wholeNumber(builder, value, place));
  const length = knownExtent(builder, extent, place);
  return applyIn(builder, iotaSpec(length, from ?? constant(0), by ?? constant(1), dtype, place), [], place);
}

function wholeNumber(builder: FusionBuilder, value: Extent, place: Call): Scalar {
  const known = extentIn(builder, value, place);
  if (typeof known === "object") return known;
  if (Number.isSafeInteger(known)) return constant(known === 0 ? 0 : known);
  return reject(place, "bad-argument", "the start or step of an iota is not a whole number", {
    found: String(known),
    expected: "a whole number of at most 2^53 - 1",
    help: 'count in whole numbers, and scale the result: mul(cast(iota(...), "float"), 0.5)',
  });
}

/** Calls from JavaScript may pass other values. Throws `bad-argument`. */
function requireFusion(name: string, value: unknown): void {
  if (isFusion(value) && fusionState in value) return;
  reject({ kind: "call", text: `${name}(...)` }, "bad-argument", `the first argument of ${name} is not a Fusion`, {
    found: value === null ? "null" : typeof value,
    expected: "the Fusion that the tensor is made in",
    help: "pass the Fusion first: zeros(fusion, [8, 4])",
  });
}
