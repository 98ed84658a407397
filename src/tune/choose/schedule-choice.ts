/** The result of `choose`. */
import type { AnyCompilation, Compilation } from "../../compile/compile.ts";
import type { CompiledLayers } from "../regions/fewer-layers.ts";
import type { ScheduleCandidate } from "./candidates.ts";
import type { Considered } from "./decide.ts";

export interface ScheduleChoice<C extends AnyCompilation = Compilation> {
  /** The chosen schedule, compiled: the whole program, or that with `layers.more`. */
  readonly compilation: C;
  /** Null if the whole program was compiled. */
  readonly layers: CompiledLayers | null;
  /** Of several regions, only the name: `regions` has their schedules. */
  readonly chosen: ScheduleCandidate;
  /** Predicted time of a run of the chosen schedule. */
  readonly milliseconds: number;
  /** The part of that time by which it had to beat the serial form. */
  readonly margin: number;
  /**
   * All schedules that apply, the fastest first; of those that make the same Program the first. Of several regions,
   * those of the whole: by region, loops by region, serial.
   */
  readonly considered: readonly Considered[];
  /** The distinct regions of a program of several; empty for a program of one. */
  readonly regions: readonly RegionChoice[];
  /**
   * One line: what was chosen, its predicted time, and what it was compared with. Of several regions, one more line for
   * each distinct one.
   */
  readonly reason: string;
  /** What the predictions assume because the profile lacks it, each sentence once. */
  readonly assumptions: readonly string[];
}

/** The schedule of a region, and of all that are equal to it. */
export interface RegionChoice {
  /** The first region's first and last op, such as `T2 = linear(T0, T1) .. T3 = set(T2)`. */
  readonly ops: string;
  /** How often the program has it. */
  readonly count: number;
  readonly chosen: ScheduleCandidate;
  /** Predicted time of a run of the region alone. */
  readonly milliseconds: number;
  /** All schedules that apply, the fastest first. */
  readonly considered: readonly Considered[];
  /** One line: what was chosen, its predicted time, and what it was compared with. */
  readonly reason: string;
}
