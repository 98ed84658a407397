/**
 * Seeded random tensors for checks. A seed gives the same tensors on every machine.
 * uniform: floats in [-1, 1), rounded to the dtype.
 * small-integers: floats are whole numbers in [-8, 8], too, so that long sums and products stay exact and results
 * compare bit for bit. Integers are always in [-8, 8]; bool is 0 or 1 with equal probability.
 */
import type { DType } from "../numerics/dtype.ts";
import { emptyTensor, type Tensor } from "../numerics/tensor/host-tensor.ts";
import { elementsOf, type Value as Element } from "../numerics/tensor/storage.ts";
import type { Random } from "../support/random.ts";

export type RandomMode = "uniform" | "small-integers";

export interface TensorShape {
  readonly dtype: DType;
  readonly shape: readonly number[];
}

/** One tensor per entry, generated in order. */
export function randomInputs(tensors: readonly TensorShape[], random: Random, mode: RandomMode): Tensor[] {
  return tensors.map((tensor) => randomTensor(tensor, random, mode));
}

export function randomTensor({ dtype, shape }: TensorShape, random: Random, mode: RandomMode): Tensor {
  const tensor = emptyTensor(dtype, shape);
  const elements = elementsOf(tensor.dtype, tensor.data);
  const draw = draws[dtype];
  for (let i = 0; i < elements.length; i++) elements.set(i, draw(random, mode));
  return tensor;
}

const smallInteger = (random: Random): number => random.integer(17) - 8;
const float = (random: Random, mode: RandomMode): number =>
  mode === "uniform" ? 2 * random.float() - 1 : smallInteger(random);

const draws: { readonly [D in DType]: (random: Random, mode: RandomMode) => Element } = {
  double: float,
  float,
  half: float,
  bfloat16: float,
  int: smallInteger,
  int64: (random) => BigInt(smallInteger(random)),
  bool: (random) => random.integer(2),
};
