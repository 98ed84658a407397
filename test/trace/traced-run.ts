/**
 * Runs a Program on the machine under a separate clock, on which every start and end of a command takes one
 * millisecond.
 */
import type { Program } from "../../src/commands/program.ts";
import { createMachine, type MachineOptions } from "../../src/machine/machine.ts";
import { at } from "../../src/support/invariant.ts";
import type { TraceEvent } from "../../src/trace/event-table.ts";
import { createReferenceCompute } from "../machine/reference-compute.ts";

/** The trace as a back end gives it, in order of start. */
export function tracedRun(program: Program, options: MachineOptions = {}): readonly TraceEvent[] {
  let clock = 0;
  const starts = new Map<string, number>();
  const moves = new Map<string, number>();
  const events: TraceEvent[] = [];
  const observer = {
    start: (rank: number, command: number): void => void starts.set(`${rank}.${command}`, clock++),
    moved: (rank: number, command: number): void => void moves.set(`${rank}.${command}`, clock++),
    end: (rank: number, command: number): void => {
      const start = starts.get(`${rank}.${command}`);
      if (start === undefined) throw new Error(`command ${command} of rank ${rank} ends before it starts`);
      const { stream } = at(at(program.ranks, rank).commands, command);
      events.push({ rank, stream, command, start, end: moves.get(`${rank}.${command}`) ?? clock++ });
    },
  };
  createMachine(program, createReferenceCompute(program), { ...options, observer }).run();
  return events.toSorted((a, b) => a.start - b.start);
}
