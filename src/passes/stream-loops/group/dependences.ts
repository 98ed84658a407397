/**
 * Which statements of a straight list must precede which. An op follows the statements that write its operands. In a
 * hand-built program, where a tensor may be written twice, a write also follows earlier reads and writes.
 */
import type { TensorId } from "../../../ir/domain.ts";
import type { Statement } from "../../../host/nodes.ts";
import { accessesOf, walk } from "../../../host/traverse.ts";

/**
 * The tensor whose memory a tensor shares: a slice, in a hand-built program, shares that of the tensor it is a slice
 * of.
 */
export function viewOwners(body: readonly Statement[]): (tensor: TensorId) => TensorId {
  const viewed = new Map<TensorId, TensorId>();
  for (const statement of walk(body)) {
    if (statement.kind === "HirAliasSelect") viewed.set(statement.output, statement.input);
  }
  return (tensor) => {
    let owner = tensor;
    for (let next = viewed.get(owner); next !== undefined; next = viewed.get(owner)) owner = next;
    return owner;
  };
}

/**
 * For each statement the positions of those that it must follow, ascending. Tensors with one owner count as one tensor.
 */
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
