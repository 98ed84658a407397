/**
 * Launches that read or write peers' memory, and the barriers around them. A barrier is a launch with the signals and
 * waits directly before and after it on its stream; a GPU can do all of it in one kernel, which waits and signals by
 * itself.
 *
 *     GEMM | signal ready, wait ready, combine, signal done, wait done | GEMM
 */
import type { Command, CommandKind } from "./command.ts";
import type { Program } from "./program.ts";

/** Whether a command is a launch on `rank` that reads or writes a buffer of another rank. */
export function touchesPeers({ buffers }: Pick<Program, "buffers">, rank: number, command: Command): boolean {
  if (command.kind !== "launch") return false;
  for (const { buffer } of command.inputs) if (buffers[buffer]?.rank !== rank) return true;
  for (const { buffer } of command.outputs) if (buffers[buffer]?.rank !== rank) return true;
  return false;
}

/** Positions in the rank's list, both inclusive: at least that of the launch. */
export interface Barrier {
  readonly first: number;
  readonly last: number;
}

/** The barriers in the list of `rank`, in ascending order; no two share a command. */
export function barriersIn(
  commands: readonly Command[],
  rank: number,
  memory: Pick<Program, "buffers">,
): readonly Barrier[] {
  const barriers: Barrier[] = [];
  for (const [position, command] of commands.entries()) {
    if (!touchesPeers(memory, rank, command)) continue;
    const start = (barriers.at(-1)?.last ?? -1) + 1;
    const is = (other: number, kind: CommandKind): boolean => {
      const neighbour = other < start ? undefined : commands[other];
      return neighbour?.kind === kind && neighbour.stream === command.stream;
    };
    const run = (from: number, step: 1 | -1, kind: CommandKind): number => {
      let end = from;
      while (is(end + step, kind)) end += step;
      return end;
    };
    barriers.push({
      first: run(run(position, -1, "waitSignal"), -1, "signal"),
      last: run(run(position, 1, "signal"), 1, "waitSignal"),
    });
  }
  return barriers;
}
