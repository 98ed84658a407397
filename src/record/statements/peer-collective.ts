/**
 * A collective of the CUDA backend on the current stream: each member pulls what its result needs out of the others' memory. What is
 * only moved is copied (copy engines), what is reduced is combined by one kernel that reads all members' inputs in team order; that
 * of an Allreduce also writes to all of them.
 *
 *   Allgather, member p of n       signal ready to p-1, p-2, ...; copy the own piece
 *                                  wait ready of p+1, copy its piece; wait ready of p+2, copy its piece; ...
 *                                  signal done to all        Wait: wait done of all
 *   ReduceScatter, member p of n   signal ready to all; wait ready of all; combine the own part
 *                                  signal done to all        Wait: wait done of all
 *   Allreduce, member p of n       signal ready to all; wait ready of all; combine slice p into all outputs
 *                                  signal done to all; wait done of all
 *
 * An Allreduce ends on its stream, as NCCL's does: what is directly before and behind its one kernel can be part of it. In step k all
 * members copy from the one k places after them, so that no link carries two copies at once. A member signals all that it can before it
 * first waits: with one queue per rank, too, every wait has its signal (docs/commands.md).
 */
import { collectives, sharesResult } from "../../commands/collectives.ts";
import type { SlotRole } from "../../commands/command-list.ts";
import { cutIntoSlices, positionsWithSlice, viewsToCut } from "../../commands/slices.ts";
import type { Collective } from "../../commands/transfer.ts";
import { alignViews, partOf, sameView } from "../../commands/view.ts";
import { dtypes } from "../../numerics/dtype.ts";
import type { Post } from "../posts.ts";
import type { Recorder } from "../recorder.ts";
import { emit } from "../tape.ts";

export interface PeerCollectiveRequest {
  readonly communicator: string;
  readonly operation: Collective;
  /** This rank's position in the team. */
  readonly position: number;
  /** Positions of the members that have an output, in team order. */
  readonly readers: readonly number[];
  /** Positions of the members that have an input, in team order. */
  readonly sources: readonly number[];
}

export function recordPeerCollective(recorder: Recorder, request: PeerCollectiveRequest): Post {
  const { communicator, operation } = request;
  const { tape, streams } = recorder;
  const combining = combiningOf(operation);
  const collective = tape.peerCollectives.length;
  const stream = streams.current;
  const member: Member = {
    signal: (to, slot) => emit(tape, { kind: "signalRank", stream, collective, position: to, slot }),
    wait: (from, slot) => emit(tape, { kind: "waitRank", stream, collective, position: from, slot }),
    copy: (from) => emit(tape, { kind: "copyRank", stream, collective, position: from }),
    combine: () => emit(tape, { kind: "combineRanks", stream, collective }),
  };
  const before = tape.commands.length;
  const awaited = combining === null ? pullResult(member, request) : shareResults(member, request, combining);
  // Alone and in place, or without an element, there is nothing to do.
  if (tape.commands.length === before) return { kind: "nothing" };
  tape.peerCollectives.push({ communicator, operation, combining });
  const signals = awaited.map((from) => ({ kind: "waitRank", collective, position: from, slot: "done" }) as const);
  if (signals.length === 0) return { kind: "stream", stream };
  return { kind: "signals", stream: operation.output === null ? null : stream, signals };
}

/** What one member does, by positions in the team. */
interface Member {
  readonly signal: (to: number, slot: SlotRole) => void;
  readonly wait: (from: number, slot: SlotRole) => void;
  readonly copy: (from: number) => void;
  readonly combine: () => void;
}

/** Every reader makes its whole result of the sources. Returns the members whose `done` ends it for this one. */
function pullResult(member: Member, request: PeerCollectiveRequest): readonly number[] {
  const { operation, position, readers, sources } = request;
  const behind = operation.input === null ? [] : rotated(readers, request, -1);
  const ahead = operation.output === null ? [] : rotated(sources, request, 1);
  for (const to of behind) member.signal(to, "ready");
  if (collectives[operation.type].reduces && operation.output !== null && sources.length > 1) {
    for (const from of ahead) member.wait(from, "ready");
    member.combine();
  } else {
    if (hasOwnPiece(request)) member.copy(position);
    for (const from of ahead) {
      member.wait(from, "ready");
      member.copy(from);
    }
  }
  for (const to of ahead) member.signal(to, "done");
  return behind;
}

/**
 * Every member with a slice combines it and writes it into all results. Here `ready` says of a member's output, too, that it may be
 * written, and `done` that the slice is there. Returns nobody, as `done` is waited for at once.
 */
function shareResults(member: Member, request: PeerCollectiveRequest, combining: readonly number[]): readonly number[] {
  const { position, readers } = request;
  const writers = rotated(combining, request, -1);
  for (const to of writers) member.signal(to, "ready");
  if (combining.includes(position)) {
    const others = rotated(readers, request, 1);
    for (const from of others) member.wait(from, "ready");
    member.combine();
    for (const to of others) member.signal(to, "done");
  }
  for (const from of writers) member.wait(from, "done");
  return [];
}

/** The members after (step 1) or before (step -1) this one, around the team, without itself. */
function rotated(
  positions: readonly number[],
  { operation, position }: PeerCollectiveRequest,
  step: 1 | -1,
): readonly number[] {
  const size = operation.team.length;
  const distance = (other: number): number => (size + step * (other - position)) % size;
  return positions.filter((other) => other !== position).sort((a, b) => distance(a) - distance(b));
}

/** Whether a piece goes from this rank's input to its own output, where it does not lie already. */
function hasOwnPiece({ operation, position, readers, sources }: PeerCollectiveRequest): boolean {
  const { type, input, output } = operation;
  if (input === null || output === null) return false;
  const { splitsInput, splitsOutput } = collectives[type];
  const piece = splitsInput ? partOf(input, readers.indexOf(position)) : input;
  const place = splitsOutput ? partOf(output, sources.indexOf(position)) : output;
  const [from, to] = alignViews([piece, place]) ?? [];
  // Views without a common box are the linker's to refuse.
  return from === undefined || to === undefined || !sameView(from, to);
}

/**
 * The members of an Allreduce that have a slice of it; null for other collectives. The members' tensors lie alike, so that this rank's
 * say how many slices there are; link refuses members that see it differently. Views without a common box are the linker's to refuse.
 */
function combiningOf({ type, team, input, output }: Collective): readonly number[] | null {
  if (!sharesResult(type) || team.length === 1 || input === null || output === null) return null;
  const shape = viewsToCut([input, output])?.[0]?.shape;
  if (shape === undefined) return null;
  return positionsWithSlice(cutIntoSlices(shape, dtypes[input.dtype].bytes, team.length));
}
