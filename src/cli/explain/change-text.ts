/** What to change: the rules that kept communication out of loops, what other options gain, and the choice's candidates. */
import Table from "cli-table3";
import { flagOf, type OptionName, type OptionValue, rowOf } from "../../compile/options.ts";
import { printOption } from "../../compile/options/resolve.ts";
import type { Alternative, ChangedOptions } from "../../explain/alternatives.ts";
import type { Cause } from "../../explain/causes.ts";
import type { ExplainedRun } from "../../explain/explain-run.ts";
import { percentText, timeText } from "../../support/quantities.ts";
import { candidateStreams, type ScheduleCandidate } from "../../tune/choose/candidates.ts";
import type { Considered } from "../../tune/choose/decide.ts";
import { type CompileGiven, compileNames } from "../flags/compile-names.ts";
import { plainBorders, trimmedLines } from "../terminal/table-style.ts";
import type { ChunkChange, ExplainResult } from "./explain-file.ts";

export function changeText(result: ExplainResult): readonly string[] {
  return [...refusalsText(result), ...alternativesText(result), ...choiceText(result)];
}

/** Which rule kept communication out of a loop, where that costs time. */
function refusalsText({ flags: { all }, explanation: { run, refusals } }: ExplainResult): readonly string[] {
  if (!all && timeOf(run, "notInLoop") < 0.01 * run.milliseconds) return [];
  const shown = all ? refusals : refusals.slice(0, mostRefusals);
  const more = refusals.length - shown.length;
  return [
    ...refusals
      .slice(0, mostRefusals)
      .flatMap(({ op, beside, because, fix, source }) => [
        `not in a loop: ${op}, beside ${beside}${source === null ? "" : ` (${source})`}: ${because}`,
        `  fix: ${fix}`,
      ]),
    ...(more > 0 ? [`and ${more} more: --all has them`] : []),
  ];
}

const mostRefusals = 3;

/** The part of the run that a change has to gain to be shown without --all. */
const worthIt = 0.01;
const mostAlternatives = 3;

interface Change {
  readonly flags: string;
  readonly milliseconds: number | null;
  readonly refused: string | null;
}

function alternativesText({
  flags: { all },
  explanation: { run, predicted, alternatives, choice },
  chunks,
}: ExplainResult): readonly string[] {
  if (alternatives === null && chunks.length === 0) {
    return choice === null && predicted !== null && !all ? ["to change: --all predicts other options"] : [];
  }
  const now = (predicted ?? run).milliseconds;
  const changes = [...(alternatives ?? []).map(optionChange), ...chunks.map(chunkChange)].sort(
    (a, b) => (a.milliseconds ?? Infinity) - (b.milliseconds ?? Infinity),
  );
  const lines = changes.flatMap(({ flags, milliseconds, refused }) => {
    if (milliseconds === null) return all ? [`  refused                 ${flags}: ${refused ?? ""}`] : [];
    const gain = 1 - milliseconds / now;
    if (!all && gain < worthIt) return [];
    const word = gain >= 0 ? "faster" : "slower";
    return [`  ${`${percentText(Math.abs(gain))} ${word}, ${timeText(milliseconds)}`.padEnd(24)}${flags}`];
  });
  const shown = all ? lines : lines.slice(0, mostAlternatives);
  if (shown.length === 0)
    return ["to change: no other back end, protocol, form of loops or number of streams is predicted to gain 1 %"];
  return ["to change:", ...shown];
}

function optionChange({ options: changed, ...rest }: Alternative): Change {
  return { flags: changeFlags(changed), ...rest };
}

function chunkChange({ name, value, ...rest }: ChunkChange): Change {
  return { flags: `--set ${name}=${value}`, ...rest };
}

const mostCandidates = 5;

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
  const fastest = considered.find(({ candidate }) => candidate.name === chosen.name);
  const isShown = ({ candidate }: Considered, place: number): boolean =>
    all || place < mostCandidates || candidate.name === chosen.name || candidate.name === "serial";
  const shown = considered.filter(isShown);
  const table = new Table({ ...plainBorders, head: ["candidate", "predicted", "", ...(all ? ["by hand"] : [])] });
  for (const { candidate, milliseconds, margin } of shown) {
    const slower = milliseconds / (fastest?.milliseconds ?? milliseconds) - 1;
    const because =
      candidate.name === chosen.name
        ? "chosen"
        : slower >= 0
          ? `${percentText(slower)} slower`
          : `faster than serial by less than its margin for errors of the model (${percentText(margin)})`;
    table.push([candidate.name, timeText(milliseconds), because, ...(all ? [candidateFlags(candidate)] : [])]);
  }
  const more = considered.length - shown.length;
  return [...trimmedLines(table.toString()), ...(more > 0 ? [`and ${more} more: --all has them`] : [])];
}

/** The command line of a candidate. */
export function candidateFlags({ lowering, schedule }: ScheduleCandidate): string {
  return flagsText({ ...lowering, ...schedule, streams: candidateStreams });
}

export function changeFlags(changed: ChangedOptions): string {
  return flagsText(changed);
}

function flagsText(changed: CompileGiven): string {
  return compileNames.flatMap((name) => flagText(name, changed[name])).join(" ");
}

/** `--no-overlap`, `--in-place`, `--merge-gemms 1-2`; nothing for a value that is not given or the default. */
function flagText<K extends OptionName>(name: K, value: OptionValue<K> | undefined): readonly string[] {
  const row = rowOf(name);
  if (value === undefined || value === row.default) return [];
  return [row.kind.argument === null ? flagOf(name) : `${flagOf(name)} ${printOption(name, value)}`];
}

/** Milliseconds of the run with the cause; 0 without it. */
export function timeOf(run: ExplainedRun, cause: Cause): number {
  return run.causes.find((each) => each.cause === cause)?.milliseconds ?? 0;
}
