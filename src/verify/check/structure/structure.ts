/**
 * Whether a value of type Program has the structure that the proof relies on: ids in range, operands that fit their
 * kernels, buffers within their arenas, peers' buffers in symmetric memory, and transfers whose halves fit. Programs of
 * `link` and of rewrites have it; a Program made or changed by hand may not.
 */
import type { Program } from "../../../commands/program.ts";
import { type Diagnostic, DiagnosticError } from "../../../diagnostics/diagnostic.ts";
import { at, InvariantError } from "../../../support/invariant.ts";
import { checkRank } from "./commands.ts";
import { invalid } from "./demand.ts";
import { allocatedBuffers } from "../blocks.ts";
import { checkApart, checkTables } from "./tables.ts";
import { checkTransfer } from "./transfers.ts";

/**
 * The first fault: `program-malformed`, or `transfer-mismatch` between the halves of a transfer. Null if there is none.
 */
export function structureProblem(program: Program): Diagnostic | null {
  try {
    checkTables(program);
    checkApart(program, allocatedBuffers(program));
    for (const rank of program.ranks) checkRank(program, rank);
    for (const [id, transfer] of program.transfers.entries()) checkTransfer(program, transfer, id);
    return null;
  } catch (error) {
    if (error instanceof DiagnosticError) return at(error.diagnostics, 0);
    // A value of another type than Program declares may fail anywhere that it is read.
    if (error instanceof TypeError || error instanceof RangeError || error instanceof InvariantError) {
      return invalid("a field", "a value of another type, or none", "a value of type Program");
    }
    throw error;
  }
}
