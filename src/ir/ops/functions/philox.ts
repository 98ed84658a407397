/**
 * Random words by Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011): ten rounds of
 * multiplications and exclusive ors turn a counter of four words and a key of two into four random words.
 *
 *   key       low and high word of the seed
 *   counter   low and high word of index >> 2, low and high word of the op's offset
 *   number    word index & 3
 *
 * The index is that of the element in the whole tensor, so no sharding, chunk or schedule changes a bit. Four neighbours
 * share a block, which each of them computes.
 */
import {
  apply,
  choose,
  constant,
  convert,
  type Expression,
  operand,
  type ScalarType,
} from "../../../numerics/scalar/expression.ts";
import type { Append } from "../../../numerics/scalar/split-shared.ts";

/** What an op makes of the random words. */
export type RandomForm =
  /** The words, as int. */
  | { readonly kind: "bits" }
  /** Their upper 24 bits times 2^-24, as float: in [0, 1). */
  | { readonly kind: "uniform" }
  /** Whether the word, without a sign, is below `limit`, which is at most 2^32. */
  | { readonly kind: "below"; readonly limit: number };

const rounds = 10;
const multipliers = [0xd2511f53, 0xcd9e8d57] as const;
const keySteps = [0x9e3779b9, 0xbb67ae85] as const;

const word = (value: number): Expression => constant("i32", value | 0);
const value = (type: ScalarType, index = 0): Expression => operand(type, index);
const lowWord = (of: Expression): Expression => convert("i32", of);
const shifted = (of: Expression, bits: number): Expression => apply("shr", of, constant("i64", bits));

/** One element. `seed` and `parts`, whose sum is the index, are numbers of i64 values. */
export function appendRandom(
  append: Append,
  seed: number,
  parts: readonly number[],
  { offset, form }: { readonly offset: number; readonly form: RandomForm },
): number {
  const sum = apply("add", value("i64"), value("i64", 1));
  const [first, ...others] = parts.length === 0 ? [append(constant("i64", 0))] : parts;
  const index = others.reduce((left, right) => append(sum, left, right), first ?? seed);
  let key = [append(lowWord(value("i64")), seed), append(lowWord(shifted(value("i64"), 32)), seed)] as const;
  let counter = [
    append(lowWord(shifted(value("i64"), 2)), index),
    append(lowWord(shifted(value("i64"), 34)), index),
    append(word(offset)),
    append(word(Math.floor(offset / 2 ** 32))),
  ] as const;
  for (let round = 0; round < rounds; round++) {
    const [a, b, c, d] = counter;
    counter = [
      append(mixed(multipliers[1]), c, b, key[0]),
      append(apply("mul", value("i32"), word(multipliers[1])), c),
      append(mixed(multipliers[0]), a, d, key[1]),
      append(apply("mul", value("i32"), word(multipliers[0])), a),
    ];
    if (round === rounds - 1) break;
    key = [
      append(apply("add", value("i32"), word(keySteps[0])), key[0]),
      append(apply("add", value("i32"), word(keySteps[1])), key[1]),
    ];
  }
  const chosen = append(chooseWord(), ...counter, index);
  return form.kind === "bits" ? chosen : append(formed(form), chosen);
}

/** The high word of the product of operand 0 and the multiplier, with operands 1 and 2 by exclusive or. */
function mixed(multiplier: number): Expression {
  const high = apply("mulHigh", value("i32"), word(multiplier));
  return apply("xor", apply("xor", high, value("i32", 1)), value("i32", 2));
}

/** Of operands 0 to 3, the one that the index, operand 4, selects. */
function chooseWord(): Expression {
  const position = apply("and", lowWord(value("i64", 4)), word(3));
  const [a, b, c, d] = [0, 1, 2, 3].map((i) => value("i32", i));
  if (a === undefined || b === undefined || c === undefined || d === undefined) return word(0);
  const upper = choose([position, "eq", word(2)], c, d);
  return choose([position, "eq", word(0)], a, choose([position, "eq", word(1)], b, upper));
}

function formed(form: Exclude<RandomForm, { kind: "bits" }>): Expression {
  if (form.kind === "uniform") {
    const upper = apply("and", apply("shr", value("i32"), word(8)), word(0xffffff));
    return apply("mul", convert("f32", upper), constant("f32", 2 ** -24));
  }
  if (form.limit >= 2 ** 32) return word(1);
  // With the sign bit flipped, words without a sign compare as words with one.
  const flipped = apply("xor", value("i32"), word(2 ** 31));
  return choose([flipped, "lt", word(form.limit - 2 ** 31)], word(1), word(0));
}
