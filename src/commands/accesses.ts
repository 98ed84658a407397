/**
 * The regions that each command reads and writes: one row per kind. The verifier, the schedule's rewrites and the
 * traces take memory accesses only from here.
 */
import { dispatch, type RuleTable } from "../support/dispatch.ts";
import { at } from "../support/invariant.ts";
import type { BufferId, BufferRef } from "./buffer.ts";
import type { Command } from "./command.ts";
import { accumulates, type Operand } from "./kernel.ts";
import type { Program } from "./program.ts";
import { canonicalRegion, regionOf, regionOfOperand, type Region } from "./region.ts";
import type { View } from "./view.ts";

export interface Accesses {
  readonly reads: readonly Region[];
  readonly writes: readonly Region[];
}

const none: Accesses = { reads: [], writes: [] };

/** The tables that a command's operands refer to. */
export type Operands = Pick<Program, "kernels" | "buffers">;

const table: RuleTable<Command, Accesses, [Operands]> = {
  launch: ({ kernel, inputs, outputs }, { kernels }) => {
    const spec = at(kernels, kernel);
    const writes = operandRegions(outputs, spec.outputs);
    const reads = operandRegions(inputs, spec.inputs);
    return { reads: accumulates(spec) ? [...reads, ...writes] : reads, writes };
  },
  copy: ({ source, destination }) => ({ reads: [regionOf(source)], writes: [regionOf(destination)] }),
  transfer: ({ operation }) =>
    operation.kind === "collective"
      ? { reads: viewRegions(operation.input), writes: viewRegions(operation.output) }
      : {
          reads: operation.ops.flatMap(({ type, view }) => (type === "send" ? viewRegions(view) : [])),
          writes: operation.ops.flatMap(({ type, view }) => (type === "recv" ? viewRegions(view) : [])),
        },
  recordEvent: () => none,
  waitEvent: () => none,
  signal: () => none,
  waitSignal: () => none,
  // alloc and free leave the whole buffer undefined.
  alloc: ({ buffer }, program) => ({ reads: [], writes: [wholeBuffer(program, buffer)] }),
  free: ({ buffer }, program) => ({ reads: [], writes: [wholeBuffer(program, buffer)] }),
};

/** The regions that the command at `index` of `rank`'s list reads and writes, in own and peers' buffers. */
export function accesses(program: Program, rank: number, index: number): Accesses {
  return accessesOf(at(at(program.ranks, rank).commands, index), program);
}

/** The same for a command that is in no list. */
export function accessesOf(command: Command, operands: Operands): Accesses {
  return dispatch<Command, Accesses, [Operands]>(table, command, operands);
}

function operandRegions(refs: readonly BufferRef[], operands: readonly Operand[]): readonly Region[] {
  return refs.map((ref, i) => regionOfOperand(ref, at(operands, i)));
}

function viewRegions(view: View | null): readonly Region[] {
  return view === null ? [] : [regionOf(view)];
}

function wholeBuffer(program: Operands, buffer: BufferId): Region {
  return canonicalRegion(buffer, 0, [], at(program.buffers, buffer).bytes);
}
