/**
 * Decides between simulated schedules: takes the fastest one that is surely faster than the serial form, and gives the
 * reason.
 */
import { touchesPeers } from "../../commands/barriers.ts";
import type { Kernel } from "../../commands/kernel.ts";
import type { Program } from "../../commands/program.ts";
import { at } from "../../support/invariant.ts";
import { commandPeer } from "../../trace/command-work.ts";
import type { ScheduleCandidate } from "./candidates.ts";
import { peerTraffic } from "./peer-traffic.ts";
import type { ChoiceCombination } from "./search.ts";

/** A schedule as it was simulated. */
export interface Considered {
  readonly candidate: ScheduleCandidate;
  /** Predicted time of a run, with the corrections for known errors of the model. */
  readonly milliseconds: number;
  /** What the simulation assumed because the profile lacks it. */
  readonly assumptions: readonly string[];
  /** The part of its time by which the candidate has to beat the serial form. */
  readonly margin: number;
}

export interface Decision<T extends Considered> {
  readonly picked: T;
  /** All schedules, the fastest first. */
  readonly considered: readonly Considered[];
  /** One line: what was picked, its predicted time, and what it was compared with. */
  readonly reason: string;
  /** What the predictions assume, each sentence once. */
  readonly assumptions: readonly string[];
}

/** Picks among at least one schedule, of one program or of several that compute the same. */
export function decide<T extends Considered>(all: readonly T[]): Decision<T> {
  const ordered = all.toSorted((a, b) => a.milliseconds - b.milliseconds);
  const picked = fastestWorthIt(ordered);
  // Drops the callers' other fields, because Programs are large.
  const considered = ordered.map(({ candidate, milliseconds, assumptions, margin }) => ({
    candidate,
    milliseconds,
    assumptions,
    margin,
  }));
  const assumptions = sentences(ordered.flatMap((each) => each.assumptions));
  return { picked, considered, reason: reasonFor(picked.candidate, considered), assumptions };
}

/** The serial form, unless another schedule beats it by that schedule's margin. */
function fastestWorthIt<T extends Considered>(ordered: readonly T[]): T {
  const serial = ordered.find(({ candidate }) => isSerial(candidate));
  if (serial === undefined) return at(ordered, 0);
  return ordered.find(({ milliseconds, margin }) => milliseconds * (1 + margin) < serial.milliseconds) ?? serial;
}

export function isSerial({ lowering }: ScheduleCandidate): boolean {
  return lowering.overlap === false && lowering.backend !== "cuda";
}

function reasonFor(picked: ScheduleCandidate, ordered: readonly Considered[]): string {
  const timeOf = (candidate: ScheduleCandidate): string => {
    const found = ordered.find((each) => each.candidate === candidate);
    return predictedTimeText(found?.milliseconds ?? NaN);
  };
  const candidates = ordered.map(({ candidate }) => candidate);
  const serial = candidates.find(isSerial);
  const next = candidates.find((each) => each !== picked && each !== serial);
  const against = [
    ...(serial === undefined || serial === picked ? [] : [`serial ${timeOf(serial)}`]),
    ...(next === undefined ? [] : [`next ${next.name} ${timeOf(next)}`]),
  ];
  const rank = picked === candidates[0] ? "the fastest" : "nearly the fastest";
  const text = `${picked.name}: ${timeOf(picked)}, ${rank} of ${candidates.length} simulated schedules`;
  return [text, ...(against.length === 0 ? [] : [against.join(", ")])].join("; ");
}

/** Each once. */
export function sentences(assumptions: readonly string[]): readonly string[] {
  return [...new Set(assumptions)].toSorted();
}

export function predictedTimeText(milliseconds: number): string {
  return `${milliseconds.toPrecision(3)} ms`;
}

// Corrects predicted times by the errors that the simulation had against measurements on GPUs (docs/simulation.md). A
// candidate's time is multiplied by `correction`, and must then beat the serial form by `marginToSerial`. Neither
// depends on shapes or machines.

/**
 * For chunks cut in two: the model lacks the slowdown of many small GEMMs and copies beside each other. For chunks cut in
 * four it is twice as large.
 */
const cutting = 0.05;

/**
 * Up to `fewKernels` kernels in peers' memory per rank and communication of a loop cost nothing; each doubling beyond
 * that slows GEMMs by `manyKernels`.
 */
const fewKernels = 4;
const manyKernels = 0.06;

/**
 * For copies that send a sum of received data: the sum finds no free SMs before the GEMMs beside it end, so the copies
 * wait longer.
 */
const relaying = 0.05;

/** The gain that each unusual choice must bring; smaller differences of predicted times mean nothing. */
const oddity = 0.015;

/**
 * On 4 x H200, schedules that were slower than the serial form had corrected predictions of less than 3 % faster with
 * copies over links, and of at most 5 % faster with kernels in peers' memory beside other kernels. Where nothing runs
 * beside them, on 2 x H100, two of 31 GEMMs with one such kernel were slower, by 2.2 and 0.1 %, where 1 % or more was
 * predicted.
 */
const marginOfCopies = 0.03;
const marginOfKernels = 0.05;
const marginOfSequences = 0.01;

/**
 * On 2 x H100, predictions of transformer blocks with loops over chunks of tokens were 2 to 6 % lower, relative to the
 * measured times, than those of the serial form; where less than 3 % was predicted, blocks were up to 3.5 % slower. With
 * loops over devices, forward passes gained 4 % or more, at most 2.9 % less than predicted, and forward + backward 3 % in
 * the mean, where 4 % was predicted. Kernels in peers' memory without a loop gained 1.1 % in the mean of eleven
 * measurements, where 3.5 % was predicted.
 */
const marginOfChunks = 0.05;
const marginOfOthers = 0.01;

/**
 * The same for a program whose regions have schedules of their own, which are those of `chosen`. All loops but those over
 * devices count as loops over chunks.
 */
export function marginOfRegions(chosen: readonly Pick<ScheduleCandidate, "lowering">[]): number {
  const hasChunks = chosen.some(({ lowering }) => lowering.overlap !== false && lowering.deviceLoops !== true);
  return hasChunks ? marginOfChunks : marginOfOthers;
}

/** The factor on a candidate's predicted time. */
export function correction(program: Program, { names, schedule }: ChoiceCombination): number {
  const { splitChunks = 1 } = schedule;
  const kernels = Math.max(0, ...program.ranks.map((_, rank) => kernelsInPeers(program, rank)));
  return (
    1 +
    cutting * Math.log2(splitChunks) +
    manyKernels * Math.max(0, Math.log2(kernels / fewKernels)) +
    (relaysSums(program) ? relaying : 0) +
    oddity * names.length
  );
}

/**
 * The part by which a program must beat the serial form. Never being slower matters more than the last few percent.
 * `overlaps`: it has loops, or some communication runs beside kernels.
 */
export function marginToSerial(program: Program, overlaps: boolean): number {
  const { kernels, copies } = peerTraffic(program);
  if (!kernels || copies) return marginOfCopies;
  return overlaps ? marginOfKernels : marginOfSequences;
}

const sums: ReadonlySet<Kernel["kind"]> = new Set(["reduction", "combine"]);

/** Of the statement with the most. */
function kernelsInPeers(program: Program, rank: number): number {
  const { commands, origins } = at(program.ranks, rank);
  const counts = new Map<string, number>();
  for (const [position, command] of commands.entries()) {
    if (!touchesPeers(program, rank, command)) continue;
    const statement = at(origins, position).path.join();
    counts.set(statement, (counts.get(statement) ?? 0) + 1);
  }
  return Math.max(0, ...counts.values());
}

/** Whether a copy over a link sends the result of a sum. */
function relaysSums(program: Program): boolean {
  const made = new Set(
    program.ranks.flatMap(({ commands }) =>
      commands.flatMap((command) =>
        command.kind === "launch" && sums.has(at(program.kernels, command.kernel).kind)
          ? command.outputs.map(({ buffer }) => buffer)
          : [],
      ),
    ),
  );
  return program.ranks.some(({ rank, commands }) =>
    commands.some(
      (command) =>
        command.kind === "copy" && commandPeer(program, rank, command) !== null && made.has(command.source.buffer),
    ),
  );
}
