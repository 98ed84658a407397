/**
 * Seeded random tensors for checks. A seed gives the same tensors on every machine.
 * uniform: floats in [-1, 1), rounded to the dtype.
 * small-integers: floats are whole numbers in [-8, 8], too, so that long sums and products stay exact and results
 * compare bit for bit. Integers are in [-8, 8]; bool is 0 or 1 with equal probability.
 * special: as uniform, with one element in eight from the edges of the dtype: negative zero, subnormals, large numbers.
 * Tensors of at least 8 elements also have NaN, infinities and the largest numbers at a few places; of integers, the
 * ends of the range and a root of it. These determine the results that they reach, so they must leave others to compare.
 */
import { type DType, dtypes } from "../numerics/dtype.ts";
import {
  emptyTensor,
  type Tensor,
  type Elements,
  elementsOf,
  type Value as Element,
} from "../numerics/tensor/host-tensor.ts";
import { at } from "../support/invariant.ts";
import type { Random } from "../support/random.ts";

export type RandomMode = "uniform" | "small-integers" | "special";

export interface TensorShape {
  readonly dtype: DType;
  readonly shape: readonly number[];
  /** Of integers that are indices: they are at least 0 and below it, but for special values. */
  readonly limit?: number;
}

/** One tensor per entry, generated in order. */
export function randomInputs(tensors: readonly TensorShape[], random: Random, mode: RandomMode): Tensor[] {
  return tensors.map((tensor) => randomTensor(tensor, random, mode));
}

export function randomTensor({ dtype, shape, limit }: TensorShape, random: Random, mode: RandomMode): Tensor {
  const tensor = emptyTensor(dtype, shape);
  const elements = elementsOf(tensor.dtype, tensor.data);
  const draw = limit === undefined ? (random: Random) => drawn(dtype, random, mode) : indexDraw(dtype, limit);
  for (let i = 0; i < elements.length; i++) elements.set(i, draw(random));
  if (mode === "special") setSpecial(elements, random);
  return tensor;
}

function indexDraw(dtype: DType, limit: number): (random: Random) => Element {
  return (random) => {
    const index = limit === 0 ? 0 : random.integer(limit);
    return dtype === "int64" ? BigInt(index) : index;
  };
}

function setSpecial(elements: Elements, random: Random): void {
  const pick = (values: readonly Element[]): Element => at(values, random.integer(values.length));
  const { edges, rare } = specialsOf(elements.dtype);
  for (let i = 0; i < elements.length; i++) if (random.integer(8) === 0) elements.set(i, pick(edges));
  const places = Math.floor(elements.length / 8);
  for (const value of rare.slice(0, places)) elements.set(random.integer(elements.length), value);
}

interface Specials {
  /** For many elements. Sums of products of a few thousand do not overflow. */
  readonly edges: readonly Element[];
  /** Each for one element. */
  readonly rare: readonly Element[];
}

function specialsOf(dtype: DType): Specials {
  const { family, type, epsilon, lowest, most } = dtypes[dtype];
  if (family === "bool") return { edges: [0, 1], rare: [] };
  // Edges are small, because a program may cast integers to half and add them.
  if (type === "i32") return { edges: [0, 1, -1, 64, -64], rare: [46341, 2 ** 31 - 1, -(2 ** 31)] };
  if (type === "i64") return { edges: [0n, 1n, -1n, 64n, -64n], rare: [3037000500n, 2n ** 63n - 1n, -(2n ** 63n)] };
  const [normal, greatest] = [2 ** lowest, Number(most)];
  const subnormal = 2 * epsilon * normal;
  const large = 2 ** (type === "f64" ? 300 : greatest > 2 ** 100 ? 40 : 6);
  return {
    edges: [0, -0, 1, -1, subnormal, -subnormal, normal - subnormal, -normal, large, -large],
    rare: [NaN, Infinity, -Infinity, greatest, -greatest],
  };
}

const smallInteger = (random: Random): number => random.integer(17) - 8;
function drawn(dtype: DType, random: Random, mode: RandomMode): Element {
  const { family, type } = dtypes[dtype];
  if (family === "bool") return random.integer(2);
  if (family === "float" && mode !== "small-integers") return 2 * random.float() - 1;
  return type === "i64" ? BigInt(smallInteger(random)) : smallInteger(random);
}
