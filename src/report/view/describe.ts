/** A slice in words: for tooltips, and for screen readers. */
import { at } from "../../support/invariant.ts";
import { bytesText, timeText } from "../../support/wording.ts";
import { orderReasons, type SliceKind, type TimelineData, type TimeUnit } from "../data/timeline-data.ts";

export const kindLabels: { readonly [K in SliceKind]: string } = {
  gemm: "GEMM",
  kernel: "other kernel",
  copy: "copy between devices",
  transfer: "library or peer kernel",
  localCopy: "copy on the device",
  wait: "waits",
  order: "event, signal",
  mark: "memory",
};

export interface SliceWords {
  readonly title: string;
  readonly kind: SliceKind;
  readonly statement: string;
  /** Name and value. */
  readonly figures: readonly (readonly [string, string])[];
}

export function describeSlice(data: TimelineData, run: number, slice: number): SliceWords {
  const { name, slices } = at(data.runs, run);
  const work = at(data.works, at(slices.work, slice));
  const iteration = at(data.iterations, at(slices.iteration, slice));
  const [start, duration] = [at(slices.start, slice), at(slices.duration, slice)];
  const seconds = data.unit === "milliseconds" ? duration / 1000 : 0;
  const perSecond = (amount: number, text: (rate: number) => string): string =>
    seconds > 0 ? `, ${text(amount / seconds)}` : "";
  return {
    title: iteration === "" ? work.label : `${work.label}, iteration ${iteration}`,
    kind: work.kind,
    statement: at(data.statements, work.statement).text,
    figures: [
      ["where", `${streamText(data, run, slice)}${data.runs.length > 1 ? `, ${name}` : ""}`],
      ["when", `${durationText(data.unit, duration)} from ${instantText(data.unit, start)}`],
      ...(work.bytes === null
        ? []
        : [["bytes", `${bytesText(work.bytes)}${perSecond(work.bytes, (rate) => `${bytesText(rate)}/s`)}`] as const]),
      ...(work.flops === 0
        ? []
        : [["work", `${flopsText(work.flops)}${perSecond(work.flops, (rate) => `${flopsText(rate)}/s`)}`] as const]),
      ["command", `${at(slices.command, slice)}: ${work.details}`],
      ...waitedFor(data, run, slice).map((text) => ["after", text] as const),
    ],
  };
}

/** What a slice waited for, and why that stands before it: `matmul on rank 0, stream 1 (data)`. */
function waitedFor(data: TimelineData, run: number, slice: number): readonly string[] {
  const { slices } = at(data.runs, run);
  const [first, last] = [at(slices.edgeStart, slice), at(slices.edgeStart, slice + 1)];
  return Array.from({ length: last - first }, (_, i) => {
    const from = at(slices.edges, first + i);
    const { label } = at(data.works, at(slices.work, from));
    return `${label} on ${streamText(data, run, from)} (${at(orderReasons, at(slices.reasons, first + i))})`;
  });
}

/** `rank 0, compute stream 1`: where a slice runs. */
function streamText({ runs, ranks }: TimelineData, run: number, slice: number): string {
  const track = at(runs, run).tracks.find(({ first, count }) => slice >= first && slice < first + count);
  const stream = ranks[track?.rank ?? 0]?.streams.find(({ id }) => id === track?.stream);
  return `rank ${track?.rank ?? 0}, ${stream?.name ?? ""}`;
}

function durationText(unit: TimeUnit, length: number): string {
  return unit === "milliseconds" ? microText(length) : `${length} ${length === 1 ? "step" : "steps"}`;
}

/** Pages have the letter that terminals may lack. */
function microText(milliseconds: number): string {
  return timeText(milliseconds).replace(/ us$/u, " µs");
}

function instantText(unit: TimeUnit, time: number): string {
  return unit === "milliseconds" ? microText(time) : `step ${time}`;
}

function flopsText(count: number): string {
  return bytesText(count).replace(/B$/u, "FLOP").replace("kFLOP", "KFLOP");
}

// What is exposed on a rank at a moment.

/** Of the first run that has something exposed then, with its name if there are several; null if none has. */
export function idleText({ runs, unit }: TimelineData, rank: number, time: number): string | null {
  for (const { idle, name } of runs) {
    const span = idle.find((each) => each.rank === rank && each.start <= time && time <= each.end);
    if (span === undefined) continue;
    const run = runs.length > 1 ? `, ${name}` : "";
    return `exposed${run}: ${span.label}, ${durationText(unit, span.end - span.start)}`;
  }
  return null;
}

// What stands in a box: `Allgather · 3`, or the longest form that fits. A form is never cut: half a word says nothing.

/** At most `room` characters; empty if nothing fits. The iteration stays longest, because it tells boxes of one name apart. */
export function fittedLabel(name: string, iteration: string, room: number): string {
  const forms =
    iteration === ""
      ? [name, briefly(name)]
      : [`${name} · ${iteration}`, `${name} ${iteration}`, `${briefly(name)} ${iteration}`, iteration];
  return forms.find((form) => form.length <= room) ?? "";
}

/** As papers and BLAS abbreviate them. */
const abbreviations: Readonly<Record<string, string>> = {
  Allgather: "AG",
  Allreduce: "AR",
  ReduceScatter: "RS",
  Broadcast: "BC",
  AllToAll: "A2A",
  linear: "lin",
  matmul: "mm",
};

/** Kinds whose next word says more. */
const general: ReadonlySet<string> = new Set([
  "unary",
  "binary",
  "reduction",
  "combine",
  "opaque",
  "record",
  "alloc",
  "free",
]);

/** `AG` of `Allgather`, `add` of `binary add`, `e1` of `wait for e1`, `←1` of `from rank 1`. */
function briefly(name: string): string {
  const peers = [...name.matchAll(/\b(to|from) (?:rank )?(\d+)/gu)];
  if (peers.length > 0) return peers.map(([, way, peer = ""]) => `${way === "from" ? "←" : "→"}${peer}`).join(" ");
  const [first = "", second = first] = name.replace(/^wait for /u, "").split(/,? /u);
  return abbreviations[first] ?? (general.has(first) ? second : first);
}
