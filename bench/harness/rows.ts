/** Rows of the self-test: what each case of a part gave, on every rank. */
import type { World } from "../../src/launch/join-world.ts";
import type { LoweringOptions } from "../../src/passes/options.ts";
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
    const isBug = error instanceof Error && error.name !== "DiagnosticError";
    return { name, ok: false, text: isBug ? String(error.stack) : messageOf(error) };
  }
}

export function rowText({ name, ok, text }: Row): string {
  return `${ok ? "ok  " : "FAIL"} ${name}: ${text.split("\n").slice(0, 10).join("\n       ").slice(0, 1200)}`;
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Throws the first of the problems, if there are some. */
export function requireNone(problems: readonly string[]): void {
  if (problems.length > 0) throw new Error(`${problems.length} problems: ${problems.slice(0, 6).join("; ")}`);
}

/** A way to run a case: by its options, eager or as a graph. */
interface Way<L> {
  readonly lowering: L;
  readonly graph: "off" | "on";
  readonly label: string;
}

export function waysOf<L extends Partial<LoweringOptions>>(lowerings: readonly L[]): readonly Way<L>[] {
  return lowerings.flatMap((lowering) => {
    const { backend, protocol, p2p, insertReshardingAfter, interStreamSync } = lowering;
    const words = [
      backend,
      protocol,
      p2p,
      insertReshardingAfter === true ? "resharding after" : null,
      interStreamSync === true ? "streams synchronized" : null,
    ].filter(Boolean);
    return (["off", "on"] as const).map((graph) => ({ lowering, graph, label: `${words.join(", ")}, graph ${graph}` }));
  });
}

/**
 * Whether the ranks can run the next case together: no rank has given up, and the last case ended in the same way on
 * all ranks. `done`: whether this rank finished the case.
 */
export async function goesOn(world: World, done = true): Promise<boolean> {
  const state = world.signal.aborted ? 2 : done ? 1 : 0;
  const states = await world.allGather(Uint8Array.of(state));
  return states.every(([each]) => each === state && each !== 2);
}

/** By run: the figure of the rank with the greatest. */
export async function slowest(world: World, own: readonly number[]): Promise<readonly number[]> {
  const all = await world.allGather(new Uint8Array(Float64Array.from(own).buffer));
  const figures = all.map((bytes) => new Float64Array(bytes.slice().buffer));
  return own.map((_, i) => Math.max(...figures.map((each) => at(each, i))));
}
