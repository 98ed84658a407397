/** The report of an explained run: predicted, measured, or measured below the predicted one. */
import { isWork } from "../../commands/command.ts";
import type { Program } from "../../commands/program.ts";
import { causes } from "../../explain/causes.ts";
import {
  candidateRows,
  changesOf,
  gainText,
  isWorthIt,
  noChange,
  otherSizes,
  timeToBeat,
  tooSmallText,
} from "../../explain/changes.ts";
import { dependencesOf } from "../../explain/dependences.ts";
import type { ExplainedRun, TracedRun } from "../../explain/explain-run.ts";
import { type Explanation, isTooSmall } from "../../explain/explain.ts";
import { createKernelHolders, createLinkHolders } from "../../explain/idle/links.ts";
import { type CommandTiming, timingOf } from "../../explain/idle/timing.ts";
import { costlyRefusals } from "../../explain/refusal-costs.ts";
import { regionTable, regionText } from "../../explain/region-rows.ts";
import { assumedTexts, exposedText, intervalText } from "../../explain/time-texts.ts";
import { reshardingCells, reshardingColumns } from "../../passes/moves/list-reshardings.ts";
import type { LoopRefusal } from "../../passes/stream-loops/loop-refusals.ts";
import { at } from "../../support/invariant.ts";
import { bytesText, counted, percentText, timeText } from "../../support/wording.ts";
import type { Fact, LinkedTable, ReportData, ReportRow } from "../data/report-data.ts";
import type { TimelineRun } from "../data/timeline-data.ts";
import { memoryCurves } from "./memory.ts";
import { createEdges, slicesOfRun, timelineRanks } from "./run.ts";
import { createWorks, hostTexts, type Works } from "./works.ts";

export interface ExplainReport {
  /** The program file. */
  readonly title: string;
  /** The machine of the profile; null without one. */
  readonly machine: string | null;
  readonly explanation: Explanation;
}

export function explainReport({ title, machine, explanation }: ExplainReport): ReportData {
  const { compilation, run, isMeasured, predicted } = explanation;
  const { program } = compilation;
  const { texts, lines } = hostTexts(compilation.hosts);
  const works = createWorks(program, lines);
  const traced = (explained: ExplainedRun, name: string): TimelineRun =>
    timelineRun({ program, explained, trace: explained.trace, milliseconds: explained.milliseconds, name }, works);
  const runs = [
    ...(predicted === null ? [] : [traced(predicted, "predicted")]),
    ...(isMeasured ? [traced(run, "measured")] : []),
  ];
  const timeline = { unit: "milliseconds", ranks: timelineRanks(program), runs, ...works.rows() } as const;
  const how = isMeasured ? "measured" : "predicted";
  const devices = counted(compilation.program.ranks.length, "device");
  return {
    title,
    verdict: {
      tone: "plain",
      text: `${timeText(run.milliseconds)} ${how} on ${devices}, ${exposedText(run.exposed)}`,
      ...(isTooSmall(explanation) ? { note: `${sentence(tooSmallText(explanation))}.` } : {}),
    },
    facts: facts(explanation),
    views: [{ name: "run", timeline, marked: [] }],
    tables: [
      causesTable(explanation),
      ...changeTables(explanation),
      ...communicationTable(explanation),
      regionsTable(run, explanation.named),
    ].filter(({ rows, isAnswer }) => rows.length > 0 || isAnswer === true),
    findings: [],
    hosts: texts,
    notes: [
      ...(machine === null ? [] : [`Machine: ${machine}.`]),
      ...assumedTexts(run.assumptions).map((text) => `Assumed: ${text}`),
    ],
  };
}

/** A program with less of its communication under kernels does not overlap. */
const littleHidden = 0.1;

function facts(explanation: Explanation): readonly Fact[] {
  const { run, isMeasured, predicted, interval, serial, peakBytes, bubble } = explanation;
  const isSmall = isTooSmall(explanation);
  const { milliseconds, floor, exposed, overlap } = run;
  const bounds = `compute ${timeText(floor.compute)}, communication ${timeText(floor.communication)}, longest chain ${timeText(floor.chain)}`;
  const share = exposed < 0 ? exposedText(exposed) : `${percentText(exposed / milliseconds)} of the run`;
  const beside = isMeasured ? predicted : null;
  const within = interval === null ? "" : `; ${intervalText(interval)}`;
  return [
    isMeasured
      ? { label: "measured", value: timeText(milliseconds), note: "the traced run, which replays no graph" }
      : { label: "predicted", value: timeText(milliseconds), note: `the simulated run${within}` },
    ...(beside === null
      ? []
      : [
          {
            label: "predicted",
            value: timeText(beside.milliseconds),
            note: `${(beside.milliseconds / milliseconds).toFixed(2)} times the measured time${within}`,
          },
        ]),
    {
      label: "exposed",
      value: exposed < 0 ? "none" : timeText(exposed),
      note: beside === null ? share : `${share}; ${timeText(beside.exposed)} predicted`,
    },
    {
      label: "communication hidden",
      value: overlap.overlap === null ? "none" : percentText(overlap.overlap),
      note: overlap.overlap === null ? "nothing moves between devices" : `of ${timeText(overlap.communication)}`,
      isBad: !isSmall && overlap.overlap !== null && overlap.overlap < littleHidden,
    },
    { label: "floor", value: timeText(floor.milliseconds), note: bounds },
    ...(serial === null
      ? []
      : [
          {
            label: "serial",
            value: timeText(serial),
            note: `collective, then GEMM: ${(serial / (predicted ?? run).milliseconds).toFixed(2)} times as long`,
            isBad: !isSmall && serial < 0.995 * (predicted ?? run).milliseconds,
          },
        ]),
    ...(bubble === null
      ? []
      : [{ label: "bubble", value: percentText(bubble), note: "of the time, in the mean, a device runs no kernel" }]),
    { label: "memory", value: bytesText(peakBytes), note: "of the device that needs the most" },
  ];
}

function causesTable({ run, isMeasured, predicted }: Explanation): LinkedTable {
  const { causes: found, milliseconds, rank } = run;
  const beside = isMeasured ? predicted : null;
  const gain = found.some(({ milliseconds: each }) => each < 0) ? "; a negative one is a gain" : "";
  return {
    title: "Why time is exposed",
    note: `On rank ${rank}, which ends last. The times add up to the exposed time${gain}.`,
    columns: [
      { label: "cause", numeric: false },
      { label: "time", numeric: true },
      { label: "of the run", numeric: true },
      ...(beside === null ? [] : [{ label: "predicted", numeric: true }]),
    ],
    rows: found
      .filter(({ milliseconds: each }) => Math.abs(each) >= 0.001 * milliseconds)
      .map(({ cause, label, sentence, milliseconds: each }): ReportRow => {
        const expected = beside?.causes.find((other) => other.cause === cause)?.milliseconds ?? 0;
        return {
          cells: [
            label,
            timeText(each),
            percentText(each / milliseconds),
            ...(beside === null ? [] : [timeText(expected)]),
          ],
          note: sentence,
          link: { kind: "cause", cause },
        };
      }),
  };
}

/** What `braid explain` prints as "to change". */
function changeTables(explanation: Explanation): readonly LinkedTable[] {
  const { alternatives, choice } = explanation;
  const refusals = costlyRefusals(explanation);
  return [
    ...(refusals.length === 0 ? [] : [refusalsTable(refusals)]),
    ...(alternatives === null || (choice !== null && alternatives.length === 0)
      ? []
      : [alternativesTable(explanation)]),
    ...(choice === null ? [] : [choiceTable(choice)]),
  ];
}

function alternativesTable(explanation: Explanation): LinkedTable {
  const toBeat = timeToBeat(explanation);
  const isSmall = isTooSmall(explanation);
  const rows = (isSmall ? [] : changesOf(explanation))
    .filter((change) => isWorthIt(change, toBeat))
    .flatMap(({ change, milliseconds }) =>
      milliseconds === null ? [] : [plainRow([change, timeText(milliseconds), gainText(milliseconds, toBeat)])],
    );
  return {
    title: "What to change",
    isAnswer: true,
    note: isSmall
      ? `${sentence(otherSizes)}.`
      : rows.length === 0
        ? `${sentence(noChange)}.`
        : "Predictions of the same program with these flags, or with this edit.",
    columns: [
      { label: "change", isCode: true },
      { label: "predicted", numeric: true },
      { label: "", numeric: true },
    ],
    rows,
  };
}

function refusalsTable(refusals: readonly LoopRefusal[]): LinkedTable {
  return {
    title: "Kept out of loops",
    note: "Communication that no kernel hides, with the rule that kept it out of a loop.",
    columns: [{ label: "communication" }, { label: "because" }],
    rows: refusals.map(({ op, beside, because, source }) =>
      plainRow([op, because], `Beside ${beside}${source === null ? "" : ` (${source})`}.`),
    ),
  };
}

function choiceTable({ considered, chosen, regions, reason }: NonNullable<Explanation["choice"]>): LinkedTable {
  // Of several regions each has candidates of its own, which only the command line prints.
  const rows = regions.length > 0 ? [] : candidateRows(considered, chosen, false);
  return {
    title: "Schedules that were considered",
    isWide: true,
    isAnswer: true,
    note: sentence(reason),
    columns: [
      { label: "candidate" },
      { label: "predicted", numeric: true },
      { label: "" },
      { label: "by hand", isCode: true },
    ],
    rows: rows.map(({ name, milliseconds, because, flags }) =>
      plainRow([name, timeText(milliseconds), because, flags]),
    ),
  };
}

function communicationTable({ reshardings }: Explanation): readonly LinkedTable[] {
  if (reshardings === null) return [];
  return [
    {
      title: "What moves between devices",
      isFolded: reshardings.length > fewReshardings,
      isAnswer: true,
      note: reshardings.length === 0 ? "Nothing does." : "The collectives that the shardings need, and why.",
      columns: reshardingColumns.map((label) => ({ label, numeric: label === "bytes" })),
      rows: reshardings.map((each) =>
        plainRow(reshardingCells(each), each.hint === undefined ? "" : `Hint: ${each.hint}`),
      ),
    },
  ];
}

/** More would hide what follows. */
const fewReshardings = 12;

function plainRow(cells: readonly string[], note = ""): ReportRow {
  return { cells, note, link: { kind: "nothing" } };
}

function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
}

function regionsTable({ regions }: ExplainedRun, named: Explanation["named"]): LinkedTable {
  const { columns, cellsOf } = regionTable(regions);
  return {
    title: "Regions",
    isWide: true,
    note: "Statements of the host program that communicate, mostly loops.",
    columns: [{ label: "region", numeric: false }, ...columns.map((label) => ({ label, numeric: true }))],
    rows: regions.map((row): ReportRow => ({
      cells: [regionText(row, named), ...cellsOf(row)],
      note: "",
      link: { kind: "region", region: row.region },
    })),
  };
}

// A run of a timeline from a trace, predicted or measured.

interface TimedRun extends TracedRun {
  readonly name: string;
  readonly explained: Pick<ExplainedRun, "idleOf">;
}

export function timelineRun({ program, trace, milliseconds, name, explained }: TimedRun, works: Works): TimelineRun {
  const dependences = dependencesOf(program);
  const { first, previous, rankOf, indexOf } = dependences;
  const timing = timingOf(program, dependences, trace);
  const isDrawn = (number: number): boolean =>
    isWork(at(at(program.ranks, rankOf(number)).commands, indexOf(number)).kind);
  const arrived = (number: number): number => {
    const before = at(previous, number);
    return before < 0 ? 0 : at(timing.end, before);
  };
  const edgesOf = createEdges(dependences, isDrawn, arrived);
  const { tracks, slices, sliceOf } = slicesOfRun(program, dependences, timing, { works, isDrawn, edgesOf });
  const path = criticalPath(program, timing).map((number) => at(sliceOf, number));
  return {
    name,
    end: Math.max(
      milliseconds,
      timing.end.reduce((latest, time) => Math.max(latest, time), 0),
    ),
    tracks,
    slices,
    critical: Int32Array.from(path),
    idle: program.ranks.flatMap(({ rank }) =>
      explained.idleOf(rank).map(({ cause, start, end, command }) => ({
        rank,
        cause,
        label: causes[cause].label,
        start,
        end,
        slice: command < 0 ? -1 : at(sliceOf, command),
      })),
    ),
    missing: [],
    memory: memoryCurves(program, (rank, index) => at(timing.end, at(first, rank) + index)),
  };
}

// The critical path of a run: from the command that ended last, back to the one that it waited for last, and so on. A
// command waits for others' results, for the link that another copy holds, or for its rank's kernels that run.

/** The numbers of its launches, copies and transfers, in order of time. */
function criticalPath(program: Program, timing: CommandTiming): readonly number[] {
  const { end, isWork, after } = timing;
  const holderBefore = createLinkHolders(program, timing);
  const kernelBefore = createKernelHolders(program, timing);
  let last = -1;
  for (const [number, works] of isWork.entries()) {
    if (works === 1 && (last < 0 || at(end, number) > at(end, last))) last = number;
  }
  const path: number[] = [];
  // Commands that take no time can hold a link for each other.
  const seen = new Set<number>();
  while (last >= 0 && !seen.has(last)) {
    seen.add(last);
    path.push(last);
    const holders = [holderBefore(last), kernelBefore(last)];
    last = holders.find((holder) => holder >= 0) ?? at(after, last);
  }
  return path.toReversed();
}
