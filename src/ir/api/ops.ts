/**
 * The operations of the Fusion API. Each call appends one op and returns a handle on its output, which has no
 * transforms yet. Binary and transcendental ops also append the casts that convert their operands to one dtype.
 *
 * Axis numbers count the axes that the tensor has at run time, from 0, or from -1 at the end. Shapes below are whole
 * shapes.
 */
export * from "./ops/attention.ts";
export { argmax } from "./ops/compositions/statistics.ts";
export { float8Linear, type Float8Parts, type Granularity } from "./ops/compositions/float8-linear.ts";
export { layerNorm, rmsNorm } from "./ops/compositions/norms.ts";
export { quantize, type Quantized, type QuantizeOptions } from "./ops/compositions/float8-linear.ts";
export { rope } from "./ops/compositions/rope.ts";
export { crossEntropy, logSoftmax, logsumexp, softmax } from "./ops/compositions/softmax.ts";
export { mean, type Moments, varMean } from "./ops/compositions/statistics.ts";
export * from "./ops/choices.ts";
export * from "./ops/contractions.ts";
export * from "./ops/creation.ts";
export * from "./ops/elementwise.ts";
export * from "./ops/functions.ts";
export * from "./ops/indexing.ts";
export {
  argsort,
  cummax,
  cummin,
  cumprod,
  cumsum,
  oneHot,
  sort,
  type Sorted,
  type SortOptions,
  topk,
  tril,
  triu,
} from "./ops/ordered.ts";
export * from "./ops/powers.ts";
export { dropout, randomBits, type RandomOptions, uniform } from "./ops/random.ts";
export * from "./ops/reductions.ts";
export * from "./ops/shape.ts";
export * from "./ops/views.ts";
