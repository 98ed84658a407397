/** The norms that norms.ts measures. */
import { layerNorm, neg, rmsNorm, softmax } from "../../src/ir/api/ops.ts";
import type { TensorView } from "../../src/ir/api/tensor-view.ts";

export type Norm = (x: TensorView, vector: () => TensorView) => TensorView;

export const norms: Readonly<Record<string, Norm>> = {
  // A kernel that reads and writes each element once; a set would be a copy without a kernel.
  copy: (x) => neg(x),
  layerNorm: (x, vector) => layerNorm(x, vector(), vector()),
  rmsNorm: (x, vector) => rmsNorm(x, vector()),
  softmax: (x) => softmax(x, 1),
};
