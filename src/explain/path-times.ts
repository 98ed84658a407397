/**
 * What a run's time consists of, by class of command: the kernels of the rank that ends last, and between them the
 * commands that it waits for. To first order, a class whose commands take 1 % longer makes the run longer by 1 % of its
 * time here.
 */
import type { Program } from "../commands/program.ts";
import { type ByClass, byClass, type CommandClass, commandClassOf } from "../simulate/command-class.ts";
import { at } from "../support/invariant.ts";
import type { TraceEvent } from "../trace/event.ts";
import type { Dependences } from "./dependences.ts";
import type { IdleTime } from "./idle/idle-time.ts";

interface PathRun {
  readonly program: Program;
  readonly trace: readonly TraceEvent[];
  readonly milliseconds: number;
}

/**
 * Milliseconds by class, with the sum `milliseconds`. `interference`: how much longer kernels take because of transfers,
 * kernels in peers' memory and copies by kernels; it counts as these, in proportion to how long they run.
 */
export function pathTimesOf(
  { program, trace, milliseconds }: PathRun,
  { rankOf, indexOf }: Dependences,
  { rank, kernels, parts }: IdleTime,
  interference: number,
): ByClass {
  const kernelTimes = new Map<CommandClass, number>();
  const besideThem = new Map<CommandClass, number>();
  for (const { rank: owner, command, start, end } of trace) {
    if (owner !== rank) continue;
    const of = commandClassOf(program, rank, command);
    if (of === "gemms" || of === "kernels") addTo(kernelTimes, of, end - start);
    else if (takesSms(program, rank, command)) addTo(besideThem, of, end - start);
  }
  const path = new Map<CommandClass, number>();
  for (const { cause, start, end, command } of parts) {
    const isHost = command < 0 || cause === "latency" || cause === "host";
    addTo(path, isHost ? "host" : commandClassOf(program, rankOf(command), indexOf(command)), end - start);
  }
  const slower = besideThem.size === 0 ? 0 : Math.max(0, Math.min(interference, kernels));
  share(path, besideThem, slower);
  share(path, kernelTimes, kernels - slower);
  const rest = milliseconds - [...path.values()].reduce((sum, time) => sum + time, 0);
  addTo(path, "host", rest);
  return byClass((of) => path.get(of) ?? 0);
}

/** A copy engine takes none. */
function takesSms({ ranks }: Program, rank: number, index: number): boolean {
  return at(at(ranks, rank).commands, index).kind !== "copy";
}

/** Adds `time` in proportion to how long commands of each class ran. */
function share(path: Map<CommandClass, number>, ran: ReadonlyMap<CommandClass, number>, time: number): void {
  const total = [...ran.values()].reduce((sum, each) => sum + each, 0);
  if (total > 0) for (const [of, each] of ran) addTo(path, of, (time * each) / total);
}

function addTo(times: Map<CommandClass, number>, of: CommandClass, time: number): void {
  times.set(of, (times.get(of) ?? 0) + time);
}
