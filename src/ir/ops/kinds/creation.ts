/** The rows of ops that create a tensor: the call gives the output's axes and dtype. */
import { type DType, dtypes } from "../../../numerics/dtype.ts";
import { at } from "../../../support/invariant.ts";
import { type Tensor, withoutReductions } from "../../domain.ts";
import type { Scalar } from "../../scalar/scalar.ts";
import { type Call, rankOf, reject, shapeText } from "../call.ts";
import type { RandomForm } from "../functions/philox.ts";
import { numberText, requireNumberFits } from "../number-operand.ts";
import {
  type AxisPair,
  elementWork,
  type OpBase,
  type OpRow,
  type OutputAxes,
  type Shapes,
  type SpecOf,
} from "../row.ts";
import { elementwise, local, pair } from "./families.ts";
import { elementCount } from "../../../numerics/tensor/host-tensor.ts";

interface Created {
  readonly extents: readonly Scalar[];
  readonly dtype: DType;
}

const created = {
  ...local,
  operands: [0, 0],
  isView: false,
  dtype: ({ dtype }: Created) => dtype,
  shape: ({ extents }: Created): OutputAxes => ({
    axes: extents.map((extent) => ({ extent, iterType: "iteration" })),
  }),
  pairs: (): readonly AxisPair[] => [],
  flops: () => 0,
  work: (_: unknown, { output }: Shapes) => elementWork * elementCount(output),
} as const;

/** The axes and dtype that make `output`. */
function createdLike({ domain, dtype }: Tensor): Created {
  return { extents: withoutReductions(domain.logical).map(({ extent }) => extent), dtype };
}

// A tensor of one value.

export interface FullOp extends OpBase {
  readonly kind: "Full";
  /** As JavaScript writes the number: `0.5`, `-0`, `Infinity`. Of bool `0` or `1`. */
  readonly value: string;
}

/** Throws `bad-argument` for a value that the dtype does not have. */
export function fullSpec(
  extents: readonly Scalar[],
  value: number | bigint | boolean,
  dtype: DType,
  place: Call,
): SpecOf<FullOp> {
  const text = numberText(typeof value === "boolean" ? Number(value) : value);
  if (dtypes[dtype].family !== "bool") requireNumberFits({ position: 0, text }, dtype, place);
  else if (text !== "0" && text !== "1") rejectBool(text, place);
  return { kind: "Full", value: text, extents, dtype };
}

function rejectBool(found: string, place: Call): never {
  return reject(place, "bad-argument", "a tensor of bool is filled with a number", {
    found,
    expected: "true, false, 0 or 1",
    help: "pass true or false",
  });
}

export const fullRow: OpRow<FullOp> = {
  ...created,
  standalone: false,
  respec: ({ value }, _, output) => ({ kind: "Full", value, ...createdLike(output) }),
};

// `start + i * step` along one axis, where i is the index in the whole tensor.

export interface IotaOp extends OpBase {
  readonly kind: "Iota";
  readonly start: Scalar;
  readonly step: Scalar;
}

/** Throws `dtype-mismatch`. */
export function iotaSpec(extent: Scalar, start: Scalar, step: Scalar, dtype: DType, place: Call): SpecOf<IotaOp> {
  if (dtype === "int" || dtype === "int64") return { kind: "Iota", start, step, extents: [extent], dtype };
  return reject(place, "dtype-mismatch", "iota counts in integers", {
    found: dtype,
    expected: "int or int64",
    help: `convert its result: cast(iota(...), "${dtype}")`,
  });
}

export const iotaRow: OpRow<IotaOp> = {
  ...created,
  standalone: true,
  respec: ({ start, step }, _, output) => ({ kind: "Iota", start, step, ...createdLike(output) }),
};

// Random numbers by counting (functions/philox.ts). Operand 0 is the seed, without axes; operand k + 1 is a vector along
// axis k of the output. The sum of the vectors' elements is the index of an element in the whole tensor. All operands are
// int64.

export interface RandomBitsOp extends OpBase {
  readonly kind: "RandomBits";
  /** Tells ops of one seed apart. */
  readonly offset: number;
  readonly form: RandomForm;
}

/** In WebAssembly 8 ns per element, where exp in JavaScript, whose work is 128, takes 14. */
const blockWork = 80;

const dtypeOf: { readonly [K in RandomForm["kind"]]: DType } = { bits: "int", uniform: "float", below: "bool" };

export const randomBitsRow: OpRow<RandomBitsOp> = {
  ...elementwise,
  operands: [1, Number.MAX_SAFE_INTEGER],
  standalone: false,
  dtype: ({ form }, operands, place) => {
    for (const operand of operands) requireInt64(operand, place);
    return dtypeOf[form.kind];
  },
  shape: (_, operands, place) => ({
    axes: operands.flatMap((operand, i) => {
      if (rankOf(operand) !== Math.min(i, 1)) rejectRank(operand, i, place);
      return withoutReductions(operand.domain.logical);
    }),
  }),
  respec: (op) => op,
  pairs: (_, operands, output) =>
    operands.flatMap((axes, operand) => axes.map((axis) => pair(operand, axis, at(output, operand - 1)))),
  work: (_, { output }) => blockWork * elementCount(output),
};

function requireInt64({ id, dtype }: Tensor, place: Call): void {
  if (dtype === "int64") return;
  reject(place, "dtype-mismatch", "a seed or index of random numbers is not int64", {
    found: `T${id} ${dtype}`,
    expected: "int64",
    help: 'make the seed an input: fusion.input([], "int64"), or convert it with cast(seed, "int64")',
  });
}

function rejectRank(operand: Tensor, position: number, place: Call): never {
  return reject(place, {
    code: "shape-mismatch",
    message: position === 0 ? "a seed has axes" : "an index of random numbers is not a vector",
    found: shapeText(operand),
    expected: position === 0 ? "a tensor without axes" : "one axis",
    help: "give a seed without axes, and a vector for each axis of the result",
  });
}
