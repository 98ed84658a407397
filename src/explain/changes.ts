/** What to change, for the command line and the report page: what changes gain, and the choice's candidates. */
import { flagsText } from "../compile/options/flags-text.ts";
import { percentText } from "../support/wording.ts";
import { candidateStreams, type ScheduleCandidate } from "../tune/choose/candidates.ts";
import type { Considered } from "../tune/choose/decide.ts";
import { type Alternative, worthIt } from "./alternatives.ts";
import type { Explanation } from "./explain.ts";

/** As typed: flags to add or to leave out, or an edit of the program. */
export type Change = Omit<Alternative, "options">;

/** What to change where the sizes say nothing of larger ones. */
export const otherSizes = "the sizes; at those of real runs, changes gain other than here";

export function tooSmallText({ latencyShare }: Explanation): string {
  return `too small to judge: ${percentText(latencyShare ?? 0)} of the serial time is latency, which larger sizes do not add to`;
}

/** What is left to say where no change is. */
export const noChange = "no change that was tried is predicted to gain 1 %";

/** The fastest first, refused ones last: the explanation's, and `others`. */
export function changesOf({ alternatives }: Explanation, others: readonly Change[] = []): readonly Change[] {
  return [...(alternatives ?? []), ...others].sort(
    (a, b) => (a.milliseconds ?? Infinity) - (b.milliseconds ?? Infinity),
  );
}

/** The time that changes are compared with. */
export function timeToBeat({ run, predicted }: Explanation): number {
  return (predicted ?? run).milliseconds;
}

export function isWorthIt({ milliseconds }: Pick<Change, "milliseconds">, toBeat: number): boolean {
  return milliseconds !== null && 1 - milliseconds / toBeat >= worthIt;
}

/** `31.1 % faster`. */
export function gainText(milliseconds: number, toBeat: number): string {
  const gain = 1 - milliseconds / toBeat;
  return `${percentText(Math.abs(gain))} ${gain >= 0 ? "faster" : "slower"}`;
}

const mostCandidates = 5;

export interface CandidateRow {
  readonly name: string;
  readonly milliseconds: number;
  /** `chosen`, or why it is not. */
  readonly because: string;
  readonly flags: string;
}

/** The fastest candidates, the chosen one and the serial form; or all of them. */
export function candidateRows(
  considered: readonly Considered[],
  chosen: ScheduleCandidate,
  all: boolean,
): readonly CandidateRow[] {
  const fastest = considered.find(({ candidate }) => candidate.name === chosen.name);
  const isShown = ({ candidate }: Considered, place: number): boolean =>
    all || place < mostCandidates || candidate.name === chosen.name || candidate.name === "serial";
  return considered.filter(isShown).map(({ candidate, milliseconds, margin }) => {
    const slower = milliseconds / (fastest?.milliseconds ?? milliseconds) - 1;
    const because =
      candidate.name === chosen.name
        ? "chosen"
        : slower >= 0
          ? `${percentText(slower)} slower`
          : `faster than serial by less than its margin for errors of the model (${percentText(margin)})`;
    return { name: candidate.name, milliseconds, because, flags: candidateFlags(candidate) };
  });
}

/** The command line of a candidate. */
export function candidateFlags({ lowering, schedule }: ScheduleCandidate): string {
  return flagsText({ ...lowering, schedule, streams: candidateStreams });
}
