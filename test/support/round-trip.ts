/**
 * Whether a host program survives its own dump in every style that says all: the same text again, and the same commands
 * on every rank for the same sizes.
 */
import { expect } from "vitest";
import {
  type CommandList,
  DiagnosticError,
  type HostProgram,
  parse,
  print,
  record,
  type RecordOptions,
} from "@braid-compiler/braid";

/** `null` if the program cannot be recorded; its diagnostics must then be the same too. */
function recorded(program: HostProgram, options: RecordOptions): CommandList | readonly string[] {
  try {
    return record(program, options);
  } catch (error) {
    if (error instanceof DiagnosticError) return error.diagnostics.map(({ message }) => message);
    throw error;
  }
}

const styles = ["2025-10", "2026-01"] as const;

/** Reads back what `print` prints and compares; `runs` are the ranks and sizes that are recorded. */
export function expectRoundTrip(program: HostProgram, runs: readonly RecordOptions[]): HostProgram {
  const [first, ...others] = styles.map((style) => {
    const text = print(program, { style });
    const read = parse(text, { roots: style === "2026-01" ? "positions" : "devices" });
    expect(print(read, { style })).toBe(text);
    return read;
  });
  if (first === undefined) throw new Error("a style");
  for (const options of runs) {
    const commands = recorded(first, options);
    expect(commands).toEqual(recorded(program, options));
    for (const other of others) expect(recorded(other, options)).toEqual(commands);
  }
  return first;
}
