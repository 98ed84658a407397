/** Ops without operands. */
import { type DType, dtypes } from "../numerics/dtype.ts";
import { numberOf, roundTo, wrap } from "./definitions.ts";
import type { RandomBitsOp } from "../ir/ops/op.ts";
import { elementAt, makeValue, type Value } from "./value.ts";

/** `text` is the number as JavaScript writes it. */
export function full(text: string, dtype: DType, shape: readonly number[]): Value {
  const number = dtype === "bool" ? Number(text) : numberOf(dtype, text);
  const element = dtypes[dtype].family === "float" ? roundTo(dtype, Number(number)) : number;
  return makeValue(dtype, shape, () => ({ element, bound: 0 }));
}

/** start + i step, wrapped to the dtype. */
export function iota(start: number, step: number, dtype: DType, shape: readonly number[]): Value {
  return makeValue(dtype, shape, (_, flat) => ({
    element: wrap(dtype, BigInt(start) + BigInt(flat) * BigInt(step)),
    bound: 0,
  }));
}

/** Philox 4x32-10 as its definition has it; `operands` are the seed, and for each axis a vector of parts of the index. */
export function randomBits(
  { offset, form }: Pick<RandomBitsOp, "offset" | "form">,
  operands: readonly Value[],
  dtype: DType,
  shape: readonly number[],
): Value {
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
