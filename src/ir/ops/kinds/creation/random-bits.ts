/**
 * Random numbers by counting (functions/philox.ts). Operand 0 is the seed, without axes; operand k + 1 is a vector along
 * axis k of the output. The sum of the vectors' elements is the index of an element in the whole tensor. All operands are
 * int64.
 */
import type { DType } from "../../../../numerics/dtype.ts";
import { at } from "../../../../support/invariant.ts";
import { type Tensor, withoutReductions } from "../../../domain.ts";
import { type Call, rankOf, reject, shapeText } from "../../call.ts";
import type { RandomForm } from "../../functions/philox.ts";
import type { OpBase, OpRow } from "../../row.ts";
import { countOf, elementwise, pair } from "../families.ts";

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
  work: (_, { output }) => blockWork * countOf(output),
};

function requireInt64({ id, dtype }: Tensor, place: Call): void {
  if (dtype === "int64") return;
  reject(place, {
    code: "dtype-mismatch",
    message: "a seed or index of random numbers is not int64",
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
