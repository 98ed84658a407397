/**
 * Joins the runs of ranks in separate processes: whole outputs, the slowest rank's times, the events of all ranks. Rank
 * 0 receives them and reports.
 */
import type { RunReport } from "../../backends/backend.ts";
import type { Program } from "../../commands/program.ts";
import type { Signature } from "../../compile/lower-all.ts";
import type { ExecutorReport } from "../../executor/executor-options.ts";
import { holders, packShard, unshardInto } from "../../executor/shard.ts";
import { isSharded, type TensorArgument } from "../../executor/tensor-arguments.ts";
import { shapeOf, type Sizes } from "../../ir/sizes.ts";
import type { World } from "../../launch/join-world.ts";
import { emptyTensor, type Tensor, tensorBytes } from "../../numerics/tensor/host-tensor.ts";
import { at } from "../../support/invariant.ts";
import { alignTraces } from "../../trace/align-traces.ts";
import { eventsOfNumbers, numbersOfEvents, type TraceOrigin } from "../../trace/event-table.ts";

export interface OneRun {
  readonly program: Program;
  readonly report: ExecutorReport;
}

/** The results of all runs of one command. */
export interface GatheredRuns {
  /** The outputs of the last run. */
  readonly outputs: readonly TensorArgument[];
  readonly runs: readonly OneRun[];
}

/** Collective: all ranks call it together. Null on all ranks except rank 0. */
export async function gatherRuns(
  world: World,
  { tensors, outputs }: Signature,
  sizes: Sizes,
  own: GatheredRuns,
  holderOf: (rank: number) => number,
): Promise<GatheredRuns | null> {
  const ownReports = own.runs.map(({ report }) => report);
  const reports = await gatherReports(world, ownReports);
  const copies = await gatherSlowest(
    world,
    ownReports.map(({ copyMilliseconds }) => copyMilliseconds),
  );
  const whole: Tensor[] = [];
  for (const [position, id] of outputs.entries()) {
    const tensor = at(tensors, id);
    const argument = at(own.outputs, position);
    const shape = shapeOf(tensor, sizes);
    const result = world.rank === 0 ? emptyTensor(tensor.dtype, shape) : null;
    for (const ranks of turns(holders(tensor), holderOf)) {
      const mine = ranks.find((rank) => holderOf(rank) === world.rank);
      const shard = mine === undefined ? null : isSharded(argument) ? (argument[mine] ?? null) : argument;
      const part = shard === null || mine === undefined ? new Uint8Array() : packShard(tensor, shape, shard, mine);
      const parts = await gatherBytes(world, part);
      if (result === null) continue;
      for (const rank of ranks) unshardInto(tensor, shape, at(parts, holderOf(rank)), rank, tensorBytes(result));
    }
    if (result === null) continue;
    whole.push(result);
  }
  if (world.rank !== 0) return null;
  const runs = own.runs.map(({ program }, i) => ({
    program,
    report: { ...at(reports, i), copyMilliseconds: at(copies, i) },
  }));
  return { outputs: whole, runs };
}

/** The ranks in sets of which no process holds two. */
function turns(ranks: readonly number[], holderOf: (rank: number) => number): readonly (readonly number[])[] {
  const sets: number[][] = [];
  for (const rank of ranks) {
    const free = sets.find((set) => !set.some((other) => holderOf(other) === holderOf(rank)));
    if (free === undefined) sets.push([rank]);
    else free.push(rank);
  }
  return sets;
}

/** Bytes per exchange, well below the limit of one. */
const pieceBytes = 32 * 1024 * 1024;

/** Every rank's bytes, in rank order. Lengths may differ and have no limit. */
export async function gatherBytes(world: Pick<World, "allGather">, bytes: Uint8Array): Promise<readonly Uint8Array[]> {
  const lengths = await gatherNumbers(world, [bytes.length]);
  const whole = lengths.map(([length = 0]) => new Uint8Array(length));
  const longest = Math.max(...whole.map(({ length }) => length));
  for (let start = 0; start < longest; start += pieceBytes) {
    const pieces = await world.allGather(bytes.subarray(start, start + pieceBytes));
    pieces.forEach((piece, rank) => {
      if (piece.length > 0) at(whole, rank).set(piece, start);
    });
  }
  return whole;
}

/**
 * Joins the reports of all ranks. A run's time is that of its slowest rank, and its trace has the events of all ranks
 * on one time axis.
 */
export async function gatherReports(
  world: Pick<World, "allGather">,
  reports: readonly RunReport[],
): Promise<readonly RunReport[]> {
  const times = await gatherSlowest(
    world,
    reports.map(({ milliseconds }) => milliseconds),
  );
  const last = reports.at(-1);
  const packed = new Uint8Array(Float64Array.from(numbersOfEvents(last?.trace ?? [])).buffer);
  const events = (await gatherBytes(world, packed)).flatMap((part) =>
    eventsOfNumbers(new Float64Array(part.slice().buffer)),
  );
  const numbers = last?.origins?.flatMap(({ rank, at: zero, error }) => [rank, zero, error]) ?? [];
  const origins = (await gatherNumbers(world, numbers)).flatMap(([rank, zero, error]): readonly TraceOrigin[] =>
    rank === undefined || zero === undefined || error === undefined ? [] : [{ rank, at: zero, error }],
  );
  const trace = alignTraces(events, origins);
  return reports.map((_, run) => ({
    milliseconds: at(times, run),
    trace: run === reports.length - 1 ? trace : [],
    ...(run === reports.length - 1 && origins.length > 0 ? { origins } : {}),
  }));
}

/** The slowest rank's time of each run. */
async function gatherSlowest(
  world: Pick<World, "allGather">,
  milliseconds: readonly number[],
): Promise<readonly number[]> {
  const times = await gatherNumbers(world, milliseconds);
  return milliseconds.map((_, run) => Math.max(...times.map((ofRank) => ofRank[run] ?? 0)));
}

async function gatherNumbers(
  world: Pick<World, "allGather">,
  numbers: readonly number[],
): Promise<readonly (readonly number[])[]> {
  const parts = await world.allGather(new Uint8Array(Float64Array.from(numbers).buffer));
  return parts.map((part) => [...new Float64Array(part.slice().buffer)]);
}
