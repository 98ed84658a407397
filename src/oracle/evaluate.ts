/**
 * The oracle: evaluates a whole, unsharded Fusion op by op, slowly and obviously, and says how far a back end may be off.
 * It knows meshes only as a reason for more roundings, and imports no kernel.
 */
import { fail } from "../diagnostics/diagnostic.ts";
import { requireSizesFit } from "../ir/check-sizes.ts";
import { isDID, type Tensor as IrTensor, type TensorId, withoutReductions } from "../ir/domain.ts";
import type { FusionData } from "../ir/fusion-data.ts";
import type { Op, ReductionOp } from "../ir/ops.ts";
import { printTensor } from "../ir/print-tensor.ts";
import { evaluateExtent, shapeOf, type Sizes, sizesFromShapes } from "../ir/sizes.ts";
import type { Tensor } from "../numerics/host-tensor.ts";
import { at, invariant } from "../support/invariant.ts";
import { unreachable } from "../support/unreachable.ts";
import { linear, matmul } from "./contraction.ts";
import { fromTensor, toTensor } from "./convert.ts";
import { binary, cast, unary } from "./pointwise.ts";
import { broadcast, permute, reshape, select, slice, squeeze } from "./rearrangement.ts";
import { reduction } from "./reduction.ts";
import type { Value } from "./value.ts";

export interface OracleResult {
  readonly outputs: readonly Tensor[];
  /** Per output, per element in row-major order: the absolute error that a correct back end may make. */
  readonly bounds: readonly Float64Array[];
}

/**
 * The outputs for whole `inputs`. `sizes` may add what no input shape gives.
 * Throws `input-count`, `input-shape`, `size-mismatch`, `size-missing`, `index-out-of-range`.
 */
export function evaluateFusion(fusion: FusionData, inputs: readonly Tensor[], sizes?: Sizes): OracleResult {
  const tensors = fusion.inputs.map((id) => at(fusion.tensors, id));
  const shapes = inputs.map((input) => input.shape);
  const known = new Map([...(sizes ?? []), ...sizesFromShapes(tensors, shapes)]);
  const values = new Map<TensorId, Value>();
  tensors.forEach((tensor, i) => {
    const input = at(inputs, i);
    requireDType(tensor, input);
    values.set(tensor.id, fromTensor(input));
  });
  for (const op of fusion.ops) {
    requireSizesFit(op, fusion.tensors, known);
    const operands = op.inputs.map((id) => valueOf(values, id));
    values.set(op.output, evaluateOp(op, operands, fusion.tensors, known));
  }
  const outputs = fusion.outputs.map((id) => valueOf(values, id));
  return { outputs: outputs.map(toTensor), bounds: outputs.map((output) => output.bounds) };
}

function requireDType(tensor: IrTensor, input: Tensor): void {
  if (input.dtype === tensor.dtype) return;
  fail({
    code: "input-shape",
    message: `an input does not have the dtype of T${tensor.id}`,
    place: { kind: "tensor", text: printTensor(tensor) },
    found: input.dtype,
    expected: tensor.dtype,
    help: "pass a tensor of this dtype",
  });
}

function valueOf(values: ReadonlyMap<TensorId, Value>, id: TensorId): Value {
  const value = values.get(id);
  invariant(value !== undefined, "ops stand in topological order", id);
  return value;
}

function evaluateOp(op: Op, operands: readonly Value[], tensors: readonly IrTensor[], sizes: Sizes): Value {
  const first = at(operands, 0);
  const shape = shapeOf(at(tensors, op.output), sizes);
  switch (op.kind) {
    case "Set":
      return first;
    case "Unary":
      return unary(op.op, first);
    case "Cast":
      return cast(first, op.to);
    case "Binary":
      return binary(op.op, first, at(operands, 1), shape);
    case "Reduction":
      return reduction(op.op, first, op.axes, hopsOf(op, first, tensors));
    case "Broadcast":
      return broadcast(first, op.flags, shape);
    case "Squeeze":
      return squeeze(first, op.axes);
    case "Permute":
      return permute(first, op.order);
    case "Reshape":
      return reshape(first, shape);
    case "Slice":
      return slice(first, op.ranges);
    case "Select":
      return select(first, op.axis, evaluateExtent(op.index, sizes));
    case "Matmul":
      return matmul(first, at(operands, 1), shape);
    case "Linear":
      return linear(first, at(operands, 1), operands[2] ?? null, shape);
    default:
      return unreachable(op);
  }
}

/** The hops of a collective that reduces over the op's device axes: one less than it has members. */
function hopsOf(op: ReductionOp, input: Value, tensors: readonly IrTensor[]): number {
  const axes = withoutReductions(at(tensors, at(op.inputs, 0)).domain.logical);
  return op.axes
    .filter((axis) => isDID(at(axes, axis).parallelType))
    .reduce((hops, axis) => hops + at(input.shape, axis) - 1, 0);
}
