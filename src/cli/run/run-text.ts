/** The output of `braid run`: the result as text, and as the JSON document of --json. */
import Table from "cli-table3";
import { targetOf } from "../../compile/compile.ts";
import { at, pushTo } from "../../support/invariant.ts";
import { overlapOf, overlapText, type RankOverlap } from "../../trace/overlap.ts";
import { renderTimeline } from "../../trace/timeline.ts";
import { refusalText } from "../explain/change-text.ts";
import type { ExplainResult } from "../explain/explain-file.ts";
import { explainDocument, explainText } from "../explain/explain-text.ts";
import { communicationLines } from "../lower/reshardings-text.ts";
import { plainBorders, trimmedLines } from "../terminal/table-style.ts";
import type { Colors, Terminal } from "../terminal/terminal.ts";
import type { Expectation } from "./expected.ts";
import type { GradientCheck } from "./gradient-check.ts";
import type { OutputCheck, OutputResult, Trivial } from "./outputs.ts";
import type { RunResult } from "./run-file.ts";

export function runText(result: RunResult, terminal: Terminal): string {
  const { outColors, columns } = terminal;
  const { host, flags, outputs, trace, written, explained } = result;
  const table = new Table({ ...plainBorders, head: flags.check !== undefined ? outputHead : outputHead.slice(0, 4) });
  for (const output of outputs) table.push(outputRow(output, outColors));
  return [
    ...(host === null ? [] : [host]),
    ...(flags.timeline ? [...timeline(result, columns), ""] : []),
    ...(result.choice === null ? [] : [`schedule: ${result.choice}`]),
    headline(result),
    ...trimmedLines(table.toString()),
    ...outputs.flatMap(unlikeText),
    ...outputs.flatMap((output) => sampledText(output, flags.seed)),
    ...outputs.flatMap(notComparedText),
    ...ofOutputs(outputs, ({ trivial }) => trivial && trivialWords[trivial]),
    ...ofOutputs(outputs, ({ specialNotCompared: why }) => why && `nothing was compared on special values: ${why}`),
    ...outputs.flatMap(outsideText),
    ...gradientsText(result.gradients),
    ...result.expectations.map((each) => expectationText(each, flags.expect ?? "")),
    ...(explained === null ? communicationText(result) : []),
    ...(trace === null ? [] : [`trace: ${trace.path}, ${(trace.bytes / 1e6).toFixed(2)} MB, for ui.perfetto.dev`]),
    ...(written.length === 0 ? [] : [`outputs: ${written.join(", ")}`]),
    ...(explained === null ? [] : ["", explainText(withoutTimeline(explained), null, terminal).trimEnd()]),
    "",
  ].join("\n");
}

/** The timeline of the same run is the first of the text. */
function withoutTimeline(explained: ExplainResult): ExplainResult {
  return { ...explained, flags: { ...explained.flags, timeline: false } };
}

function communicationText({ reshardings, notInLoop }: RunResult): readonly string[] {
  const more = notInLoop.length - mostRefusals;
  return [
    ...communicationLines(reshardings, mostReshardings),
    ...notInLoop.slice(0, mostRefusals).map(refusalText),
    ...(more > 0 ? [`and ${more} more: braid explain --print all has them`] : []),
  ];
}

/** Below the outputs, which are what a run is for. */
const mostReshardings = 5;
const mostRefusals = 3;

const outputHead = ["output", "dtype", "shape", "fingerprint", "largest error", "of the bound", "check"];

function headline({ file, flags, choice, milliseconds, copyMilliseconds }: RunResult): string {
  const devices = `${flags.devices} ${flags.devices === 1 ? "device" : "devices"}`;
  const streams = `${flags.streams} ${flags.streams === 1 ? "stream" : "streams"}`;
  // A chosen schedule sets its own streams.
  const on = choice === null ? `(${flags.on}), ${streams}` : `(${flags.on})`;
  const copying = `${median(copyMilliseconds)} ms copying`;
  return `${file}: ${devices} ${on}, seed ${flags.seed}, ${runTimeText(milliseconds)} + ${copying}`;
}

/** One run's time, or the least, median and greatest of several. */
export function runTimeText(milliseconds: readonly number[]): string {
  const count = milliseconds.length;
  if (count === 1) return `${median(milliseconds)} ms`;
  const [least, most] = [Math.min(...milliseconds), Math.max(...milliseconds)];
  return `${count} runs: ${least.toFixed(2)} / ${median(milliseconds)} / ${most.toFixed(2)} ms (least, median, most)`;
}

/** The lower of the two in the middle, as text. */
function median(milliseconds: readonly number[]): string {
  const sorted = milliseconds.toSorted((a, b) => a - b);
  return at(sorted, Math.floor((sorted.length - 1) / 2)).toFixed(2);
}

function outputRow({ name, named, dtype, shape, fingerprint, check }: OutputResult, colors: Colors): string[] {
  const row = [named === null ? name : `${name} ${named}`, dtype, `[${shape.join(", ")}]`, fingerprint];
  return check === null ? row : [...row, ...checkCells(check, colors)];
}

function expectationText({ name, largestError, failure }: Expectation, file: string): string {
  if (largestError === null) return `${name}: ${file} has no such output`;
  return `${name}: ${failure === null ? "as" : "not as"} in ${file}, largest error ${errorText(largestError)}`;
}

function unlikeText({ name, unlike, check }: OutputResult): readonly string[] {
  return unlike.map(({ ranks, fingerprint, apart }) => {
    const where = `${ranks.length === 1 ? "rank" : "ranks"} ${ranks.join(", ")}`;
    const how = apart === 0 ? "equal numbers in other bits" : `off by up to ${errorText(apart)} from the first copy`;
    const each = check === null ? "" : "; each copy was compared with the oracle";
    return `${name} on ${where}: ${how}, fingerprint ${fingerprint}${each}`;
  });
}

function sampledText({ name, check }: OutputResult, seed: number): readonly string[] {
  if (check?.rows === undefined) return [];
  const { compared, of } = check.rows;
  return [`${name}: ${compared} of ${of} rows were compared, chosen by seed ${seed}; --check=full compares all`];
}

function notComparedText({ name, check }: OutputResult): readonly string[] {
  if (check === null || check.notCompared === null || check.norm !== undefined) return [];
  const { elements, compared, notCompared } = check;
  return [
    `${name}: ${elements - compared} of ${elements} elements have no error bound and were not compared: ${notCompared}`,
  ];
}

function ofOutputs(
  outputs: readonly OutputResult[],
  reasonOf: (check: OutputCheck) => string | undefined,
): readonly string[] {
  return grouped(outputs.map(({ name, check }) => [name, check === null ? undefined : reasonOf(check)]));
}

/** A line for each reason, with all that have it. */
function grouped(rows: readonly (readonly [name: string, reason: string | undefined])[]): readonly string[] {
  const names = new Map<string, string[]>();
  for (const [name, reason] of rows) if (reason !== undefined) pushTo(names, reason, name);
  return [...names].map(([reason, own]) => `${own.join(", ")}: ${reason}`);
}

/** Of checks that a result that was never computed may pass. */
const verdicts: { readonly [K in Trivial]: string } = {
  empty: "empty",
  zeros: "only zeros",
  NaN: "only NaN",
  infinite: "not finite",
  small: "zeros pass",
};

const trivialWords: { readonly [K in Trivial]: string } = {
  empty: "no elements: there was nothing to compare",
  zeros: "every element is 0, as in the oracle: a result that is never computed may pass, too",
  NaN: "every element is NaN, as in the oracle: other inputs say more",
  infinite: "no element is finite, as in the oracle: other inputs say more",
  small: "every element is 0 within its bounds: a result that is never computed may pass, too",
};

function outsideText({ name, check }: OutputResult): readonly string[] {
  return check?.outside === undefined ? [] : [`${name}: ${check.outside}`];
}

function gradientsText(gradients: readonly GradientCheck[]): readonly string[] {
  const compared = gradients.flatMap(({ difference }) => difference ?? []);
  const others = grouped(
    gradients.map(({ name, named, leftOut, notCompared }) => {
      const unlike =
        leftOut === 0 ? undefined : `${leftOut} elements are not finite and were not compared with a slope`;
      const reason = notCompared === null ? unlike : `not compared with a slope: ${notCompared}`;
      return [named === null ? name : `${name} ${named}`, reason];
    }),
  );
  if (compared.length === 0) return others;
  const count = compared.length === 1 ? "1 gradient was" : `${compared.length} gradients were`;
  const zero = gradients.filter(({ isZero }) => isZero).length;
  const zeros = zero === 0 ? "" : ` (${zero} of ${compared.length} are 0)`;
  const most = errorText(Math.max(...compared));
  const text = `${count} compared with slopes in double, along random directions: relative difference up to ${most}${zeros}`;
  return [text, ...others];
}

function checkCells(check: OutputCheck, colors: Colors): readonly string[] {
  const { ok, largestError, partOfBound, elements, compared, norm } = check;
  if (elements === 0) return ["", "", colors.yellow(verdicts.empty)];
  if (compared === 0 && norm === undefined) return ["", "", colors.red("not checked")];
  const { trivial } = check;
  const passed = trivial === undefined ? colors.green("passed") : colors.yellow(verdicts[trivial]);
  const verdict = ok ? passed : colors.red("FAILED");
  const percent = (part: number): string => (Number.isFinite(part) ? `${(100 * part).toFixed(1)} %` : "beyond");
  if (norm === undefined || partOfBound > 1) return [errorText(largestError), percent(partOfBound), verdict];
  const part = norm.error === 0 ? 0 : norm.error / norm.limit;
  return [`${errorText(norm.error)} (norm)`, percent(part), verdict];
}

function errorText(error: number): string {
  return error === 0 ? "0" : error.toExponential(2);
}

/** The streams of rank 0, and how much of their communication was hidden. */
function timeline(result: RunResult, columns: number): readonly string[] {
  const { program, report } = result.last;
  const on = targetOf(result.flags.on);
  return [...renderTimeline(program, 0, report.trace, { columns, on }), overlapText(at(overlap(result), 0))];
}

function overlap({ last: { program, report } }: RunResult): readonly RankOverlap[] {
  return overlapOf(program, report.trace);
}

/** A plain object for JSON. Errors that are not finite become text, because JSON has no such numbers. */
export function runDocument(result: RunResult): object {
  const { file, flags, params, options, sizes, outputs, host, trace, written, failures } = result;
  const { milliseconds, copyMilliseconds } = result;
  return {
    file,
    devices: flags.devices,
    on: flags.on,
    streams: flags.streams,
    seed: flags.seed,
    interleaving: flags.interleaving,
    scheduleChoice: result.choice ?? undefined,
    params,
    options,
    sizes: Object.fromEntries(sizes),
    milliseconds,
    copyMilliseconds,
    reshardings: result.reshardings ?? undefined,
    notInLoop: result.notInLoop,
    outputs: outputs.map(({ check, unlike, ...output }) => ({
      ...output,
      unlike: unlike.map(({ apart, ...copy }) => ({ ...copy, apart: finite(apart) })),
      check:
        check === null
          ? undefined
          : { ...check, partOfBound: finite(check.partOfBound), largestError: finite(check.largestError) },
    })),
    hostProgram: host ?? undefined,
    timeline: flags.timeline ? timeline(result, jsonColumns) : undefined,
    overlap: flags.timeline ? overlap(result) : undefined,
    explain: result.explained === null ? undefined : explainDocument(result.explained),
    trace: trace ?? undefined,
    written: flags.outputDir === undefined ? undefined : written,
    gradients:
      flags.check === undefined
        ? undefined
        : result.gradients.map(({ name, named, difference, notCompared }) => ({
            name,
            named,
            difference,
            notCompared,
          })),
    expected:
      flags.expect === undefined
        ? undefined
        : result.expectations.map(({ name, largestError }) => ({
            name,
            largestError: largestError === null ? undefined : finite(largestError),
          })),
    notes: result.notes,
    failures,
  };
}

/** The width of a timeline in JSON. */
const jsonColumns = 120;

function finite(value: number): number | string {
  return Number.isFinite(value) ? value : String(value);
}
