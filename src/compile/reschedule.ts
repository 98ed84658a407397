/**
 * One source under many schedules: it is lowered, recorded and linked once, and no rewrite runs twice on the same
 * Program while that is kept.
 */
import type { Program } from "../commands/program.ts";
import { createDraftReader } from "../schedule/draft/draft-reader.ts";
import { applySchedule, isAsked, rewriteOrder, scheduleApplies, type ScheduleOptions } from "../schedule/schedule.ts";
import type { AnyCompilation } from "./compile.ts";

export interface Rescheduler {
  /** Compiles the source under a schedule, without verifying the result. */
  readonly under: (schedule: ScheduleOptions) => AnyCompilation;
  /** Whether a rewrite of the schedule changes the recorded Program. */
  readonly applies: (schedule: ScheduleOptions) => boolean;
}

/** Some 150 MB. What was not used for longest is made again when asked for. */
const mostCommands = 500_000;

/** `most`: commands of all Programs that are kept. */
export function rescheduler(compilation: AnyCompilation, most = mostCommands): Rescheduler {
  const { recorded } = compilation;
  const reader = createDraftReader();
  const kept = createKept(most);
  return {
    under: (schedule) => {
      /** The options that changed something so far. */
      let path = "";
      let program = recorded;
      for (const name of rewriteOrder) {
        const value = schedule[name];
        if (!isAsked(value)) continue;
        const option = { [name]: value };
        const key = `${path} ${JSON.stringify(option)}`;
        const known = kept.get(key);
        const left = program;
        program = known === undefined ? applySchedule(left, option, reader) : (known ?? left);
        kept.put(key, program === left ? null : program);
        if (program !== left) path = key;
      }
      const options = { ...compilation.options, schedule };
      return { ...compilation, options, program, report: null, reported: program };
    },
    applies: (schedule) => scheduleApplies(recorded, schedule, reader),
  };
}

/** What rewrites made; null where they changed nothing. */
interface Kept {
  readonly get: (key: string) => Program | null | undefined;
  readonly put: (key: string, made: Program | null) => void;
}

function createKept(most: number): Kept {
  const kept = new Map<string, Program | null>();
  let commands = 0;
  const drop = (key: string): void => {
    commands -= sizeOf(kept.get(key));
    kept.delete(key);
  };
  return {
    get: (key) => kept.get(key),
    put: (key, made) => {
      drop(key);
      kept.set(key, made);
      commands += sizeOf(made);
      for (const oldest of kept.keys()) {
        if (commands <= most) break;
        drop(oldest);
      }
    },
  };
}

function sizeOf(program: Program | null | undefined): number {
  return program?.ranks.reduce((sum, { commands }) => sum + commands.length, 0) ?? 0;
}
