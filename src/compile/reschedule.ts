/**
 * One source under many schedules: it is lowered, recorded and linked once, and no rewrite runs twice on the same
 * Program.
 */
import type { Program } from "../commands/program.ts";
import { applySchedule, rewriteOrder, type ScheduleOptions } from "../schedule/schedule.ts";
import type { AnyCompilation } from "./compile.ts";

/** Compiles the source of `compilation` under a schedule, without verifying the result. */
export function rescheduler(compilation: AnyCompilation): (schedule: ScheduleOptions) => AnyCompilation {
  const rewritten = new Map<Program, Map<string, Program>>();
  const rewrite = (program: Program, option: ScheduleOptions): Program => {
    const known = rewritten.get(program) ?? new Map<string, Program>();
    rewritten.set(program, known);
    const key = JSON.stringify(option);
    const result = known.get(key) ?? applySchedule(program, option);
    known.set(key, result);
    return result;
  };
  return (schedule) => {
    const program = rewriteOrder.reduce((left, name) => {
      const value = schedule[name];
      return value === undefined || value === false ? left : rewrite(left, { [name]: value });
    }, compilation.recorded);
    const options = { ...compilation.options, schedule };
    return { ...compilation, options, program, report: null, reported: program };
  };
}
