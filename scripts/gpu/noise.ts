/** Random inputs for measurements, because GEMMs of zeros run faster than real ones. */
import type { Fusion } from "../../src/ir/api/fusion.ts";
import { shapeOf } from "../../src/ir/sizes.ts";
import { emptyTensor, type Tensor } from "../../src/numerics/tensor/host-tensor.ts";
import { at } from "../../src/support/invariant.ts";
import { createRandom } from "../../src/support/random.ts";

/**
 * Random bits whose bfloat16 and float values have moderate size. A block of them is repeated, because drawing
 * gigabytes would take minutes.
 */
export function noise(f: Fusion): readonly Tensor[] {
  const data = f.data();
  const random = createRandom(7);
  const piece = Uint16Array.from(
    { length: 1 << 20 },
    () => (random.uint32() & 0x80ff) | ((0x3e + random.integer(2)) << 8),
  );
  return data.inputs.map((id) => {
    const tensor = at(data.tensors, id);
    const made = emptyTensor(tensor.dtype, shapeOf(tensor, new Map()));
    const words = new Uint16Array(made.data.buffer, made.data.byteOffset, made.data.byteLength / 2);
    for (let offset = 0; offset < words.length; offset += piece.length) {
      words.set(piece.subarray(0, Math.min(piece.length, words.length - offset)), offset);
    }
    return made;
  });
}
