/** Bytes in use on each device over a run: its inputs and outputs, and what its allocations have not freed yet. */
import { type Program, reservedBytes } from "../../commands/program.ts";
import { at } from "../../support/invariant.ts";
import type { MemoryCurve } from "../data/timeline-data.ts";

/** `timeOf`: when a command of a rank ran; null if it never did. */
export function memoryCurves(
  { ranks, buffers }: Program,
  timeOf: (rank: number, index: number) => number | null,
): readonly MemoryCurve[] {
  const resident = ranks.map(() => 0);
  const allocated = new Set<number>();
  for (const { commands } of ranks) {
    for (const command of commands) if (command.kind === "alloc") allocated.add(command.buffer);
  }
  for (const { id, rank, bytes } of buffers) if (!allocated.has(id)) resident[rank] = at(resident, rank) + bytes;
  return ranks.map((own): MemoryCurve => {
    const { rank, commands } = own;
    const changes = commands.flatMap((command, index) => {
      if (command.kind !== "alloc" && command.kind !== "free") return [];
      const { bytes } = at(buffers, command.buffer);
      const time = timeOf(rank, index);
      return time === null ? [] : [{ time, bytes: command.kind === "alloc" ? bytes : -bytes }];
    });
    // At one moment memory is freed before it is taken again.
    changes.sort((a, b) => a.time - b.time || a.bytes - b.bytes);
    let used = at(resident, rank);
    const points = [{ time: 0, bytes: used }];
    for (const { time, bytes } of changes) {
      used += bytes;
      const last = at(points, points.length - 1);
      if (last.time === time) last.bytes = used;
      else points.push({ time, bytes: used });
    }
    return {
      rank,
      time: Float64Array.from(points, (point) => point.time),
      bytes: Float64Array.from(points, (point) => point.bytes),
      peak: points.reduce((most, point) => Math.max(most, point.bytes), 0),
      resident: at(resident, rank),
      reserved: reservedBytes(own),
    };
  });
}
