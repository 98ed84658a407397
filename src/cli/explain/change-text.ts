/** What to change: the rules that kept communication out of loops, what other options gain, and the choice's candidates. */
import Table from "cli-table3";
import {
  candidateFlags,
  candidateRows,
  type Change,
  changesOf,
  gainText,
  isWorthIt,
  noChange,
  otherSizes,
  timeToBeat,
} from "../../explain/changes.ts";
import { countedText, equalEntries, withoutNumbers } from "../../explain/layers.ts";
import { fewRefusals, isTooSmall } from "../../explain/explain.ts";
import { costlyRefusals } from "../../explain/refusal-costs.ts";
import type { LoopRefusal } from "../../passes/stream-loops/loop-refusals.ts";
import { at } from "../../support/invariant.ts";
import { timeText } from "../../support/wording.ts";
import type { ScheduleCandidate } from "../../tune/choose/candidates.ts";
import type { Considered } from "../../tune/choose/decide.ts";
import { plainBorders, trimmedLines } from "../terminal/table-style.ts";
import type { ChunkChange, ExplainResult } from "./explain-file.ts";

export function changesText(result: ExplainResult): readonly string[] {
  return [...refusalsText(result), ...alternativesText(result), ...choiceText(result)];
}

function refusalsText({ flags: { all }, explanation }: ExplainResult): readonly string[] {
  // Only the first ops of a program know where they were written.
  const equal = equalEntries(
    explanation,
    (part) => (all ? part.refusals : costlyRefusals(part)),
    (refusal) => withoutNumbers(refusalText({ ...refusal, source: null })),
  );
  const shown = equal.slice(0, all ? equal.length : fewRefusals);
  const lines = shown.map(({ entries, count }) => {
    const first = at(entries, 0);
    const ops = entries.map(({ op }) => op);
    return refusalText({ ...first, op: countedText(count, ops) });
  });
  const more = equal.length - shown.length;
  return [...lines, ...(more > 0 ? [`and ${more} more: --print all has them`] : [])];
}

export function refusalText({ op, beside, because, source }: LoopRefusal): string {
  return `not in a loop: ${op}, beside ${beside}${source === null ? "" : ` (${source})`}: ${because}`;
}

const mostAlternatives = 3;

function alternativesText({ flags: { all }, explanation, chunks }: ExplainResult): readonly string[] {
  const { predicted, alternatives, choice } = explanation;
  if (alternatives === null && chunks.length === 0) {
    return choice === null && predicted !== null && !all ? ["to change: --print all predicts other options"] : [];
  }
  if (isTooSmall(explanation) && !all) {
    return choice !== null ? [] : [`to change: ${otherSizes} (--print all has what they gain here)`];
  }
  const toBeat = timeToBeat(explanation);
  const changes = changesOf(explanation, chunks.map(chunkChange));
  const shown = all ? changes : changes.filter((change) => isWorthIt(change, toBeat)).slice(0, mostAlternatives);
  // A choice has tried all but edits.
  if (shown.length === 0) return choice !== null ? [] : [`to change: ${noChange}`];
  return [
    "to change:",
    ...shown.map(({ change, milliseconds, refused }) =>
      milliseconds === null
        ? `  refused                  ${change}: ${refused ?? ""}`
        : `  ${`${gainText(milliseconds, toBeat)}, ${timeText(milliseconds)}`.padEnd(24)} ${change}`,
    ),
  ];
}

function chunkChange({ name, value, ...rest }: ChunkChange): Change {
  return { change: `--set ${name}=${value}`, ...rest };
}

/** The fastest candidates and the serial form, or all of them; of several regions, those of each. */
function choiceText({ flags: { all }, explanation: { choice, leftOut } }: ExplainResult): readonly string[] {
  if (choice === null) return [];
  const { considered, chosen, regions, reason } = choice;
  const tables =
    regions.length === 0
      ? candidateTable(considered, chosen, all)
      : all
        ? regions.flatMap((region) => ["", `${region.ops}:`, ...candidateTable(region.considered, region.chosen, all)])
        : [];
  const byHand = regions.length === 0 ? [`by hand: ${candidateFlags(chosen)}`] : [];
  return [
    "",
    `schedule: ${reason}`,
    ...tables,
    ...(all ? leftOut.map(({ name, because }) => `left out: ${name}: ${because}`) : []),
    ...byHand,
  ];
}

function candidateTable(considered: readonly Considered[], chosen: ScheduleCandidate, all: boolean): readonly string[] {
  const rows = candidateRows(considered, chosen, all);
  const table = new Table({ ...plainBorders, head: ["candidate", "predicted", "", ...(all ? ["by hand"] : [])] });
  for (const { name, milliseconds, because, flags } of rows) {
    table.push([name, timeText(milliseconds), because, ...(all ? [flags] : [])]);
  }
  const more = considered.length - rows.length;
  return [
    ...trimmedLines(table.toString()),
    ...(more > 0 ? [`and ${more} more: --print all has them`] : []),
    "candidates' times are corrected for what the model was measured to leave out; the time above is not",
  ];
}
