/** The options of an executor with what `scheduleChoice: "auto"` chose put in: form, streams, copy lane and rewrites. */
import { chooseSchedule, candidateStreams, type ScheduleChoice } from "../tune/choose/choose.ts";
import { type ExecutorOptions, profileToChooseWith } from "./executor-options.ts";
import type { ProgramSource } from "../compile/program-source.ts";

export interface Chosen {
  readonly options: Omit<ExecutorOptions, "scheduleChoice" | "profile">;
  /** null where nothing was to be chosen. */
  readonly choice: ScheduleChoice | null;
}

/** Throws `bad-argument`, and what lowering and recording throw where no schedule applies. */
export function withChoice(source: ProgramSource, given: ExecutorOptions): Chosen {
  const chooseWith = profileToChooseWith(given);
  const { scheduleChoice: _, profile: __, ...options } = given;
  if (chooseWith === null) return { options, choice: null };
  const {
    devices,
    on: _on,
    streams: _streams,
    localRanks: _ranks,
    timeout: _timeout,
    verify: _verify,
    ...rest
  } = options;
  const { copyLane: _lane, schedule: _schedule, ...lowering } = rest;
  const choice = chooseSchedule(source, { devices, profile: chooseWith, lowering });
  const { lowering: own, copyLane, schedule } = choice.chosen;
  return { options: { ...options, ...own, copyLane, schedule, streams: candidateStreams }, choice };
}
