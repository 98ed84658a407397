/** Random inputs for measurements, because GEMMs of zeros run faster than real ones. */
import type { Prepared } from "../../src/backends/backend.ts";
import type { Program } from "../../src/commands/program.ts";
import { shardOf } from "../../src/executor/shard.ts";
import type { Fusion } from "../../src/ir/api/fusion.ts";
import type { Tensor as TensorView } from "../../src/ir/domain.ts";
import { shapeOf } from "../../src/ir/sizes.ts";
import { emptyTensor, type Tensor, tensorBytes } from "../../src/numerics/tensor/host-tensor.ts";
import { at } from "../../src/support/invariant.ts";
import { createRandom } from "../../src/support/random.ts";

/**
 * Random bits whose bfloat16 and float values have moderate size. A block of them is repeated, because drawing
 * gigabytes would take minutes.
 */
export function noise(f: Fusion): readonly Tensor[] {
  const data = f.data();
  const fill = createNoise(7);
  return data.inputs.map((id) => {
    const tensor = at(data.tensors, id);
    const made = emptyTensor(tensor.dtype, shapeOf(tensor, new Map()));
    fill(tensorBytes(made));
    return made;
  });
}

/** Fills bytes with the same noise whenever it is called. */
export function createNoise(seed: number): (bytes: Uint8Array) => void {
  const random = createRandom(seed);
  const piece = Uint16Array.from(
    { length: 1 << 20 },
    () => (random.uint32() & 0x80ff) | ((0x3e + random.integer(2)) << 8),
  );
  return (bytes) => {
    const words = new Uint16Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 2);
    for (let offset = 0; offset < words.length; offset += piece.length) {
      words.set(piece.subarray(0, Math.min(piece.length, words.length - offset)), offset);
    }
  };
}

/** Writes noise to each of a rank's inputs: the same to inputs of one position, in every program. */
export function writeNoise({ buffers }: Program, prepared: Prepared, rank: number): void {
  for (const { id, role, rank: owner, position, bytes } of buffers) {
    if (role !== "input" || owner !== rank || position === null) continue;
    const words = new Uint8Array(bytes);
    createNoise(100 * rank + position)(words);
    prepared.write(id, words);
  }
}

/** Writes one rank's shards of `whole`, a tensor per input. */
export function writeShards(
  f: Fusion,
  tensors: readonly TensorView[],
  { buffers }: Program,
  prepared: Prepared,
  rank: number,
  whole: readonly Tensor[] = noise(f),
): void {
  const data = f.data();
  for (const buffer of buffers) {
    if (buffer.role !== "input" || buffer.rank !== rank || buffer.position === null) continue;
    const tensor = at(tensors, at(data.inputs, buffer.position));
    const given = at(whole, buffer.position);
    prepared.write(buffer.id, shardOf(tensor, given.shape, tensorBytes(given), rank));
  }
}
