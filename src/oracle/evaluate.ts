/**
 * The oracle evaluates a whole, unsharded Fusion op by op, in slow and obvious code, and bounds the error of a correct
 * back end. It imports no kernel. Meshes matter to it only because they add roundings.
 */
import { fail } from "../diagnostics/diagnostic.ts";
import { requireSizesFit } from "../ir/ops/check-sizes.ts";
import { axisMap } from "../ir/ops/axis-map.ts";
import { axisShards, isWholeAxis, reducedShards } from "../ir/axis-shards.ts";
import type { DIDType, Tensor as IrTensor, TensorId } from "../ir/domain.ts";
import type { FusionData } from "../ir/fusion-data.ts";
import type { LinearOp, MatmulOp, Op, ReductionOp } from "../ir/ops/op.ts";
import { rowOf } from "../ir/ops/rows.ts";
import { printTensor } from "../ir/print-tensor.ts";
import { evaluateExtent, shapeOf, type Sizes, sizesFromShapes } from "../ir/sizes.ts";
import type { Tensor } from "../numerics/tensor/host-tensor.ts";
import { at, invariant } from "../support/invariant.ts";
import { unreachable } from "../support/unreachable.ts";
import { linear, matmul } from "./contraction.ts";
import { elementAt, fromTensor, makeValue, toTensor, type Value } from "./value.ts";
import { binary, cast, unary } from "./pointwise.ts";
import { reduction } from "./reduction.ts";

export interface OracleResult {
  readonly outputs: readonly Tensor[];
  /** Per output, per element in row-major order: the largest absolute error of a correct back end. */
  readonly bounds: readonly Float64Array[];
}

/**
 * Evaluates the outputs for whole `inputs`. `sizes` may add sizes that no input shape determines.
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
  invariant(value !== undefined, "ops are in topological order", id);
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
      return reduction(op.op, first, op.axes, hopsOf(op, tensors, sizes));
    case "Reshape":
      return { ...first, shape };
    case "Broadcast":
    case "Squeeze":
    case "Permute":
    case "Slice":
    case "Select":
      return rearranged(op, first, shape, sizes);
    case "Matmul":
      return matmul(first, at(operands, 1), shape, hopsOf(op, tensors, sizes));
    case "Linear":
      return linear(first, at(operands, 1), operands[2] ?? null, shape, hopsOf(op, tensors, sizes));
    default:
      return unreachable(op);
  }
}

/** The output of a view: each element is one of the input, with its bound. */
function rearranged(op: Op, input: Value, shape: readonly number[], sizes: Sizes): Value {
  const position = op.kind === "Select" ? evaluateExtent(op.index, sizes) : 0;
  const sources = rowOf(op).sources(op, input.shape.length, position);
  invariant(sources !== null, "a view says where it reads each axis", op);
  return makeValue(input.dtype, shape, (index) =>
    elementAt(
      input,
      sources.map(({ axis, offset }) => (axis === null ? 0 : at(index, axis)) + offset),
    ),
  );
}

/**
 * How often a result may be rounded to the dtype before its last rounding. A collective over n devices passes partial
 * results on n - 1 times, and each device stores its partial result first, unless it is an element of the operand.
 * Chunks of a Stream axis that accumulate in the output round it once each.
 */
function hopsOf(op: ReductionOp | MatmulOp | LinearOp, tensors: readonly IrTensor[], sizes: Sizes): number {
  const pairs = axisMap(op, tensors).filter(({ consumer }) => consumer.iterType === "reduction");
  const over = new Map<DIDType, number>();
  let storesParts = op.kind !== "Reduction";
  let chunks = 1;
  for (const { operand, producer, consumer } of pairs) {
    const source = at(tensors, at(op.inputs, operand));
    const result = at(tensors, op.output);
    const shards = [...axisShards(source), ...reducedShards(result)].filter(
      ({ axis }) => axis.id === producer.id || axis.id === consumer.id,
    );
    if (shards.length === 0 && consumer.parallelType === "Stream") chunks = evaluateExtent(consumer.extent, sizes);
    for (const { type } of shards) {
      over.set(type, Math.max(over.get(type) ?? 1, devicesAlong(source, type), devicesAlong(result, type)));
    }
    storesParts ||= !shards.some(isWholeAxis);
  }
  if (over.size === 0) return chunks - 1;
  return [...over.values()].reduce((sum, devices) => sum + devices - 1, chunks - 1 + (storesParts ? 1 : 0));
}

function devicesAlong({ mesh }: IrTensor, type: DIDType): number {
  return mesh?.hasAxis(type) === true ? mesh.size(type) : 1;
}
