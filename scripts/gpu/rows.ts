/** Shared by the parts of the self-test and the measurements. */
import type { World } from "../../src/launch/join-world.ts";
import { at } from "../../src/support/invariant.ts";

export interface Row {
  readonly name: string;
  readonly ok: boolean;
  readonly text: string;
  /** The number of cases in the row; 1 if omitted. */
  readonly cases?: number;
}

export interface PartContext {
  readonly world: World;
  /** Which cases of `attention` are wanted, by their names; all if omitted. */
  readonly only?: RegExp;
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

/** By run: the time of the slowest rank. */
export async function slowest(world: World, own: readonly number[]): Promise<readonly number[]> {
  const all = await world.allGather(new Uint8Array(Float64Array.from(own).buffer));
  const times = all.map((bytes) => new Float64Array(bytes.slice().buffer));
  return own.map((_, i) => Math.max(...times.map((each) => at(each, i))));
}
