/** The computations of a HostProgramBuilder, each from the arguments of its call: which op it is, and what its diagnostics show of the call. */
import { requireDType } from "../../ir/api/fusion.ts";
import type { TensorView } from "../../ir/api/tensor-view.ts";
import { type Call, reject, resolveAxis } from "../../ir/ops/call.ts";
import { broadcastSpec } from "../../ir/ops/kinds/broadcast.ts";
import type { BinaryOpType, OpSpec, ReductionOpType } from "../../ir/ops/op.ts";
import { permuteSpec } from "../../ir/ops/kinds/permute.ts";
import { reductionSpec } from "../../ir/ops/kinds/reduction.ts";
import { reshapeSpec } from "../../ir/ops/kinds/reshape.ts";
import { selectSpec } from "../../ir/ops/kinds/select.ts";
import { sliceSpec } from "../../ir/ops/kinds/slice.ts";
import { squeezeSpec } from "../../ir/ops/kinds/squeeze.ts";
import { printScalar } from "../../ir/scalar/print.ts";
import type { DType } from "../../numerics/dtype.ts";
import { compute, type OutputOption } from "./compute.ts";
import type { BuilderState, ScalarLike } from "./state.ts";

/** An op that its operands determine. */
export function addOp(
  state: BuilderState,
  name: string,
  spec: OpSpec,
  operands: readonly TensorView[],
  options: OutputOption,
): TensorView {
  return compute(state, () => spec, name, operands, [], options);
}

export interface ContractionOptions extends OutputOption {
  /**
   * For a contraction in chunks, one statement each, into one `out`: false for the first chunk, true for those that are added to it. The
   * reduced axis of `out` may be longer than the chunk's.
   */
  readonly accumulate?: boolean;
}

export function addContraction(
  state: BuilderState,
  kind: "Matmul" | "Linear",
  operands: readonly TensorView[],
  { out, accumulate }: ContractionOptions,
): TensorView {
  const specOf = (place: Call): OpSpec => {
    if (accumulate === undefined) return { kind };
    if (out !== undefined) return { kind, accumulate };
    return reject(place, {
      code: "bad-argument",
      message: "chunks of a contraction have one output",
      found: `accumulate: ${accumulate} without an output`,
      expected: "the tensor that all chunks are added in, as `out`",
      help: "make the output with tensor([...], { reduced: extent }) and allocate it",
    });
  };
  return compute(state, specOf, kind.toLowerCase(), operands, [], { out });
}

export function addBinary(
  state: BuilderState,
  op: BinaryOpType,
  operands: readonly [TensorView, TensorView],
  options: OutputOption,
): TensorView {
  return addOp(state, op, { kind: "Binary", op }, operands, options);
}

export function addCast(state: BuilderState, input: TensorView, dtype: DType, options: OutputOption): TensorView {
  const specOf = (place: Call): OpSpec => {
    requireDType(dtype, place);
    return { kind: "Cast", to: dtype };
  };
  return compute(state, specOf, "cast", [input], [String(dtype)], options);
}

export function addReduction(
  state: BuilderState,
  op: ReductionOpType,
  input: TensorView,
  axes: readonly number[],
  options: OutputOption,
): TensorView {
  return compute(state, (place) => reductionSpec(op, input.data(), axes, place), op, [input], [axes], options);
}

export function addBroadcast(
  state: BuilderState,
  input: TensorView,
  flags: readonly boolean[],
  options: OutputOption,
): TensorView {
  return compute(state, (place) => broadcastSpec(input.data(), flags, place), "broadcast", [input], [flags], options);
}

export function addSqueeze(
  state: BuilderState,
  input: TensorView,
  axes: readonly number[],
  options: OutputOption,
): TensorView {
  return compute(state, (place) => squeezeSpec(input.data(), axes, place), "squeeze", [input], [axes], options);
}

export function addPermute(
  state: BuilderState,
  input: TensorView,
  order: readonly number[],
  options: OutputOption,
): TensorView {
  return compute(state, (place) => permuteSpec(input.data(), order, place), "permute", [input], [order], options);
}

export function addReshape(
  state: BuilderState,
  input: TensorView,
  shape: readonly ScalarLike[],
  options: OutputOption,
): TensorView {
  const shown = shape.map((extent) => (typeof extent === "number" ? extent : printScalar(extent)));
  return compute(state, (place) => reshapeSpec(input.data(), shape, place), "reshape", [input], [shown], options);
}

export function addSlice(
  state: BuilderState,
  input: TensorView,
  starts: readonly number[],
  stops: readonly number[],
  options: OutputOption,
): TensorView {
  const specOf = (place: Call): OpSpec => sliceSpec(input.data(), starts, stops, place);
  return compute(state, specOf, "slice", [input], [starts, stops], options);
}

export function addSelect(
  state: BuilderState,
  input: TensorView,
  axis: number,
  index: ScalarLike,
  options: OutputOption,
): TensorView {
  const specOf = (place: Call): OpSpec =>
    typeof index === "number"
      ? selectSpec(input.data(), axis, index, place)
      : { kind: "Select", axis: resolveAxis(axis, input.rank, place), index };
  const shown = { code: typeof index === "number" ? String(index) : printScalar(index) };
  return compute(state, specOf, "selectOp", [input], [axis, shown], options);
}
