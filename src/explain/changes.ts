/** What to change, for the command line and the report page: what other options gain, fixes, and the choice's candidates. */
import type { LoopRefusal } from "../passes/stream-loops/loop-refusals.ts";
import { percentText } from "../support/quantities.ts";
import type { ScheduleCandidate } from "../tune/choose/candidates.ts";
import type { Considered } from "../tune/choose/decide.ts";
import type { Cause } from "./causes.ts";
import type { ExplainedRun } from "./explain-run.ts";
import type { Explanation } from "./explain.ts";
import { candidateFlags, changeFlags } from "./flags-text.ts";

/** The program with other flags. */
export interface Change {
  readonly flags: string;
  /** Predicted; null if it is refused. */
  readonly milliseconds: number | null;
  /** The diagnostic's message; null if it compiles. */
  readonly refused: string | null;
}

/** The part of the run that a change has to gain to be worth it. */
const worthIt = 0.01;

/** What is left to say where no change is. */
export const noChange = "no other back end, protocol, form of loops or number of streams is predicted to gain 1 %";

/** The fastest first, refused ones last: the explanation's, and `others`. */
export function changesOf({ alternatives }: Explanation, others: readonly Change[] = []): readonly Change[] {
  const own = (alternatives ?? []).map(({ options, ...rest }): Change => ({ flags: changeFlags(options), ...rest }));
  return [...own, ...others].sort((a, b) => (a.milliseconds ?? Infinity) - (b.milliseconds ?? Infinity));
}

export function isWorthIt({ milliseconds }: Change, explanation: Explanation): boolean {
  return milliseconds !== null && gainOf(milliseconds, explanation) >= worthIt;
}

/** `31.1 % faster`. */
export function gainText(milliseconds: number, explanation: Explanation): string {
  const gain = gainOf(milliseconds, explanation);
  return `${percentText(Math.abs(gain))} ${gain >= 0 ? "faster" : "slower"}`;
}

/** The part of the predicted time. */
function gainOf(milliseconds: number, { run, predicted }: Explanation): number {
  return 1 - milliseconds / (predicted ?? run).milliseconds;
}

/** Which rules kept communication out of a loop; none where that costs less than a change has to gain. */
export function costlyRefusals({ run, refusals }: Explanation): readonly LoopRefusal[] {
  return timeOf(run, "notInLoop") < worthIt * run.milliseconds ? [] : refusals;
}

/** Milliseconds of the run with the cause; 0 without it. */
export function timeOf(run: ExplainedRun, cause: Cause): number {
  return run.causes.find((each) => each.cause === cause)?.milliseconds ?? 0;
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
