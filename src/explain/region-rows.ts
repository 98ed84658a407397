/** What each region of a run that communicates does, seen from one rank. */
import { isGemmKernel } from "../commands/kernel.ts";
import { touchesPeers } from "../commands/barriers.ts";
import { isWork } from "../commands/command.ts";
import type { Program } from "../commands/program.ts";
import { shortStatement } from "../commands/command-text.ts";
import { at } from "../support/invariant.ts";
import { bytesText, percentText, timeText } from "../support/wording.ts";
import { commandBytes, isLocalCopy } from "../trace/command-work.ts";
import { intersectionOf, type Interval, lengthOf, unionOf } from "../support/intervals.ts";
import type { Cause } from "./causes.ts";
import type { IdlePart } from "./idle/idle-time.ts";
import { linksOf } from "./idle/links.ts";
import { type RegionLoad, regionLoads } from "./idle/region-loads.ts";
import type { CommandTiming } from "./idle/timing.ts";
import type { CommandTime } from "./measured-costs.ts";
import type { RegionOf } from "./regions.ts";

// The table of regions in the words that the terminal and the page share.

interface RegionTable {
  /** Of the cells, without the region's statement. */
  readonly columns: readonly string[];
  readonly cellsOf: (row: RegionRow) => readonly string[];
}

/** Columns of bytes that no region has are left out. */
export function regionTable(rows: readonly RegionRow[]): RegionTable {
  const moved = (["sent", "received", "transferred"] as const).filter((key) => rows.some((row) => row[key] > 0));
  return {
    columns: ["chunks", "streams", "GEMMs", ...moved, "communication", "hidden", "exposed"],
    cellsOf: (row) => [
      row.isLoop ? String(row.chunks) : "no loop",
      row.streams === 0 ? "peers'" : String(row.streams),
      timeText(row.gemms),
      ...moved.map((key) => bytesText(row[key])),
      timeText(row.communication),
      row.hidden === null ? "" : percentText(row.hidden),
      timeText(row.exposed),
    ],
  };
}

const communication = /^Communication \d+ \(type=(\w+),.* input=(T\d+).*, output=(T\d+)\b.*\)$/u;

const pointToPoint = /^P2PCommunication \d+ \(type=(\w+), buffer=(T\d+)\b.*\)$/u;

/** The region's statement; a communication as `T3 = Allgather(T2)` or `send(T3)`. `named`: puts the user's names for numbers. */
export function regionText({ statement }: RegionRow, named: (text: string) => string): string {
  const short = shortStatement(statement).replace(communication, "$3 = $1($2)").replace(pointToPoint, "$1($2)");
  return named(short).replaceAll(/\s+,/gu, ",");
}

/** Times are milliseconds. */
export interface RegionRow {
  /** The position of its statement in the host program's body. */
  readonly region: number;
  readonly isLoop: boolean;
  /** The statement of its first GEMM, or of its first communication, which may be a peer's alone. */
  readonly statement: string;
  /** Iterations of its outermost loop; 1 without a loop. */
  readonly chunks: number;
  /** Streams of the rank that run its kernels and communication; 0 if only peers' do. */
  readonly streams: number;
  /** GEMMs alone. */
  readonly gemms: number;
  /** Kernels, and transfers on the busiest direction of the rank's link or communicator: which of the two bounds a loop. */
  readonly load: RegionLoad;
  /** Bytes that copies and kernels in peers' memory move over the rank's link, by direction. */
  readonly sent: number;
  readonly received: number;
  /** Bytes of the library's transfers: the larger side of the rank, as nccl-tests counts. */
  readonly transferred: number;
  /** In which the rank's communication of this region moves data. */
  readonly communication: number;
  /** The share of it in which a kernel of the rank runs; null without communication. */
  readonly hidden: number | null;
  /** In which the rank waits for this region's communication. */
  readonly exposed: number;
}

/** Causes that a region's communication has. */
const communicationCauses: ReadonlySet<Cause> = new Set<Cause>([
  "firstChunk",
  "lastChunk",
  "linkBound",
  "queued",
  "dependent",
  "notInLoop",
  "sms",
  "order",
  "reuse",
]);

interface Gathered {
  readonly region: number;
  isLoop: boolean;
  statement: string;
  isGemm: boolean;
  /** Whether the rank itself has commands of the region; until then the others' say what it is. */
  isOwn: boolean;
  gemms: number;
  sent: number;
  received: number;
  transferred: number;
  exposed: number;
  readonly spans: Interval[];
  readonly iterations: Set<number>;
  readonly streams: Set<number>;
}

/** In the order of the host program. */
export function regionRows(
  program: Program,
  timing: CommandTiming,
  regionOf: RegionOf,
  {
    rank: own,
    idle,
    costOf,
  }: { readonly rank: number; readonly idle: readonly IdlePart[]; readonly costOf: CommandTime },
): readonly RegionRow[] {
  const { dependences, start, end } = timing;
  const regions = new Map<number, Gathered>();
  const kernels: Interval[] = [];
  for (const { rank, commands, origins } of program.ranks) {
    for (const [index, command] of commands.entries()) {
      if (!isWork(command.kind)) continue;
      const links = linksOf(program, rank, index);
      const [out, into] = [links.includes(`out ${own}`), links.includes(`in ${own}`)];
      if (rank !== own && !out && !into) continue;
      const key = regionOf(rank, index);
      const found = regions.get(key.id) ?? emptyRegion(key.id);
      regions.set(key.id, found);
      const number = at(dependences.first, rank) + index;
      const span = { start: at(start, number), end: at(end, number) };
      const isTransfer = command.kind === "transfer" && !isLocalCopy(program, rank, command);
      const moves = isTransfer || out || into;
      const bytes = commandBytes(program, rank, index) ?? 0;
      if (out) found.sent += bytes;
      if (into) found.received += bytes;
      if (moves) found.spans.push(span);
      const { statement, iteration } = at(origins, index);
      if (rank !== own) {
        if (!found.isOwn) addIteration(found, key.isLoop, statement, iteration[0]);
        continue;
      }
      if (!found.isOwn) {
        found.isOwn = true;
        found.statement = "";
        found.iterations.clear();
      }
      if (isTransfer) found.transferred += bytes;
      found.streams.add(command.stream);
      const isGemm = command.kind === "launch" && isGemmKernel(at(program.kernels, command.kernel));
      if (isGemm) found.gemms += (costOf(rank, index).latency + costOf(rank, index).busy) / 1000;
      if (isGemm && !found.isGemm) {
        found.statement = statement;
        found.isGemm = true;
      }
      addIteration(found, key.isLoop, statement, iteration[0]);
      if (command.kind === "launch" && !touchesPeers(program, rank, command)) kernels.push(span);
    }
  }
  for (const { cause, command, start: from, end: to } of idle) {
    if (command < 0 || !communicationCauses.has(cause)) continue;
    const { id } = regionOf(dependences.rankOf(command), dependences.indexOf(command));
    const region = regions.get(id);
    if (region !== undefined) region.exposed += to - from;
  }
  const busy = unionOf(kernels);
  const loads = regionLoads(program, timing, regionOf, own);
  return [...regions.values()]
    .filter(({ spans }) => spans.length > 0)
    .sort((a, b) => a.region - b.region)
    .map(({ spans, iterations, streams, ...row }): RegionRow => {
      const moving = unionOf(spans);
      const communication = lengthOf(moving);
      const hidden = communication === 0 ? null : lengthOf(intersectionOf(busy, moving)) / communication;
      const { region, isLoop, statement, gemms, sent, received, transferred, exposed } = row;
      return {
        region,
        isLoop,
        statement,
        chunks: isLoop ? iterations.size : 1,
        streams: streams.size,
        gemms,
        load: loads.get(region) ?? { link: 0, kernels: 0 },
        sent,
        received,
        transferred,
        communication,
        hidden,
        exposed,
      };
    });
}

/** The first statement names the region. */
function addIteration(found: Gathered, isLoop: boolean, statement: string, iteration = 0): void {
  if (found.statement === "") found.statement = statement;
  found.iterations.add(iteration);
  found.isLoop ||= isLoop;
}

function emptyRegion(region: number): Gathered {
  return {
    region,
    isLoop: false,
    statement: "",
    isGemm: false,
    isOwn: false,
    gemms: 0,
    sent: 0,
    received: 0,
    transferred: 0,
    exposed: 0,
    spans: [],
    iterations: new Set(),
    streams: new Set(),
  };
}
