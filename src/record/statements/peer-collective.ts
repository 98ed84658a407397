/**
 * A collective of the CUDA backend, on the current stream. Each rank pulls the data for its result from its peers'
 * memory: copy engines move data, and one kernel reads all inputs in team order and reduces them. The kernel of an
 * Allreduce also writes to all ranks.
 *
 *   Allgather, position p of n       signal ready to p-1, p-2, ...; copy the rank's own slice
 *                                    wait ready of p+1, copy its slice; wait ready of p+2, copy its slice; ...
 *                                    signal done to all        Wait: wait done of all
 *   ReduceScatter, position p of n   signal ready to all; wait ready of all; combine slice p of all inputs
 *                                    signal done to all        Wait: wait done of all
 *   Allreduce, position p of n       signal ready to all; wait ready of all; combine slice p into all outputs
 *                                    signal done to all; wait done of all
 *
 * An Allreduce completes on its stream, as NCCL's does, so that a GPU can run its signals and waits in its one kernel.
 * In step k every rank copies from the rank k positions after it, so no link carries two copies at once. A rank sends
 * every signal that it can before its first wait. Every wait therefore gets its signal even with one queue per rank
 * (docs/commands.md).
 */
import { collectives, sharesResult } from "../../commands/collectives.ts";
import type { SlotRole } from "../../commands/command-list.ts";
import { cutIntoSlices, positionsWithSlice, viewsToCut } from "../../commands/slices.ts";
import type { Collective } from "../../commands/command.ts";
import { alignViews, partOf, sameView } from "../../commands/view.ts";
import { dtypes } from "../../numerics/dtype.ts";
import { agreed } from "../../host/alike/classes.ts";
import { at } from "../../support/invariant.ts";
import type { Communicator } from "../streams.ts";
import type { Post, Recorder } from "../recorder.ts";
import { emitAt } from "../transfers.ts";
import { emit } from "../tape.ts";

export interface PeerCollectiveRequest {
  readonly communicator: Communicator;
  /** On the first rank that is recorded. */
  readonly operation: Collective;
  /** On rank number k. */
  readonly operationOn: (k: number) => Collective;
  /** The position in the team of each rank that is recorded. */
  readonly positions: readonly number[];
  /** Positions of the ranks that have an output, in team order. */
  readonly readers: readonly number[];
  /** Positions of the ranks that have an input, in team order. */
  readonly sources: readonly number[];
}

export function recordPeerCollective(recorder: Recorder, request: PeerCollectiveRequest): Post {
  const { communicator, operation, operationOn } = request;
  const { tape, streams, alike } = recorder;
  const combining = combiningOf(operation);
  const collective = tape.peerCollectives.length;
  const stream = streams.current;
  const actions: Actions = {
    signal: (others, slot) =>
      emitAt(recorder, { kind: "signalRank", stream, collective, position: at(others, 0), slot }, others),
    wait: (others, slot) =>
      emitAt(recorder, { kind: "waitRank", stream, collective, position: at(others, 0), slot }, others),
    copy: (others) => emitAt(recorder, { kind: "copyRank", stream, collective, position: at(others, 0) }, others),
    combine: () => emit(tape, { kind: "combineRanks", stream, collective }),
  };
  const before = tape.commands.length;
  const awaited = combining === null ? pullResult(actions, request) : shareResult(actions, request, combining);
  // A team of one in place, and tensors without elements, need no commands.
  if (tape.commands.length === before) return { kind: "nothing" };
  const nameOn = (k: number): string => communicator.names[k] ?? at(communicator.names, 0);
  tape.peerCollectives.push({ communicator: nameOn(0), operation, combining });
  alike?.collectives.push((k) => ({ communicator: nameOn(k), operation: operationOn(k), combining }));
  const signals = awaited.map(
    (positions) => ({ kind: "waitRank", collective, position: at(positions, 0), positions, slot: "done" }) as const,
  );
  if (signals.length === 0) return { kind: "stream", stream };
  return { kind: "signals", stream: operation.output === null ? null : stream, signals };
}

/** A position in the team, for each rank that is recorded. */
type Positions = readonly number[];

/** The actions of a rank in its collective. Other ranks are given by their positions in the team. */
interface Actions {
  readonly signal: (position: Positions, slot: SlotRole) => void;
  readonly wait: (position: Positions, slot: SlotRole) => void;
  readonly copy: (position: Positions) => void;
  readonly combine: () => void;
}

/**
 * Every reader computes its whole result from the sources. Returns the positions whose `done` completes the result on
 * this rank.
 */
function pullResult(actions: Actions, request: PeerCollectiveRequest): readonly Positions[] {
  const { operation, positions, readers, sources } = request;
  const readersOfMine = operation.input === null ? [] : rotated(readers, request, -1);
  const sourcesOfMine = operation.output === null ? [] : rotated(sources, request, 1);
  for (const reader of readersOfMine) actions.signal(reader, "ready");
  if (collectives[operation.type].reduces && operation.output !== null && sources.length > 1) {
    for (const source of sourcesOfMine) actions.wait(source, "ready");
    actions.combine();
  } else {
    if (agreed(positions.map((_, k) => hasOwnPiece(request, k)))) actions.copy(positions);
    for (const source of sourcesOfMine) {
      actions.wait(source, "ready");
      actions.copy(source);
    }
  }
  for (const source of sourcesOfMine) actions.signal(source, "done");
  return readersOfMine;
}

/**
 * Every rank with a slice combines it and writes it to all results. Here `ready` also means that the rank's output may
 * be written, and `done` that the slice has arrived. Returns no positions, because the stream waits for `done` at once.
 */
function shareResult(
  actions: Actions,
  request: PeerCollectiveRequest,
  combining: readonly number[],
): readonly Positions[] {
  const { positions, readers } = request;
  const writers = rotated(combining, request, -1);
  for (const writer of writers) actions.signal(writer, "ready");
  if (agreed(positions.map((position) => combining.includes(position)))) {
    const others = rotated(readers, request, 1);
    for (const other of others) actions.wait(other, "ready");
    actions.combine();
    for (const other of others) actions.signal(other, "done");
  }
  for (const writer of writers) actions.wait(writer, "done");
  return [];
}

/** The other positions of the team in order, from the one after a rank (step 1) or before it (step -1). */
function rotated(
  members: readonly number[],
  { operation, positions }: PeerCollectiveRequest,
  step: 1 | -1,
): readonly Positions[] {
  const size = operation.team.length;
  const each = positions.map((position) => {
    const distance = (other: number): number => (size + step * (other - position)) % size;
    return members.filter((other) => other !== position).sort((a, b) => distance(a) - distance(b));
  });
  const count = agreed(each.map(({ length }) => length));
  return Array.from({ length: count }, (_, turn) => each.map((others) => at(others, turn)));
}

/** Whether rank number k must copy a slice of its own input to its own output. */
function hasOwnPiece({ operationOn, positions, readers, sources }: PeerCollectiveRequest, k: number): boolean {
  const { type, input, output } = operationOn(k);
  const position = at(positions, k);
  if (input === null || output === null) return false;
  const { splitsInput, splitsOutput } = collectives[type];
  const piece = splitsInput ? partOf(input, readers.indexOf(position)) : input;
  const place = splitsOutput ? partOf(output, sources.indexOf(position)) : output;
  const [from, to] = alignViews([piece, place]) ?? [];
  // Link reports views without a common box.
  return from === undefined || to === undefined || !sameView(from, to);
}

/**
 * The positions that combine a slice of a shared result; null for other collectives. All ranks' tensors have the same
 * layout, so this rank's views determine the number of slices. Link reports ranks that disagree, and views without a
 * common box.
 */
function combiningOf({ type, team, input, output }: Collective): readonly number[] | null {
  if (!sharesResult(type) || team.length === 1 || input === null || output === null) return null;
  const shape = viewsToCut([input, output])?.[0]?.shape;
  if (shape === undefined) return null;
  return positionsWithSlice(cutIntoSlices(shape, dtypes[input.dtype].bytes, team.length));
}
