/**
 * The slices of each command on the track of its stream: what runs, and before it what it waits for. Slices of one
 * stream follow each other in its order. Lifetime marks do nothing at run time and have no slice.
 */
import { commandDetails, kernelText } from "../../commands/command-text.ts";
import type { Command } from "../../commands/command.ts";
import type { Program, RankProgram } from "../../commands/program.ts";
import type { Collective, PointToPointGroup } from "../../commands/transfer.ts";
import { dispatch, type RuleTable } from "../../support/dispatch.ts";
import { at } from "../../support/invariant.ts";
import { counted } from "../../support/wording.ts";
import type { CommandPlace } from "./arrows.ts";
import { bytesOf, peerOf } from "../command-work.ts";
import type { TraceEvent } from "../event.ts";
import type { EventOf, MovingSince } from "../event-table.ts";

/**
 * kernel, copy, transfer: data is computed or moves. wait: the stream is blocked. order: an event or signal, raised or
 * taken.
 */
export type SliceCategory = "kernel" | "copy" | "transfer" | "wait" | "order";

export interface Slice extends CommandPlace {
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
  causeOf: (place: CommandPlace) => CommandPlace | null,
): readonly Slice[] {
  const ends = new Map<number, number>();
  return rank.commands.flatMap((command, index) => {
    const event = eventOf(rank.rank, index);
    if (event === undefined) return [];
    const reached = event.reached ?? ends.get(command.stream) ?? 0;
    ends.set(command.stream, event.end);
    const cause = causeOf({ rank: rank.rank, command: index });
    const causeEnd = cause === null ? null : (eventOf(cause.rank, cause.command)?.end ?? null);
    const context: Context = { program, rank, index, event, reached, moving: moving(event), causeEnd };
    return dispatch<Command, readonly Slice[], [Context]>(rules, command, context);
  });
}

const rules: RuleTable<Command, readonly Slice[], [Context]> = {
  launch: ({ kernel }, context) => [run(context, "kernel", kernelText(at(context.program.kernels, kernel)))],
  copy: (command, context) => {
    const peer = peerOf(context.program, context.rank.rank, command);
    const name = peer === null ? "copy" : `copy ${peer.direction} rank ${peer.rank}`;
    return [run(context, "copy", `${name}, ${bytesText(context)}`)];
  },
  transfer: ({ operation }, context) => {
    const name = operationName(operation);
    const { event, moving } = context;
    const slice = run(context, "transfer", `${name} ${bytesText(context)}`, moving);
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

function run({ rank, index, event }: Context, category: SliceCategory, name: string, start = event.start): Slice {
  return { rank: rank.rank, command: index, stream: event.stream, category, name, start, end: event.end };
}

function order(context: Context): Slice {
  const { kind } = at(context.rank.commands, context.index);
  return run(context, "order", `${kind} ${commandDetails(context.rank, context.index)}`);
}

/** Between the end of the wait and the taking, the stream is ready but has no worker, which shows as a gap. */
function waitAndTake(context: Context, name: string): readonly Slice[] {
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
  return `${bytesOf(program, rank.rank, index) ?? 0} B`;
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
