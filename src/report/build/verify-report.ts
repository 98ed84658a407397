/** The report of `braid verify`: findings on the timeline of their counterexamples, or what was proven. */
import { accesses } from "../../commands/region.ts";
import { type Command, type CommandRef, isWork } from "../../commands/command.ts";
import type { Program } from "../../commands/program.ts";
import { renderDiagnostic } from "../../diagnostics/diagnostic.ts";
import type { HostProgram } from "../../host/nodes.ts";
import { parseInterleaving, type InterleavingStep } from "../../machine/interleaving.ts";
import { at } from "../../support/invariant.ts";
import { counted } from "../../support/wording.ts";
import type { Finding, OrderEdge } from "../../verify/finding.ts";
import type { VerifyReport as Verified } from "../../verify/verify.ts";
import type { Fact, FindingData, LinkedTable, ReportData, ReportRow, ReportView } from "../data/report-data.ts";
import { timelineRanks, createEdges, type Placed, slicesOfRun } from "./run.ts";
import { createWorks, type DumpText, type HostTexts, hostTexts, type Works } from "./works.ts";
import { never, type Waits, waitsOf } from "../../explain/dependences.ts";
import type { TimelineRun } from "../data/timeline-data.ts";
import { memoryCurves } from "./memory.ts";

export interface VerifyReportPage {
  /** The program file. */
  readonly title: string;
  readonly hosts: readonly HostProgram[];
  /** The file, if it is a dump, whose lines the findings name. */
  readonly dump: DumpText | null;
  /** Null if the lists do not link; the page then has no timeline. */
  readonly program: Program | null;
  readonly report: Verified;
  /** The statements to add, in words; empty if there is nothing to repair, or no repair is known. */
  readonly repair: readonly string[];
  /** The command that replays an interleaving in order.txt; null where `program` is. */
  readonly replay: string | null;
}

/** Each counterexample is a timeline of its own. */
const mostCounterexamples = 8;

export function verifyReport(request: VerifyReportPage): ReportData {
  const { title, program, hosts, dump, report, repair } = request;
  const { ok, findings, size } = report;
  const texts = hostTexts(hosts, dump);
  const errors = findings.filter(({ severity }) => severity === "error");
  const drawn = program === null || findings.some(({ code }) => code === "program-malformed") ? null : program;
  const shown = findings.filter(({ interleaving }) => interleaving !== null).slice(0, mostCounterexamples);
  const views = drawn === null ? [] : viewsOf(drawn, texts, findings, shown);
  return {
    title,
    verdict: ok
      ? {
          tone: "good",
          text: `Verified: every order of ${counted(size.commands, "command")} gives the same result, and each ends`,
        }
      : {
          tone: "bad",
          text: `${counted(errors.length, "finding")}: ${
            errors.every(isOfOrder) ? "some order of the commands is wrong" : "the program is wrong"
          }`,
        },
    facts: facts(size, drawn),
    views,
    tables: [
      ...(repair.length === 0 ? [] : [repairTable(repair)]),
      ...(drawn === null ? [] : [...(ok ? [proofTable(drawn)] : []), streamsTable(drawn)]),
    ],
    findings: findings.map((finding) =>
      findingData(finding, views.length === 0 ? null : shown.indexOf(finding) + 1, request),
    ),
    hosts: texts.texts,
    notes: [],
  };
}

/** Whether commands in another order do not show it. */
const isOfOrder = ({ interleaving }: Finding): boolean => interleaving !== null;

/** The commands as early as they can run, then the counterexamples. */
function viewsOf(
  program: Program,
  { lines }: HostTexts,
  findings: readonly Finding[],
  shown: readonly Finding[],
): readonly ReportView[] {
  const works = createWorks(program, lines);
  const edgesOf = (all: readonly Finding[]): readonly OrderEdge[] =>
    all.flatMap(({ missingEdge }) => missingEdge ?? []);
  const runs = [
    stepRun({ name: "as written", program, interleaving: [], missing: edgesOf(findings) }, works),
    ...shown.map((finding) => {
      const interleaving = parseInterleaving(finding.interleaving ?? "");
      const steps = interleaving.kind === "list" ? interleaving.steps : [];
      return stepRun({ name: "counterexample", program, interleaving: steps, missing: edgesOf([finding]) }, works);
    }),
  ];
  const common = { unit: "steps", ranks: timelineRanks(program), ...works.rows() } as const;
  return runs.map((run, i): ReportView => {
    const about = i === 0 ? findings.filter(({ severity }) => severity === "error") : [at(shown, i - 1)];
    const name = i === 0 ? "every command as early as it can run" : `counterexample ${i}: ${at(shown, i - 1).code}`;
    return { name, timeline: { ...common, runs: [run] }, marked: about.flatMap(refsOf) };
  });
}

function refsOf({ commands }: Finding): readonly CommandRef[] {
  return commands.flatMap(({ rank, command }) => (command === null ? [] : [{ rank, command }]));
}

function findingData(finding: Finding, counterexample: number | null, { replay }: VerifyReportPage): FindingData {
  const { help, ...others } = finding;
  const { severity, code, message, interleaving } = finding;
  const commands = refsOf(finding);
  return {
    severity,
    code,
    message,
    fix: help ?? null,
    text: renderDiagnostic(others)
      .split("\n")
      .slice(1)
      .map((line) => line.replace(/^ {2}/u, ""))
      .join("\n"),
    link:
      counterexample === null || commands.length === 0
        ? { kind: "nothing" }
        : { kind: "commands", view: counterexample, commands },
    replay: interleaving === null ? null : { interleaving, command: replay ?? "" },
  };
}

function facts({ ranks, commands, streams, regions }: Verified["size"], program: Program | null): readonly Fact[] {
  const pairs = program === null ? null : sharingPairs(program);
  const count = (number: number): string => number.toLocaleString("en-US");
  return [
    { label: "devices", value: count(ranks), note: "" },
    { label: "commands", value: count(commands), note: "of one run, over all devices" },
    { label: "streams", value: count(streams), note: "with commands; each runs its own in order" },
    ...(regions === 0
      ? []
      : [{ label: "regions", value: count(regions), note: "of memory that commands read or write" }]),
    ...(pairs === null
      ? []
      : [{ label: "pairs", value: count(pairs), note: "of commands that use the same buffer, one of them to write" }]),
  ];
}

/** Pairs of commands that use the same buffer, of which at least one writes it. */
function sharingPairs(program: Program): number {
  const users = program.buffers.map(() => ({ readers: 0, writers: 0 }));
  for (const { rank, commands } of program.ranks) {
    for (const [index, { kind }] of commands.entries()) {
      if (!isWork(kind)) continue;
      const { reads, writes } = accesses(program, rank, index);
      const written = new Set<number>(writes.map(({ buffer }) => buffer));
      const read = new Set<number>(reads.map(({ buffer }) => buffer).filter((buffer) => !written.has(buffer)));
      for (const buffer of written) at(users, buffer).writers++;
      for (const buffer of read) at(users, buffer).readers++;
    }
  }
  return users.reduce((sum, { readers, writers }) => sum + (writers * (writers - 1)) / 2 + writers * readers, 0);
}

function repairTable(repair: readonly string[]): LinkedTable {
  return {
    title: "Repair",
    note: `With ${repair.length === 1 ? "this" : "these"} it verifies.`,
    columns: [{ label: "change", numeric: false }],
    rows: repair.map((text): ReportRow => ({ cells: [text], note: "", link: { kind: "nothing" } })),
  };
}

function proofTable(program: Program): LinkedTable {
  const kinds = (wanted: readonly Command["kind"][]): number =>
    program.ranks.reduce((sum, { commands }) => sum + commands.filter(({ kind }) => wanted.includes(kind)).length, 0);
  const transfers = program.transfers.length;
  const row = (property: string, note: string, what: string): ReportRow => ({
    cells: [property, what],
    note,
    link: { kind: "nothing" },
  });
  return {
    title: "What was proven",
    note: "For every order that events, signals and transfers allow, over two runs, one after the other.",
    columns: [
      { label: "property", numeric: false },
      { label: "checked", numeric: true },
    ],
    rows: [
      row(
        "No race",
        "Of two commands that share bytes, one of which writes them, one is always first.",
        counted(sharingPairs(program), "pair"),
      ),
      row(
        "No deadlock",
        "Every wait, signal and transfer has its counterpart, and none waits for itself.",
        counted(kinds(["waitEvent", "waitSignal", "transfer"]), "wait"),
      ),
      row(
        "Every read is of written bytes",
        "In this run, not left over from another one.",
        counted(kinds(["launch", "copy", "transfer"]), "command"),
      ),
      row(
        "Memory is used while it is allocated",
        "Also by peers and by streams that lag.",
        counted(kinds(["alloc", "free"]), "allocation mark"),
      ),
      ...(transfers === 0
        ? []
        : [
            row(
              "Ranks agree on transfers",
              "Each has the same kind, order and sizes on all its ranks.",
              counted(transfers, "transfer"),
            ),
          ]),
    ],
  };
}

const mostStreams = 64;
/** More would hide what follows. */
const fewStreams = 8;

function streamsTable({ ranks }: Program): LinkedTable {
  const all = ranks.flatMap(({ rank, streams, commands }) =>
    streams.flatMap(({ id, name }): readonly ReportRow[] => {
      const own = commands.filter(({ stream }) => stream === id);
      if (own.length === 0) return [];
      const count = (...kinds: readonly Command["kind"][]): string =>
        String(own.filter(({ kind }) => kinds.includes(kind)).length);
      return [
        {
          cells: [
            `rank ${rank}, ${name}`,
            count("launch"),
            count("copy"),
            count("transfer"),
            count("recordEvent", "signal"),
            count("waitEvent", "waitSignal"),
          ],
          note: "",
          link: { kind: "stream", rank, stream: id },
        },
      ];
    }),
  );
  const left = all.length - mostStreams;
  return {
    title: "Streams",
    isFolded: all.length > fewStreams,
    note: left > 0 ? `The first ${mostStreams}; ${left} more are in the timeline.` : "Each runs its commands in order.",
    columns: [
      { label: "stream", numeric: false },
      ...["kernels", "copies", "transfers", "raises", "waits"].map((label) => ({ label, numeric: true })),
    ],
    rows: all.slice(0, mostStreams),
  };
}

interface StepRun {
  readonly name: string;
  readonly program: Program;
  /** The first steps; the others follow as early as they can. */
  readonly interleaving: readonly InterleavingStep[];
  /** Orders that the program lacks. */
  readonly missing: readonly OrderEdge[];
}

/** A run of a timeline in steps: the order of commands, without times. */
function stepRun({ name, program, interleaving, missing }: StepRun, works: Works): TimelineRun {
  const waits = waitsOf(program);
  const placed = placeSteps(program, waits, interleaving);
  const { start, end, order, steps } = placed;
  const runs = new Set(order);
  const arrived = (number: number): number => at(start, number);
  const isDrawn = (number: number): boolean => runs.has(number);
  const edgesOf = createEdges({ ...waits, order }, isDrawn, arrived);
  const { tracks, slices, sliceOf } = slicesOfRun(program, waits, placed, { works, isDrawn, edgesOf });
  const sliceAt = (place: OrderEdge["from"]): number =>
    place.command === null ? -1 : (sliceOf[at(waits.first, place.rank) + place.command] ?? -1);
  return {
    name,
    end: steps,
    tracks,
    slices,
    critical: new Int32Array(),
    idle: [],
    missing: missing.flatMap(({ from, to }): readonly (readonly [number, number])[] => {
      const pair = [sliceAt(from), sliceAt(to)] as const;
      return pair.includes(-1) ? [] : [pair];
    }),
    memory: memoryCurves(program, (rank, index) => {
      const number = at(waits.first, rank) + index;
      return runs.has(number) ? at(end, number) : null;
    }),
  };
}

// Places commands on an axis of steps, where only their order is known: each command takes one step, as early as what it
// waits for allows, or where an interleaving runs it. Commands that never run, as in a deadlock, have no place.

interface PlacedSteps extends Placed {
  /** The commands that run, each after those that it waits for. */
  readonly order: readonly number[];
  readonly end: Float64Array;
  readonly steps: number;
}

interface Stream {
  readonly commands: readonly number[];
  next: number;
  /** Whether its transfer has arrived in an interleaving; it completes with a later step. */
  arrived: number | null;
}

/** `interleaving`: the first steps; those that remain follow as early as they can. */
function placeSteps(program: Program, waits: Waits, interleaving: readonly InterleavingStep[]): PlacedSteps {
  const { first, source, peers, previous } = waits;
  const count = at(first, program.ranks.length);
  const [start, end, ready] = [new Float64Array(count), new Float64Array(count), new Float64Array(count)];
  const done = new Uint8Array(count);
  const order: number[] = [];
  const streams = program.ranks.map(({ rank, commands, streams: own }) => {
    const lists = own.map((): number[] => []);
    for (const [index, { stream }] of commands.entries()) at(lists, stream).push(at(first, rank) + index);
    return lists.map((list): Stream => ({ commands: list, next: 0, arrived: null }));
  });
  const finish = (stream: Stream, number: number, from: number, to: number): void => {
    [start[number], end[number], ready[number]] = [from, to, from];
    done[number] = 1;
    order.push(number);
    stream.next++;
    stream.arrived = null;
  };
  let step = 0;
  for (const each of interleaving) {
    step++;
    if ("caller" in each) continue;
    const stream = streams[each.rank]?.[each.stream];
    const number = stream?.commands[stream.next];
    if (stream === undefined || number === undefined) continue;
    if (peers(number).length > 0 && stream.arrived === null) stream.arrived = step - 1;
    else finish(stream, number, step - 1, step);
  }

  /** Streams whose next command waits for a command. */
  const waiting = new Map<number, Stream[]>();
  const queue = streams.flat();
  /** What a command needs to have run; its peers only need to have arrived. */
  const needs = (number: number): readonly number[] =>
    [at(source, number), ...peers(number).map((peer) => at(previous, peer))].filter((other) => other !== -1);
  for (let stream = queue.pop(); stream !== undefined; stream = queue.pop()) {
    for (let number = stream.commands[stream.next]; number !== undefined; number = stream.commands[stream.next]) {
      const needed = needs(number);
      const missing = needed.find((other) => other === never || done[other] !== 1);
      if (missing !== undefined) {
        if (missing !== never) waiting.set(missing, [...(waiting.get(missing) ?? []), stream]);
        break;
      }
      const before = at(previous, number);
      const from = [before, ...needed].reduce(
        (latest, other) => (other < 0 ? latest : Math.max(latest, at(end, other))),
        stream.arrived ?? step,
      );
      finish(stream, number, from, from + 1);
      queue.push(...(waiting.get(number) ?? []));
      waiting.delete(number);
    }
  }
  // In the order of their steps: an interleaving's transfers complete late.
  order.sort((a, b) => at(end, a) - at(end, b));
  return { start, end, ready, order, steps: order.reduce((last, number) => Math.max(last, at(end, number)), 0) };
}
