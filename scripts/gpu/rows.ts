/** Shared by the parts of the self-test. */
import type { World } from "../../src/launch/join-world.ts";

export interface Row {
  readonly name: string;
  readonly ok: boolean;
  readonly text: string;
  /** The number of cases in the row; 1 if omitted. */
  readonly cases?: number;
}

export interface PartContext {
  readonly world: World;
}

/** A row of what `run` returns, or of its error. */
export async function rowOf(name: string, run: () => Promise<string> | string): Promise<Row> {
  try {
    return { name, ok: true, text: await run() };
  } catch (error) {
    const text =
      error instanceof Error
        ? error.name === "DiagnosticError"
          ? error.message
          : `${error.stack}`
        : `${String(error)}`;
    return { name, ok: false, text };
  }
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? NaN;
}
