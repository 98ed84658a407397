/** The output of `braid explain`: verdict, regions, causes and what to change, as text and as the document of --json. */
import Table from "cli-table3";
import { targetOf } from "../../compile/compile.ts";
import { renderDiagnostic } from "../../diagnostics/diagnostic.ts";
import { candidateFlags, tooSmallText } from "../../explain/changes.ts";
import { type ExplainedRun, causeTime } from "../../explain/explain-run.ts";
import { type ExplainedLayers, type Explanation, isTooSmall } from "../../explain/explain.ts";
import { countedText, equalEntries, equalRegions, withoutNumbers } from "../../explain/layers.ts";
import { regionTable, regionText } from "../../explain/region-rows.ts";
import { assumedTexts, exposedText, intervalText } from "../../explain/time-texts.ts";
import { at } from "../../support/invariant.ts";
import { bytesText, counted, percentText, timeText } from "../../support/wording.ts";
import { overlapText } from "../../trace/overlap.ts";
import { renderTimeline } from "../../trace/timeline.ts";
import { communicationLines } from "../lower/reshardings-text.ts";
import { plainBorders, trimmedLines } from "../terminal/table-style.ts";
import type { Colors, Terminal } from "../terminal/terminal.ts";
import { changesText } from "./change-text.ts";
import type { ExplainResult } from "./explain-file.ts";

/** `other`: the same program under `--what-if`. */
export function explainText(
  result: ExplainResult,
  other: ExplainResult | null,
  { outColors, columns }: Terminal,
): string {
  const { explanation } = result;
  const { run } = explanation;
  return [
    ...verdict(result, outColors),
    "",
    ...timelineText(result, columns),
    ...regionsText(explanation),
    ...communicationText(explanation),
    ...causesText(explanation, outColors),
    ...changesText(result),
    ...(other === null ? [] : ["", ...whatIfText(result, other)]),
    ...assumedTexts([...run.assumptions, ...(other?.explanation.run.assumptions ?? [])]).map(
      (text) => `assumed: ${text}`,
    ),
    "",
  ].join("\n");
}

function timelineText({ flags, explanation }: ExplainResult, columns: number): readonly string[] {
  if (!flags.timeline) return [];
  const { compilation, run } = explanation;
  const on = targetOf(flags.on);
  return [...renderTimeline(compilation.program, run.rank, run.trace, { columns, on }), overlapText(run.overlap), ""];
}

function whatIfText(
  { explanation: { run, predicted } }: ExplainResult,
  { flags, explanation }: ExplainResult,
): readonly string[] {
  const changes = [...flags.whatIf].map((entry) => entry.join("=")).join(", ");
  const { milliseconds, exposed, causes: all } = explanation.run;
  const now = predicted ?? run;
  const [first] = all;
  const because = first === undefined || exposed <= 0 ? "" : `, most of it ${first.label}`;
  const speed = (now.milliseconds / milliseconds).toFixed(2);
  const { interval } = explanation;
  const expected = `${timeText(milliseconds)}${interval === null ? "" : ` (${intervalText(interval)})`}`;
  return [`what if ${changes}: ${expected}, ${speed} times as fast; ${exposedText(exposed)}${because}`];
}

function verdict({ file, flags, profile, explanation }: ExplainResult, colors: Colors): readonly string[] {
  const { run, isMeasured, predicted, serial, peakBytes, bubble, layers, compilation } = explanation;
  const ranks = compilation.program.ranks.length;
  const { milliseconds, floor, exposed, overlap } = run;
  const beside = (of: (run: ExplainedRun) => number): string =>
    isMeasured && predicted !== null ? ` (${timeText(of(predicted))} predicted)` : "";
  const hidden =
    overlap.overlap === null
      ? "nothing moves between devices"
      : `${percentText(overlap.overlap)} of communication hidden`;
  const against =
    serial === null
      ? []
      : [
          `serial, as in PyTorch (collective by the library, then GEMM) ${timeText(serial)}, ${`${(serial / milliseconds).toFixed(2)} times as long`}`,
        ];
  return [
    [
      `${file}: ${colors.bold(timeText(milliseconds))}${how(explanation, flags)}`,
      hidden,
      `${exposedText(exposed)}${beside((each) => each.exposed)}`,
    ].join("; "),
    [
      `floor ${timeText(floor.milliseconds)}: compute ${timeText(floor.compute)}, communication ${timeText(floor.communication)}, longest chain ${timeText(floor.chain)}`,
      ...against,
      `${bytesText(peakBytes)} a device`,
    ].join("; "),
    ...(bubble === null
      ? []
      : [`bubble ${percentText(bubble)}: the mean share of the time in which a device runs no kernel`]),
    ...(isTooSmall(explanation) ? [tooSmallText(explanation)] : []),
    ...(ranks === flags.devices ? [] : [replicasText(flags.devices, ranks)]),
    ...(layers === null ? [] : [layersText(layers)]),
    ...(profile === null ? [] : [`machine: ${profile.machine}`]),
  ];
}

function replicasText(devices: number, ranks: number): string {
  const groups = ranks === 1 ? "" : `${devices / ranks} groups of `;
  return `replicas: ${groups}${ranks === 1 ? devices : ranks} devices do the same; one is explained`;
}

function layersText({ missing }: ExplainedLayers): string {
  return `layers: ${missing} of the equal ones count as what one of the others adds; --print all compiles them all`;
}

/** How the time of the verdict came about. */
function how({ isMeasured, predicted, interval }: Explanation, flags: ExplainResult["flags"]): string {
  const { devices, devicesPerHost = devices } = flags;
  const hosts = devices > devicesPerHost ? ` of ${devices / devicesPerHost} hosts` : "";
  const on = `on ${counted(devices, "device")}${hosts}`;
  if (!isMeasured) return `${interval === null ? "" : ` (${intervalText(interval)})`} predicted ${on}`;
  if (predicted === null) return ` measured ${on}`;
  const within = interval === null ? "" : `, ${intervalText(interval)}`;
  return ` measured ${on} (${timeText(predicted.milliseconds)} predicted${within})`;
}

function regionsText(explanation: Explanation): readonly string[] {
  const equal = equalRegions(explanation);
  if (equal.length === 0) return [];
  const { columns, cellsOf } = regionTable(equal.map(({ row }) => row));
  const areSeveral = equal.some(({ count }) => count > 1);
  const table = new Table({ ...plainBorders, head: ["region", ...columns, ...(areSeveral ? ["of all"] : [])] });
  for (const { count, row, rows } of equal) {
    const texts = rows.map((each) => regionText(each, explanation.named));
    const text = shortened(countedText(count, texts));
    table.push([text, ...cellsOf(row), ...(areSeveral ? [timeText(count * row.exposed)] : [])]);
  }
  return [...trimmedLines(table.toString()), ""];
}

/** The document of --json has all of it. */
function communicationText(explanation: Explanation): readonly string[] {
  const equal = equalEntries(
    explanation,
    ({ reshardings }) => reshardings ?? [],
    (each) => {
      const { name = "", reason, tensor: _, ...rest } = each;
      return JSON.stringify([withoutNumbers(`${name} ${reason}`), rest]);
    },
  );
  const rows = equal.map(({ entries, count }) => {
    const first = at(entries, 0);
    const names = entries.map(({ name, tensor }) => name ?? `T${tensor}`);
    return count === 1 ? first : { ...first, name: countedText(count, names) };
  });
  const lines = communicationLines(rows, mostReshardings);
  return lines.length === 0 ? [] : [...lines, ""];
}

const mostReshardings = 20;

function causesText({ run, isMeasured, predicted }: Explanation, colors: Colors): readonly string[] {
  const { exposed, milliseconds } = run;
  const shown = run.causes.filter(({ milliseconds: each }) => Math.abs(each) >= 0.001 * milliseconds);
  if (shown.length === 0) return ["Nothing is exposed: the run takes as long as its kernels."];
  const beside = isMeasured ? predicted : null;
  const head = ["exposed because of", "time", "of the run", ...(beside === null ? [] : ["predicted"]), ""];
  const table = new Table({ ...plainBorders, head });
  for (const { cause, label, sentence, milliseconds: each } of shown) {
    table.push([
      colors.bold(label),
      timeText(each),
      percentText(each / milliseconds),
      ...(beside === null ? [] : [timeText(causeTime(beside, cause))]),
      sentence,
    ]);
  }
  return [...trimmedLines(table.toString()), `sum ${timeText(exposed)}`];
}

/** Equal notes on attention of several layers are one. */
export function notesText({ notes }: ExplainResult): string {
  const equal = equalEntries(
    { notes, layers: null },
    (part: Pick<ExplainResult, "notes">) => part.notes,
    (note) => withoutNumbers(renderDiagnostic(note)),
  );
  return equal
    .map(({ entries, count }) => {
      const first = at(entries, 0);
      const messages = entries.map(({ message }) => message);
      return `${renderDiagnostic({ ...first, message: countedText(count, messages) })}\n`;
    })
    .join("");
}

/** A statement that fits a column. */
function shortened(statement: string): string {
  return statement.length <= 48 ? statement : `${statement.slice(0, 45)}...`;
}

/** The JSON document of --json, described in docs/explain.md. Times are milliseconds. */
export function explainDocument({
  file,
  flags,
  params,
  sizes,
  profile,
  explanation,
  chunks,
  milliseconds,
}: ExplainResult): object {
  const { run, isMeasured, predicted, interval, serial, peakBytes, choice, reshardings, alternatives } = explanation;
  return {
    file,
    devices: flags.devices,
    on: flags.on,
    params,
    sizes: Object.fromEntries(sizes),
    machine: profile?.machine,
    measured: isMeasured,
    ...run,
    // braid run --trace writes it.
    trace: undefined,
    interval: interval ?? undefined,
    predicted: isMeasured ? predicted && { ...predicted, trace: undefined } : undefined,
    serial,
    latencyShare: explanation.latencyShare ?? undefined,
    peakBytes,
    bubble: explanation.bubble ?? undefined,
    missingLayers: explanation.layers?.missing,
    reshardings: reshardings ?? undefined,
    notInLoop: explanation.refusals,
    scheduleChoice: choice?.reason,
    considered: choice?.considered.map(({ candidate, milliseconds: each }) => ({
      name: candidate.name,
      milliseconds: each,
      flags: candidateFlags(candidate),
    })),
    leftOut: choice === null ? undefined : explanation.leftOut,
    alternatives: alternatives?.map(({ options, ...rest }) => ({ ...rest, options: options ?? undefined })),
    chunks: flags.all ? chunks : undefined,
    took: milliseconds,
  };
}
