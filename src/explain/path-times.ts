/**
 * What a run's time consists of, by class of command: the kernels of the rank that ends last, and between them the
 * commands that it waits for. To first order, a class whose commands take 1 % longer makes the run longer by 1 % of its
 * time here.
 */
import type { Program } from "../commands/program.ts";
import { type ByClass, byClass, type CommandClass, commandClassOf } from "../simulate/command-class.ts";
import type { TraceEvent } from "../trace/event.ts";
import type { Dependences } from "./dependences.ts";
import type { IdleTime } from "./idle-time.ts";

interface PathRun {
  readonly program: Program;
  readonly trace: readonly TraceEvent[];
  readonly milliseconds: number;
}

/**
 * Milliseconds by class, with the sum `milliseconds`. `interference`: how much longer kernels take because of transfers
 * and kernels in peers' memory; it counts as these, in proportion to how long they run.
 */
export function pathTimesOf(
  { program, trace, milliseconds }: PathRun,
  { rankOf, indexOf }: Dependences,
  { rank, kernels, parts }: IdleTime,
  interference: number,
): ByClass {
  const ran = new Map<CommandClass, number>();
  for (const { rank: owner, command, start, end } of trace) {
    if (owner === rank) addTo(ran, commandClassOf(program, rank, command), end - start);
  }
  const path = new Map<CommandClass, number>();
  for (const { cause, start, end, command } of parts) {
    const isHost = command < 0 || cause === "latency" || cause === "host";
    addTo(path, isHost ? "host" : commandClassOf(program, rankOf(command), indexOf(command)), end - start);
  }
  const slower = Math.max(0, Math.min(interference, kernels));
  share(path, ran, ["transfers", "reductionsInPeers"], slower);
  share(path, ran, ["gemms", "kernels"], kernels - slower);
  const rest = milliseconds - [...path.values()].reduce((sum, time) => sum + time, 0);
  addTo(path, "host", rest);
  return byClass((of) => path.get(of) ?? 0);
}

/** Adds `time` in proportion to how long commands of `classes` ran. */
function share(
  path: Map<CommandClass, number>,
  ran: ReadonlyMap<CommandClass, number>,
  classes: readonly CommandClass[],
  time: number,
): void {
  const total = classes.reduce((sum, of) => sum + (ran.get(of) ?? 0), 0);
  if (total > 0) for (const of of classes) addTo(path, of, (time * (ran.get(of) ?? 0)) / total);
}

function addTo(times: Map<CommandClass, number>, of: CommandClass, time: number): void {
  times.set(of, (times.get(of) ?? 0) + time);
}
