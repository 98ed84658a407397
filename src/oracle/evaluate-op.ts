/** The values of one op's results, by its definition, of values of its operands. */
import type { DIDType, Tensor as IrTensor } from "../ir/domain.ts";
import { axisMap } from "../ir/ops/axis-map.ts";
import type { NumberOperand } from "../ir/ops/number-operand.ts";
import type { ContractionOp, Op, RandomBitsOp, ReductionOp, SdpaBackwardOp, SdpaOp } from "../ir/ops/op.ts";
import { cutOf } from "../ir/parts.ts";
import { isWhole, reducedShards, shardsOf } from "../ir/shards.ts";
import { evaluateExtent, type Sizes } from "../ir/sizes.ts";
import type { DType } from "../numerics/dtype.ts";
import { at, unreachable } from "../support/invariant.ts";
import { sdpaBackward } from "./attention/sdpa-backward.ts";
import { sdpa } from "./attention/sdpa.ts";
import { groupedMatmul, linear, matmul } from "./contraction.ts";
import { elementOf, numberOf, wrap } from "./definitions.ts";
import { gather, indexSelect, scatterAdd } from "./indexing.ts";
import { argsort, scan } from "./ordered.ts";
import { binary, cast, ternary, unary } from "./pointwise.ts";
import { broadcast, cat, expand, pad, permute, reshape, select, slice, squeeze } from "./rearrangement.ts";
import { reduction } from "./reduction.ts";
import { scaledLinear } from "./scaled-linear.ts";
import type { Arithmetic } from "./tolerance.ts";
import { elementAt, makeValue, type OracleValue } from "./value.ts";

/** What an op is evaluated in. */
export interface Setting {
  readonly tensors: readonly IrTensor[];
  readonly sizes: Sizes;
  readonly arithmetic: Arithmetic;
}

/** `shape`: of the first result. */
export function evaluateOp(
  op: Op,
  operands: readonly OracleValue[],
  shape: readonly number[],
  setting: Setting,
): readonly OracleValue[] {
  if (op.kind === "Sdpa") return sdpa(op, operands, setting.arithmetic);
  if (op.kind === "SdpaBackward") return sdpaBackward(op, operands, setting.arithmetic);
  return [evaluateSingle(op, operands, shape, setting)];
}

function evaluateSingle(
  op: Exclude<Op, SdpaOp | SdpaBackwardOp>,
  operands: readonly OracleValue[],
  shape: readonly number[],
  { tensors, sizes, arithmetic }: Setting,
): OracleValue {
  const output = at(tensors, op.output);
  if (op.kind === "Full") return full(op.value, output.dtype, shape);
  if (op.kind === "Iota") {
    return iota(evaluateExtent(op.start, sizes), evaluateExtent(op.step, sizes), output.dtype, shape);
  }
  const first = at(operands, 0);
  switch (op.kind) {
    case "Set":
      return first;
    case "Unary":
      return unary(op.op, first);
    case "Cast":
      return cast(first, op.to);
    case "Binary":
      return binary(op.op, ...twoValues(op.scalar, 0, operands, shape), shape, arithmetic);
    case "Ternary":
      return ternary(op.op, first, ...twoValues(op.scalar, 1, operands.slice(1), shape), shape);
    case "Reduction":
      return reduction(op.op, first, op.axes, hopsOf(op, tensors, sizes), arithmetic);
    case "Broadcast":
      return broadcast(first, op.flags, shape);
    case "RandomBits":
      return randomBits(op, operands, output.dtype, shape);
    case "Expand":
      return expand(first, shape);
    case "Cat":
      return cat(operands, op.axis, shape);
    case "Pad":
      return pad(first, op.widths, { element: elementOf(first.dtype, op.value), bound: 0 }, shape);
    case "IndexSelect":
      return indexSelect(first, op.axis, at(operands, 1));
    case "Gather":
      return gather(first, op.axis, at(operands, 1));
    case "ScatterAdd":
      return scatterAdd(first, op, at(operands, 1), at(operands, 2));
    case "Scan":
      return scan(op.op, first, op.axis, op.reverse);
    case "Argsort":
      return argsort(first, op.axis, op.descending);
    case "Squeeze":
      return squeeze(first, op.axes);
    case "Permute":
      return permute(first, op.order);
    case "Reshape":
      return reshape(first, shape);
    case "Slice":
      return slice(
        first,
        op.ranges.map(({ start }) => evaluateExtent(start, sizes)),
        op.ranges.map(({ step = 1 }) => step),
        shape,
      );
    case "Select":
      return select(first, op.axis, evaluateExtent(op.index, sizes));
    case "Matmul":
      return matmul(first, at(operands, 1), shape, { hops: hopsOf(op, tensors, sizes), arithmetic }, op.to);
    case "Linear":
      if (op.to !== undefined)
        return scaledLinear(operands, { ...op, to: op.to }, shape, { hops: hopsOf(op, tensors, sizes), arithmetic });
      return linear(first, at(operands, 1), operands[2] ?? null, shape, {
        hops: hopsOf(op, tensors, sizes),
        arithmetic,
      });
    case "GroupedMatmul": {
      const accumulating = { hops: hopsOf(op, tensors, sizes), arithmetic };
      return groupedMatmul(first, at(operands, 1), at(operands, 2), shape, accumulating);
    }
    default:
      return unreachable(op);
  }
}

/** Both values; a number, whose position counts from `firstPosition`, has one element, which every index reads. */
export function twoValues(
  scalar: NumberOperand<number> | undefined,
  firstPosition: number,
  operands: readonly OracleValue[],
  shape: readonly number[],
): [OracleValue, OracleValue] {
  const first = at(operands, 0);
  if (scalar === undefined) return [first, at(operands, 1)];
  const { dtype } = first;
  const elements = [numberOf(dtype, scalar.text)];
  const number: OracleValue = { dtype, shape: shape.map(() => 1), elements, bounds: new Float64Array(1) };
  return scalar.position === firstPosition ? [number, first] : [first, number];
}

/**
 * How often a result may be rounded to the dtype before its last rounding. A collective over n devices passes partial
 * results on n - 1 times, and each device stores its partial result first, unless it is an element of the operand.
 * Chunks of a Stream axis that accumulate in the output round it once each.
 */
function hopsOf(op: ReductionOp | ContractionOp, tensors: readonly IrTensor[], sizes: Sizes): number {
  const pairs = axisMap(op, tensors).filter(({ consumer }) => consumer.iterType === "reduction");
  const over = new Map<DIDType, number>();
  let storesParts = op.kind !== "Reduction";
  let chunks = 1;
  for (const { operand, producer, consumer } of pairs) {
    const source = at(tensors, at(op.inputs, operand));
    const result = at(tensors, op.output);
    const shards = [...shardsOf(source), ...reducedShards(result)].filter(
      ({ axis }) => axis.id === producer.id || axis.id === consumer.id,
    );
    const stream = cutOf(result.domain, consumer).parts.find(({ type }) => type === "Stream");
    if (shards.length === 0 && stream !== undefined) chunks = evaluateExtent(stream.extent, sizes);
    for (const { type } of shards) {
      over.set(type, Math.max(over.get(type) ?? 1, devicesAlong(source, type), devicesAlong(result, type)));
    }
    storesParts ||= !shards.some(isWhole);
  }
  if (over.size === 0) return chunks - 1;
  return [...over.values()].reduce((sum, devices) => sum + devices - 1, chunks - 1 + (storesParts ? 1 : 0));
}

function devicesAlong({ mesh }: IrTensor, type: DIDType): number {
  return mesh?.hasAxis(type) === true ? mesh.size(type) : 1;
}

// Ops without operands.

/** `text` is the number as JavaScript writes it. */
function full(text: string, dtype: DType, shape: readonly number[]): OracleValue {
  const element = elementOf(dtype, text);
  return makeValue(dtype, shape, () => ({ element, bound: 0 }));
}

/** start + i step, wrapped to the dtype. */
function iota(start: number, step: number, dtype: DType, shape: readonly number[]): OracleValue {
  return makeValue(dtype, shape, (_, flat) => ({
    element: wrap(dtype, BigInt(start) + BigInt(flat) * BigInt(step)),
    bound: 0,
  }));
}

/** Philox 4x32-10 as its definition has it; `operands` are the seed, and for each axis a vector of parts of the index. */
export function randomBits(
  { offset, form }: Pick<RandomBitsOp, "offset" | "form">,
  operands: readonly OracleValue[],
  dtype: DType,
  shape: readonly number[],
): OracleValue {
  return makeValue(dtype, shape, (position) => {
    const [seed = 0n, ...parts] = operands.map((operand, i) =>
      BigInt(elementAt(operand, position.slice(i - 1, i)).element),
    );
    const index = BigInt.asIntN(
      64,
      parts.reduce((sum, part) => sum + part, 0n),
    );
    const words = philox(
      [low(seed), high(seed)],
      [low(index >> 2n), high(index >> 2n), low(BigInt(offset)), high(BigInt(offset))],
    );
    const word = words[Number(index & 3n)] ?? 0n;
    if (form.kind === "bits") return { element: wrap(dtype, word), bound: 0 };
    if (form.kind === "uniform") return { element: Number(word >> 8n) * 2 ** -24, bound: 0 };
    return { element: Number(word) < form.limit ? 1 : 0, bound: 0 };
  });
}

const low = (x: bigint): bigint => BigInt.asUintN(32, x);
const high = (x: bigint): bigint => BigInt.asUintN(32, x >> 32n);

/** Four random words. All words have no sign. */
export function philox(
  [key0, key1]: readonly [bigint, bigint],
  [a, b, c, d]: readonly [bigint, bigint, bigint, bigint],
): readonly bigint[] {
  for (let round = 0n; round < 10n; round++) {
    const [p, q] = [a * 0xd2511f53n, c * 0xcd9e8d57n];
    const [k, l] = [low(key0 + round * 0x9e3779b9n), low(key1 + round * 0xbb67ae85n)];
    [a, b, c, d] = [high(q) ^ b ^ k, low(q), high(p) ^ d ^ l, low(p)];
  }
  return [a, b, c, d];
}
