/**
 * The slices of each command on the track of its stream: what runs, and before it what it waits for. Slices of one
 * stream follow each other in its order. Lifetime marks do nothing at run time and have no slice.
 */
import { dependsOn } from "../../commands/collectives.ts";
import { commandDetails, kernelText } from "../../commands/command-text.ts";
import type { Collective, Command, CommandRef, PointToPointGroup } from "../../commands/command.ts";
import type { LinkedTransfer, Program, RankProgram } from "../../commands/program.ts";
import { dispatch, type RuleTable, at, invariant } from "../../support/invariant.ts";
import { counted } from "../../support/wording.ts";
import { commandBytes, commandPeer, isLocalCopy } from "../command-work.ts";
import type { EventOf, MovingSince, TraceEvent } from "../event-table.ts";

/**
 * kernel, copy, transfer: data is computed or moves. wait: the stream is blocked. order: an event or signal, raised or
 * taken.
 */
export type SliceCategory = "kernel" | "copy" | "transfer" | "wait" | "order";

export interface TraceSlice extends CommandRef {
  readonly stream: number;
  readonly category: SliceCategory;
  readonly name: string;
  /** Milliseconds from the start of the run, as measured. */
  readonly start: number;
  readonly end: number;
}

/** What the slices of one command are made from. */
interface Context {
  readonly program: Program;
  readonly rank: RankProgram;
  readonly index: number;
  readonly event: TraceEvent;
  /** When its stream reached the command: the end of the one before, if the back end does not say. */
  readonly reached: number;
  readonly moving: number;
  /** The end of what the command waits for, if that was traced. */
  readonly causeEnd: number | null;
}

/**
 * The slices of a rank's traced commands, in list order. `causeOf` gives the recordEvent of a waitEvent and the signal
 * of a waitSignal.
 */
export function slicesOf(
  program: Program,
  rank: RankProgram,
  eventOf: EventOf,
  moving: MovingSince,
  causeOf: (place: CommandRef) => CommandRef | null,
): readonly TraceSlice[] {
  const ends = new Map<number, number>();
  return rank.commands.flatMap((command, index) => {
    const event = eventOf(rank.rank, index);
    if (event === undefined) return [];
    const reached = event.reached ?? ends.get(command.stream) ?? 0;
    ends.set(command.stream, event.end);
    const cause = causeOf({ rank: rank.rank, command: index });
    const causeEnd = cause === null ? null : (eventOf(cause.rank, cause.command)?.end ?? null);
    const context: Context = { program, rank, index, event, reached, moving: moving(event), causeEnd };
    return dispatch<Command, readonly TraceSlice[], [Context]>(rules, command, context);
  });
}

const rules: RuleTable<Command, readonly TraceSlice[], [Context]> = {
  launch: ({ kernel }, context) => [run(context, "kernel", kernelText(at(context.program.kernels, kernel)))],
  copy: (command, context) => {
    const peer = commandPeer(context.program, context.rank.rank, command);
    const name = peer === null ? "copy" : `copy ${peer.direction} rank ${peer.rank}`;
    return [run(context, "copy", `${name}, ${bytesText(context)}`)];
  },
  transfer: (command, context) => {
    const name = operationName(command.operation);
    const { program, rank, event, moving } = context;
    const category = isLocalCopy(program, rank.rank, command) ? "copy" : "transfer";
    const slice = run(context, category, `${name} ${bytesText(context)}`, moving);
    if (!meetsOthers(context)) return [slice];
    // Drawn even if it did not wait: arrows to the other ranks begin at the arrival.
    return [{ ...slice, category: "wait", name: `wait for peers: ${name}`, start: event.start, end: moving }, slice];
  },
  recordEvent: (_, context) => [order(context)],
  waitEvent: ({ event }, context) => waitAndTake(context, `wait for e${event}`),
  signal: (_, context) => [order(context)],
  waitSignal: ({ slot }, context) => waitAndTake(context, `wait for slot ${slot}`),
  alloc: () => [],
  free: () => [],
};

function run({ rank, index, event }: Context, category: SliceCategory, name: string, start = event.start): TraceSlice {
  return { rank: rank.rank, command: index, stream: event.stream, category, name, start, end: event.end };
}

function order(context: Context): TraceSlice {
  const { kind } = at(context.rank.commands, context.index);
  return run(context, "order", `${kind} ${commandDetails(context.rank, context.index)}`);
}

/** Between the end of the wait and the taking, the stream is ready but has no worker, which shows as a gap. */
function waitAndTake(context: Context, name: string): readonly TraceSlice[] {
  const { event, reached, causeEnd } = context;
  const end = Math.min(event.start, causeEnd ?? event.start);
  const taken = order(context);
  return end > reached ? [{ ...taken, category: "wait", name, start: reached, end }, taken] : [taken];
}

function meetsOthers({ program, rank, index }: Context): boolean {
  const id = at(rank.transferOf, index);
  return id !== null && at(program.transfers, id).participants.length > 1;
}

function bytesText({ program, rank, index }: Context): string {
  return `${commandBytes(program, rank.rank, index) ?? 0} B`;
}

/** `Allgather`, `Reduce sum to rank 2`, `send to 1, recv from 3`, `4 sends, 4 recvs`. */
export function operationName(operation: Collective | PointToPointGroup): string {
  if (operation.kind === "collective") {
    const { type, reduceOp, root, team } = operation;
    const op = reduceOp === null ? "" : ` ${reduceOp}`;
    return root === null ? `${type}${op}` : `${type}${op}, root ${at(team, root)}`;
  }
  const { ops } = operation;
  if (ops.length <= 2)
    return ops.map(({ type, peer }) => `${type} ${type === "send" ? "to" : "from"} ${peer}`).join(", ");
  return (["send", "recv"] as const)
    .map((type) => counted(ops.filter((op) => op.type === type).length, type))
    .join(", ");
}

// Places slices on a grid of whole nanoseconds so that a viewer can draw them: every slice has a length, slices of one
// stream never overlap, and none starts before what it depends on. Clocks of threads differ by microseconds and have
// coarse ticks, so measured times alone guarantee none of this. A slice moves only to a later time, and only as far as
// needed.

export interface PlacedTimes {
  /** In nanoseconds from the start of the run, by slice. */
  readonly starts: Float64Array;
  readonly ends: Float64Array;
}

export interface TrackSlice {
  /** Slices of one track come in its order. */
  readonly track: number;
  /** In milliseconds. */
  readonly start: number;
  readonly end: number;
}

/** A dependency: slice `to` does not start before slice `from`. */
interface SlicePair {
  readonly from: number;
  readonly to: number;
}

const nanosecondsPerMillisecond = 1e6;

/** One pass in an order that serves tracks and dependencies (Kahn's algorithm). */
export function placeSlices(slices: readonly TrackSlice[], pairs: readonly SlicePair[]): PlacedTimes {
  const successors = slices.map((): number[] => []);
  const open = new Int32Array(slices.length);
  const lastOf = new Map<number, number>();
  const nextOnTrack = new Int32Array(slices.length).fill(-1);
  for (const [i, { track }] of slices.entries()) {
    const last = lastOf.get(track);
    if (last !== undefined) {
      nextOnTrack[last] = i;
      open[i] = 1;
    }
    lastOf.set(track, i);
  }
  for (const { from, to } of pairs) {
    at(successors, from).push(to);
    open[to] = at(open, to) + 1;
  }
  const starts = Float64Array.from(slices, ({ start }) => nanoseconds(start));
  const ends = new Float64Array(slices.length);
  const ready = slices.flatMap((_, i) => (open[i] === 0 ? [i] : []));
  let placed = 0;
  for (let i = ready.pop(); i !== undefined; i = ready.pop()) {
    placed++;
    const start = at(starts, i);
    const end = Math.max(nanoseconds(at(slices, i).end), start + 1);
    ends[i] = end;
    const release = (next: number, earliest: number): void => {
      starts[next] = Math.max(at(starts, next), earliest);
      open[next] = at(open, next) - 1;
      if (open[next] === 0) ready.push(next);
    };
    const next = at(nextOnTrack, i);
    if (next !== -1) release(next, end);
    for (const successor of at(successors, i)) release(successor, start);
  }
  invariant(placed === slices.length, "the commands of a run that ended have an order", { placed, of: slices.length });
  return { starts, ends };
}

function nanoseconds(milliseconds: number): number {
  return Math.max(0, Math.round(milliseconds * nanosecondsPerMillisecond));
}

// Which commands make streams wait for each other: the arrows of a trace. A pure function of a Program; the rules are
// those of docs/commands.md.

/**
 * event: from a recordEvent to a waitEvent. signal: from the n-th signal of a slot to its n-th wait. transfer: from the
 * start of one rank to the completion of another that needs its data.
 */
export interface TraceArrow {
  readonly kind: "event" | "signal" | "transfer";
  readonly from: CommandRef;
  readonly to: CommandRef;
}

export function arrowsOf(program: Program): readonly TraceArrow[] {
  return [...eventArrows(program), ...signalArrows(program), ...program.transfers.flatMap(transferArrows)];
}

function eventArrows({ ranks }: Program): readonly TraceArrow[] {
  return ranks.flatMap(({ rank, commands }) => {
    const recorded: number[] = [];
    const arrows: TraceArrow[] = [];
    for (const [index, command] of commands.entries()) {
      if (command.kind === "recordEvent") recorded[command.event] = index;
      if (command.kind !== "waitEvent") continue;
      const from = { rank, command: at(recorded, command.event, "an event is recorded before it is waited for") };
      arrows.push({ kind: "event", from, to: { rank, command: index } });
    }
    return arrows;
  });
}

/** The signals of a slot are ordered among themselves, and list order is one of the possible orders of a run. */
function signalArrows({ ranks, slots }: Program): readonly TraceArrow[] {
  const signals = slots.map((): CommandRef[] => []);
  const waits = slots.map((): CommandRef[] => []);
  for (const { rank, commands } of ranks) {
    for (const [index, command] of commands.entries()) {
      if (command.kind === "signal") at(signals, command.slot).push({ rank, command: index });
      if (command.kind === "waitSignal") at(waits, command.slot).push({ rank, command: index });
    }
  }
  return waits.flatMap((list, slot) =>
    list.map((to, n): TraceArrow => ({
      kind: "signal",
      from: at(at(signals, slot), n, "as many signals as waits"),
      to,
    })),
  );
}

function transferArrows(transfer: LinkedTransfer): readonly TraceArrow[] {
  const { participants } = transfer;
  const arrow = (from: number, to: number): readonly TraceArrow[] =>
    from === to ? [] : [{ kind: "transfer", from: placeOf(at(participants, from)), to: placeOf(at(participants, to)) }];
  if (transfer.kind === "group") return transfer.edges.flatMap(({ from, to }) => arrow(from, to));
  const { operation } = at(participants, 0);
  invariant(operation.kind === "collective", "the participants of a collective are collectives", {
    transfer: transfer.id,
  });
  return participants.flatMap((_, to) =>
    dependsOn(operation.type, participants.length, operation.root, to).flatMap((from) => arrow(from, to)),
  );
}

function placeOf({ rank, command }: CommandRef): CommandRef {
  return { rank, command };
}
