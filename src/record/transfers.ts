/**
 * Commands that name other ranks, on all ranks that are recorded: transfers of a library, and signals, waits and copies
 * of a collective in peers' memory.
 */
import type { UnlinkedCommand } from "../commands/command-list.ts";
import type { Collective, CommandStreamId, PointToPointGroup } from "../commands/command.ts";
import { at } from "../support/invariant.ts";
import { type RankPointToPoint, viewOn } from "./alike/alike.ts";
import type { AwaitedSignal, Post, Recorder } from "./recorder.ts";
import { type Communicator, communicatorStream, order, recordOn } from "./streams.ts";
import { emit } from "./tape.ts";

/** A library's transfer, on each rank that is recorded. */
export interface RankTransfer {
  readonly communicator: Communicator;
  /** Of the first rank. */
  readonly operation: Collective | PointToPointGroup;
  /** Of rank number k. */
  readonly operationOn: (k: number) => Collective | PointToPointGroup;
}

export function groupOf(communicator: Communicator, ops: readonly RankPointToPoint[]): RankTransfer {
  const operationOn = (k: number): PointToPointGroup => ({
    kind: "group",
    ops: ops.map(({ type, peers, view }) => ({ type, peer: peers[k] ?? at(peers, 0), view: viewOn(view, k) })),
  });
  const own = ops.map(({ type, peers, view }) => ({ type, peer: at(peers, 0), view }));
  return { communicator, operation: { kind: "group", ops: own }, operationOn };
}

/** Posts a library's transfer on the communicator's stream, after the work of the current stream. */
export function postTransfer(recorder: Recorder, transfer: RankTransfer): Post {
  const { streams } = recorder;
  const stream = communicatorStream(streams, transfer.communicator);
  order(streams, streams.current, stream);
  emitTransfer(recorder, stream, transfer);
  return { kind: "event", event: recordOn(streams.tape, stream) };
}

/** The transfer on a library's stream. */
export function emitTransfer(
  { tape, alike }: Recorder,
  stream: CommandStreamId,
  { communicator: { names }, operation, operationOn }: RankTransfer,
): void {
  const nameOn = (k: number): string => names[k] ?? at(names, 0);
  alike?.varying.set(tape.commands.length, (_, k) => {
    return { kind: "transfer", stream, communicator: nameOn(k), operation: operationOn(k) };
  });
  emit(tape, { kind: "transfer", stream, communicator: nameOn(0), operation });
}

/** A wait or a signal of a collective in peers' memory, whose other rank is at one of the positions on each rank. */
export function emitAt(
  { tape, alike }: Recorder,
  command: Extract<UnlinkedCommand, { readonly position: number }>,
  positions: readonly number[],
): void {
  if (positions.some((position) => position !== command.position)) {
    alike?.varying.set(tape.commands.length, (_, k) => ({ ...command, position: at(positions, k) }));
  }
  emit(tape, command);
}

/** Waits on `stream` for a signal that completes a communication. */
export function emitWait(recorder: Recorder, signal: AwaitedSignal, stream: CommandStreamId): void {
  if (signal.kind === "waitPeer") return emit(recorder.tape, { ...signal, stream });
  const { positions, ...wait } = signal;
  emitAt(recorder, { ...wait, stream }, positions);
}
