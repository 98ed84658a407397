/** Floats of 8 bits with the scales that bring numbers into their range. */
import { type DType, dtypes } from "../../../../numerics/dtype.ts";
import { requireDType } from "../../fusion.ts";
import type { TensorView } from "../../tensor-view.ts";
import { maximum } from "../choices.ts";
import { cast, div } from "../elementwise.ts";
import { abs } from "../functions.ts";
import { amax } from "../reductions.ts";
import { floatCall, inDType, keepAxes } from "./compose.ts";

export interface QuantizeOptions {
  readonly dtype?: DType;
  /** One scale, or one per row: per index of all axes but the last. */
  readonly granularity?: "tensor" | "row";
  /** The scale, of which `granularity` then says nothing: that of an earlier step, say. */
  readonly scale?: TensorView;
}

export interface Quantized {
  readonly values: TensorView;
  /** [], or the tensor's axes with extent 1 for the last one. `values` times it are the tensor's numbers. */
  readonly scale: TensorView;
}

/** Of zeros, so that nothing is divided by 0. */
const leastPeak = 1e-12;

/**
 * The tensor divided by scales and cast to `dtype`, float8_e4m3fn unless given, saturated. Without a given scale it is
 * that of the largest absolute value, which becomes the largest of the dtype. `scaledMatmul` takes both results. Throws
 * `dtype-mismatch`, `bad-argument`, `foreign-tensor`.
 */
export function quantize(tensor: TensorView, options: QuantizeOptions = {}): Quantized {
  const { dtype = "float8_e4m3fn", granularity = "tensor" } = options;
  requireDType(dtype, floatCall("quantize", [tensor]));
  const x = inDType(tensor, "float");
  const axes = granularity === "row" ? [x.rank - 1] : Array.from({ length: x.rank }, (_, axis) => axis);
  const peak = (): TensorView => maximum(amax(abs(x), axes), leastPeak);
  const found = options.scale ?? div(peak(), Number(dtypes[dtype].most));
  const scale = options.scale !== undefined || granularity === "tensor" ? found : keepAxes(found, axes, x);
  return { values: cast(div(x, scale), dtype, { saturate: true }), scale };
}
