/**
 * Replays the wrong ones among every `step`-th mutant of the programs, and counts what the verifier's schedules
 * show.
 */
import { link } from "../../../src/commands/link/link.ts";
import { mutants } from "./mutate.ts";
import type { SmallProgram } from "./programs.ts";
import { outputsOf, replayMutant } from "./replay.ts";

export interface ReplayCounts {
  /** The verifier finds them wrong. */
  readonly wrong: number;
  /** Some order of commands gives outputs unlike the intact program's. */
  readonly differs: number;
  /** One of the verifier's schedules does. */
  readonly shown: number;
}

export const noReplays: ReplayCounts = { wrong: 0, differs: 0, shown: 0 };

export interface ReplayTally {
  readonly replays: ReplayCounts;
  /** A program, a mutant and the fault in the verifier's interleavings. */
  readonly complaints: readonly string[];
}

export async function replayMutants(programs: readonly SmallProgram[], step: number): Promise<ReplayTally> {
  let replays = noReplays;
  const complaints: string[] = [];
  let number = 0;
  for (const { name, lists } of programs) {
    let intact: string | null = null;
    for (const { what, lists: changed } of mutants(lists)) {
      if (number++ % step !== 0) continue;
      intact ??= await outputsOf(link(lists), null);
      const replay = await replayMutant(intact, changed);
      if (replay === null) continue;
      replays = {
        wrong: replays.wrong + 1,
        differs: replays.differs + (replay.differs ? 1 : 0),
        shown: replays.shown + (replay.shown ? 1 : 0),
      };
      if (replay.complaint !== null) complaints.push(`${name}; ${what}: ${replay.complaint}`);
    }
  }
  return { replays, complaints };
}
