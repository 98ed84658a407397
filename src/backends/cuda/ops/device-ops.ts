/**
 * Plans what a rank's host hands to the driver and the libraries for one run: a pure function from a Program to plain
 * data. `bind` turns the data into calls, in this process or, from a plan file, in another one.
 *
 *     signal slot 3, waitSignal slot 2   ->   batch: write 1 to the peer's word 3, wait for 1 in the own word 2, ...
 *     launch k0 (a matmul)               ->   gemm: the layout of its matrices, and their addresses
 */
import { type CommandStreamId, isBlocking } from "../../../commands/command.ts";
import type { Program } from "../../../commands/program.ts";
import { makeId } from "../../../support/ids.ts";
import { at } from "../../../support/invariant.ts";
import { teamsOf } from "../nccl/teams.ts";
import { commandWork } from "./command-work.ts";
import type { DeviceOp, DeviceOps, PeerWait } from "./device-op.ts";
import { joinWork, type ListedWork, type StreamWork, workOp } from "./join-work.ts";
import { waitRuns } from "./memory-operations.ts";
import { placesOf } from "./places.ts";
import { createTables } from "./planning.ts";
import { commandOf } from "./progress-word.ts";
import { missingEdges } from "./stream-edges.ts";
import { streamPriorities } from "./stream-priorities.ts";

/** The GPU that a list is planned for. */
export interface DeviceTarget {
  /** Kernels that wait for peers hold at most half of them. */
  readonly multiprocessors: number;
}

export interface PlanningOptions {
  /** Whether a command's signals and waits join its neighbours'. A traced run times every command by itself. */
  readonly joined?: boolean;
}

/** Throws `kernel-opaque` for an attention that cuDNN does not take. */
export function deviceOps(
  program: Program,
  rank: number,
  { multiprocessors }: DeviceTarget,
  { joined = true }: PlanningOptions = {},
): DeviceOps {
  const own = at(program.ranks, rank);
  const places = placesOf(program, rank);
  const tables = createTables(own.streams.length);
  const planning = { program, rank, places, tables };
  const works = own.commands.flatMap((command, index) =>
    commandWork(index, planning).map((work): ListedWork => ({
      stream: command.stream,
      index,
      work,
      isBlocking: isBlocking(command),
    })),
  );
  const issued: readonly StreamWork[] = joined ? joinWork(works, multiprocessors) : works;
  const edges = missingEdges(own.commands);
  const caller = makeId<CommandStreamId>(0);
  let events = own.eventCount;
  const edge = (from: CommandStreamId, to: readonly CommandStreamId[]): readonly DeviceOp[] => {
    if (to.length === 0) return [];
    const event = events++;
    return [
      { kind: "record", stream: from, command: -1, event },
      ...to.map((stream): DeviceOp => ({ kind: "wait", stream, command: -1, event })),
    ];
  };
  const ops = [
    ...edge(caller, edges.forks),
    ...issued.map(workOp),
    ...edges.joins.flatMap((stream) => edge(stream, [caller])),
  ];
  const priorities = streamPriorities(own.streams);
  const { kernels, gemms, attentions, scratchBytes, workspaceBytes } = tables;
  return {
    rank,
    world: program.ranks.length,
    streams: own.streams.map(({ name, role }, i) => ({ name, role, priority: at(priorities, i) })),
    events,
    memory: { ...places.needs, scratchBytes, workspaceBytes },
    kernels,
    gemms,
    attentions,
    teams: teamsOf(program),
    ops,
    waitRuns: issued.flatMap(longRuns),
  };
}

/** Runs of several waits, whose stream reports only the first. */
function longRuns({ work }: StreamWork): readonly (readonly PeerWait[])[] {
  if (work.kind !== "memory") return [];
  return waitRuns(work.operations)
    .filter(({ length }) => length > 1)
    .map((run) => run.map(({ word, says }) => ({ word, command: commandOf(says) })));
}
