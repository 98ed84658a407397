/** Whether a host program survives its own dump: the same text again, and the same commands on every rank for the same sizes. */
import { expect } from "vitest";
import { type CommandList, DiagnosticError, type HostProgram, parse, print, record, type RecordOptions } from "braid";

/** `null` if the program cannot be recorded; its diagnostics must then be the same too. */
function recorded(program: HostProgram, options: RecordOptions): CommandList | readonly string[] {
  try {
    return record(program, options);
  } catch (error) {
    if (error instanceof DiagnosticError) return error.diagnostics.map(({ message }) => message);
    throw error;
  }
}

/** Reads back what `print` prints and compares; `runs` are the ranks and sizes that are recorded. */
export function expectRoundTrip(program: HostProgram, runs: readonly RecordOptions[]): HostProgram {
  const text = print(program);
  const read = parse(text);
  expect(print(read)).toBe(text);
  for (const options of runs) expect(recorded(read, options)).toEqual(recorded(program, options));
  return read;
}
