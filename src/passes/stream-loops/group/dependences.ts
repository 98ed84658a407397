/**
 * Which statements of a straight list must come before which: an op after what writes its operands, and in hand-built programs,
 * where a tensor may be written twice, also a write after the reads and writes before it. A slice counts as what it is a slice of.
 */
import type { TensorId } from "../../../ir/domain.ts";
import type { Statement } from "../../../host/nodes.ts";
import { accessesOf } from "../../../host/traverse.ts";

/** predecessors[i]: positions of the statements that statement i must follow, without repetition, ascending. */
export function dependences(
  statements: readonly Statement[],
  ownerOf: (tensor: TensorId) => TensorId,
): readonly (readonly number[])[] {
  const writer = new Map<TensorId, number>();
  const readers = new Map<TensorId, number[]>();
  return statements.map((statement, position) => {
    const before = new Set<number>();
    const { reads, writes } = accessesOf(statement);
    for (const tensor of reads.map(ownerOf)) {
      const written = writer.get(tensor);
      if (written !== undefined) before.add(written);
      const known = readers.get(tensor);
      if (known === undefined) readers.set(tensor, [position]);
      else known.push(position);
    }
    for (const tensor of writes.map(ownerOf)) {
      const written = writer.get(tensor);
      if (written !== undefined) before.add(written);
      for (const reader of readers.get(tensor) ?? []) before.add(reader);
      writer.set(tensor, position);
      readers.set(tensor, []);
    }
    before.delete(position);
    return [...before].sort((a, b) => a - b);
  });
}
