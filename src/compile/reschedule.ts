/**
 * One source under many schedules: it is lowered, recorded and linked once, and no rewrite runs twice on the same
 * Program.
 */
import type { Program } from "../commands/program.ts";
import { createDraftReader } from "../schedule/draft/draft-reader.ts";
import { applySchedule, rewriteOrder, scheduleApplies, type ScheduleOptions } from "../schedule/schedule.ts";
import type { AnyCompilation } from "./compile.ts";

export interface Rescheduler {
  /** Compiles the source under a schedule, without verifying the result. */
  readonly under: (schedule: ScheduleOptions) => AnyCompilation;
  /** Whether a rewrite of the schedule changes the recorded Program. */
  readonly applies: (schedule: ScheduleOptions) => boolean;
}

export function rescheduler(compilation: AnyCompilation): Rescheduler {
  const { recorded } = compilation;
  const reader = createDraftReader();
  const rewritten = new Map<Program, Map<string, Program>>();
  const rewrite = (program: Program, option: ScheduleOptions): Program => {
    const known = rewritten.get(program) ?? new Map<string, Program>();
    rewritten.set(program, known);
    const key = JSON.stringify(option);
    const result = known.get(key) ?? applySchedule(program, option, reader);
    known.set(key, result);
    return result;
  };
  return {
    under: (schedule) => {
      const program = rewriteOrder.reduce((left, name) => {
        const value = schedule[name];
        return value === undefined || value === false ? left : rewrite(left, { [name]: value });
      }, recorded);
      const options = { ...compilation.options, schedule };
      return { ...compilation, options, program, report: null, reported: program };
    },
    applies: (schedule) => scheduleApplies(recorded, schedule, reader),
  };
}
