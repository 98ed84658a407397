/** Elements of a float or bfloat16 tensor as float32 numbers, fast enough for millions of them. */
import type { Tensor } from "../../../src/numerics/tensor/host-tensor.ts";
import { at, invariant } from "../../../src/support/invariant.ts";

export function numbersOf({ dtype, data }: Tensor, start: number, count: number): Float32Array {
  if (dtype === "float") return data.subarray(start, start + count);
  invariant(dtype === "bfloat16", "a dtype of large matrices", { dtype });
  const bits = new Uint32Array(count);
  for (let i = 0; i < count; i++) bits[i] = at(data, start + i) << 16;
  return new Float32Array(bits.buffer);
}
