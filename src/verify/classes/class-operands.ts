/** The operands of one rank's commands: inside their buffers, and sharing bytes only where the command allows it. */
import { accesses } from "../../commands/accesses.ts";
import { isWork } from "../../commands/command.ts";
import type { Program } from "../../commands/program.ts";
import { at } from "../../support/invariant.ts";
import { illegalOverlap, repeatedOutput } from "../check/in-place.ts";
import { sizeOf, spanOf } from "../check/shared-bytes.ts";

export function operandsFit(program: Program, rank: number): boolean {
  return at(program.ranks, rank).commands.every((command, index) => {
    if (!isWork(command.kind)) return true;
    if (repeatedOutput(program, command) !== null) return false;
    const { reads, writes } = accesses(program, rank, index);
    const touched = [...reads, ...writes].filter((region) => sizeOf(region) > 0);
    const areInside = touched.every(
      (region) => region.offset >= 0 && region.offset + spanOf(region) <= at(program.buffers, region.buffer).bytes,
    );
    const shares = touched.some(({ buffer }, i) => touched.some((other, j) => j < i && other.buffer === buffer));
    return areInside && (!shares || illegalOverlap(program, rank, index) === null);
  });
}
