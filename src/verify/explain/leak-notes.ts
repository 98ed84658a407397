/**
 * Tensors whose memory is freed on one rank or path and kept on another. Kept memory stays until the Program is
 * released.
 */
import type { PlacedBuffer } from "../../commands/buffer.ts";
import { at } from "../../support/invariant.ts";
import type { RawFinding } from "./raw-finding.ts";
import { type Graph, nodeOf } from "../order/graph.ts";
import { placeOf, placeText } from "./places.ts";

interface Marks {
  readonly buffer: PlacedBuffer;
  readonly alloc: number;
  free: number | null;
}

export function leakNotes(graph: Graph): readonly RawFinding[] {
  const { program } = graph;
  const marks = new Map<number, Marks>();
  for (const { rank, commands } of program.ranks) {
    for (const [index, command] of commands.entries()) {
      if (command.kind !== "alloc" && command.kind !== "free") continue;
      const known = marks.get(command.buffer);
      const node = nodeOf(graph, rank, index);
      if (command.kind === "alloc" && known === undefined) {
        marks.set(command.buffer, { buffer: at(program.buffers, command.buffer), alloc: node, free: null });
      }
      if (command.kind === "free" && known !== undefined) known.free = node;
    }
  }
  return [...byTensor([...marks.values()])].flatMap(([tensor, all]): readonly RawFinding[] => {
    const kept = all.find(({ free }) => free === null);
    const freed = all.find(({ free }) => free !== null);
    if (kept === undefined || freed === undefined || freed.free === null) return [];
    const { rank, bytes } = kept.buffer;
    return [
      {
        code: "buffer-leaked",
        severity: "note",
        message: `${tensor} is freed on rank ${freed.buffer.rank} and kept on rank ${rank}`,
        visits: [freed.free, kept.alloc],
        memory: { rank, tensor, slice: tensor, bytes },
        found: `${placeText(placeOf(graph, kept.alloc))} without a Deallocate`,
        expected: "a Deallocate on every path of every rank, or on none",
        help: `free ${tensor} on rank ${rank} as well`,
        notes: [`freed: ${placeText(placeOf(graph, freed.free))}`],
        edge: null,
      },
    ];
  });
}

function byTensor(marks: readonly Marks[]): ReadonlyMap<string, readonly Marks[]> {
  const groups = new Map<string, Marks[]>();
  for (const mark of marks) {
    const known = groups.get(mark.buffer.name);
    if (known === undefined) groups.set(mark.buffer.name, [mark]);
    else known.push(mark);
  }
  return groups;
}
