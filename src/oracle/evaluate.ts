/**
 * The oracle evaluates a whole, unsharded Fusion op by op, in slow and obvious code, and bounds the error of a correct
 * back end. It imports no kernel, and none of the expressions that kernels are generated from. Meshes matter to it only
 * because they add roundings.
 */
import { fail } from "../diagnostics/diagnostic.ts";
import { requireSizesFit } from "../ir/ops/check-sizes.ts";
import { axisMap } from "../ir/ops/axis-map.ts";
import { axisParts, axisShards, isWholeAxis, reducedShards } from "../ir/axis-shards.ts";
import type { DIDType, Tensor as IrTensor, TensorId } from "../ir/domain.ts";
import type { FusionData } from "../ir/fusion-data.ts";
import type { BinaryOp, LinearOp, MatmulOp, Op, ReductionOp } from "../ir/ops/op.ts";
import { withOrigins } from "../ir/origin.ts";
import { printTensor } from "../ir/print-tensor.ts";
import { evaluateExtent, shapeOf, type Sizes, sizesFromShapes } from "../ir/sizes.ts";
import { dtypes } from "../numerics/dtype.ts";
import type { Tensor } from "../numerics/tensor/host-tensor.ts";
import { at, invariant } from "../support/invariant.ts";
import { unreachable } from "../support/unreachable.ts";
import { linear, matmul } from "./contraction.ts";
import { numberOf } from "./definitions.ts";
import type { Arithmetic } from "./tolerance.ts";
import { fromTensor, toTensor, type Value } from "./value.ts";
import { binary, cast, unary } from "./pointwise.ts";
import { broadcast, permute, reshape, select, slice, squeeze } from "./rearrangement.ts";
import { reduction } from "./reduction.ts";

export interface OracleResult {
  readonly outputs: readonly Tensor[];
  /**
   * Per output, per element in row-major order: the largest absolute error of a correct back end. Infinity if there is
   * no bound.
   */
  readonly bounds: readonly Float64Array[];
  /** Per output, the op that left elements without a bound, and why; null if all elements have one. */
  readonly unbounded: readonly (string | null)[];
}

/** Contractions in any order, as a BLAS may choose, and extrema that propagate NaN. */
const anyOrder: Arithmetic = { blocksContractions: false, keepsNaN: true };

/**
 * Evaluates the outputs for whole `inputs`. `sizes` may add sizes that no input shape determines. `arithmetic`
 * describes the back end. Throws `input-count`, `input-shape`, `size-mismatch`, `size-missing`, `index-out-of-range`.
 */
export function evaluateFusion(
  fusion: FusionData,
  inputs: readonly Tensor[],
  sizes?: Sizes,
  arithmetic: Arithmetic = anyOrder,
): OracleResult {
  return withOrigins(fusion.tensors, () => evaluate(fusion, inputs, sizes, arithmetic));
}

function evaluate(
  fusion: FusionData,
  inputs: readonly Tensor[],
  sizes: Sizes | undefined,
  arithmetic: Arithmetic,
): OracleResult {
  const tensors = fusion.inputs.map((id) => at(fusion.tensors, id));
  const shapes = inputs.map((input) => input.shape);
  const known = new Map([...(sizes ?? []), ...sizesFromShapes(tensors, shapes)]);
  const values = new Map<TensorId, Value>();
  tensors.forEach((tensor, i) => {
    const input = at(inputs, i);
    requireDType(tensor, input);
    values.set(tensor.id, fromTensor(input));
  });
  const unbounded = new Map<TensorId, string>();
  for (const op of fusion.ops) {
    requireSizesFit(op, fusion.tensors, known);
    const operands = op.inputs.map((id) => valueOf(values, id));
    const value = evaluateOp(op, operands, fusion.tensors, known, arithmetic);
    values.set(op.output, value);
    if (!value.bounds.includes(Infinity)) continue;
    const inherited = op.inputs.flatMap((id) => unbounded.get(id) ?? [])[0];
    unbounded.set(op.output, inherited ?? whyUnbounded(op, value));
  }
  const outputs = fusion.outputs.map((id) => valueOf(values, id));
  return {
    outputs: outputs.map(toTensor),
    bounds: outputs.map((output) => output.bounds),
    unbounded: fusion.outputs.map((id) => unbounded.get(id) ?? null),
  };
}

/** `T4 (div of T2, T3): a divisor may be 0`. */
function whyUnbounded(op: Op, { dtype }: Value): string {
  const name = "op" in op ? op.op : op.kind.toLowerCase();
  const text = `T${op.output} (${name} of ${op.inputs.map((id) => `T${id}`).join(", ")})`;
  if (dtypes[dtype].family !== "float") return `${text}: integers computed from inexact numbers may wrap`;
  if (name === "div") return `${text}: a divisor may be 0, or the quotient may overflow`;
  if (name === "rsqrt") return `${text}: an operand may be 0`;
  if (name === "amax" || name === "amin") return `${text}: the library may drop NaN`;
  if (op.kind === "Reduction" || op.kind === "Matmul" || op.kind === "Linear") {
    return `${text}: a partial sum or product may overflow, or there are too many terms`;
  }
  return `${text}: the result may overflow`;
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

function evaluateOp(
  op: Op,
  operands: readonly Value[],
  tensors: readonly IrTensor[],
  sizes: Sizes,
  arithmetic: Arithmetic,
): Value {
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
      return binary(op.op, ...binaryOperands(op, operands, shape), shape);
    case "Reduction":
      return reduction(op.op, first, op.axes, hopsOf(op, tensors, sizes), arithmetic);
    case "Broadcast":
      return broadcast(first, op.flags, shape);
    case "Squeeze":
      return squeeze(first, op.axes);
    case "Permute":
      return permute(first, op.order);
    case "Reshape":
      return reshape(first, shape);
    case "Slice":
      return slice(
        first,
        op.ranges.map(({ start, stop }) => ({
          start: evaluateExtent(start, sizes),
          stop: evaluateExtent(stop, sizes),
        })),
      );
    case "Select":
      return select(first, op.axis, evaluateExtent(op.index, sizes));
    case "Matmul":
      return matmul(first, at(operands, 1), shape, { hops: hopsOf(op, tensors, sizes), arithmetic });
    case "Linear":
      return linear(first, at(operands, 1), operands[2] ?? null, shape, {
        hops: hopsOf(op, tensors, sizes),
        arithmetic,
      });
    default:
      return unreachable(op);
  }
}

/** Both operands; a number has one element, which every index reads. */
function binaryOperands({ scalar }: BinaryOp, operands: readonly Value[], shape: readonly number[]): [Value, Value] {
  const first = at(operands, 0);
  if (scalar === undefined) return [first, at(operands, 1)];
  const { dtype } = first;
  const elements = [numberOf(dtype, scalar.text)];
  const number: Value = { dtype, shape: shape.map(() => 1), elements, bounds: new Float64Array(1) };
  return scalar.position === 0 ? [number, first] : [first, number];
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
    const stream = axisParts(result.domain, consumer).find(({ parallelType }) => parallelType === "Stream");
    if (shards.length === 0 && stream !== undefined) chunks = evaluateExtent(stream.extent, sizes);
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
