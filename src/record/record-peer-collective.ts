/**
 * A collective of the CUDA backend on the current stream: each member pulls what its result needs out of the others' memory. What is
 * only moved is copied (copy engines), what is reduced is combined by one kernel that reads all members' inputs in team order.
 *
 *   Allgather, member p of n       signal ready to p-1, p-2, ...; copy the own piece
 *                                  wait ready of p+1, copy its piece; wait ready of p+2, copy its piece; ...
 *                                  signal done to all        Wait: wait done of all
 *   Allreduce of a large tensor    signal ready to all; wait ready of all; combine slice p
 *                                  signal slice to all; wait slice of p+1, copy slice p+1 of its output; ...
 *                                  signal done to all        Wait: wait done of all
 *
 * In every step k all members read from another one, so that no link carries two copies at once. A member signals all that it can
 * before it first waits: with one queue per rank, too, every wait has its signal (docs/commands.md).
 */
import { collectiveRules } from "../commands/collectives.ts";
import type { MemberSlot } from "../commands/command.ts";
import { boxToCut, cutIntoSlices, isEmptySlice, type Slices } from "../commands/slices.ts";
import type { Collective } from "../commands/transfer.ts";
import { alignViews, elementCount, partOf, sameView } from "../commands/view.ts";
import { dtypes } from "../numerics/dtype.ts";
import type { Post } from "./posts.ts";
import type { Recorder } from "./recorder.ts";
import { emit } from "./tape.ts";
import { mayOverlap } from "./views.ts";

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
  const slices = slicesOf(operation);
  const collective = tape.peerCollectives.length;
  const stream = streams.current;
  const member: Member = {
    signal: (to, slot) => emit(tape, { kind: "signalMember", stream, collective, member: to, slot }),
    wait: (from, slot) => emit(tape, { kind: "waitMember", stream, collective, member: from, slot }),
    copy: (from) => emit(tape, { kind: "copyMember", stream, collective, member: from }),
    combine: () => emit(tape, { kind: "combineMembers", stream, collective }),
  };
  const before = tape.commands.length;
  const awaited = slices === null ? inOneRound(member, request) : inTwoRounds(member, request, slices);
  // Alone and in place there is nothing to do.
  if (tape.commands.length === before) return { kind: "nothing" };
  tape.peerCollectives.push({ communicator, operation, slices });
  const signals = awaited.map((from) => ({ kind: "waitMember", collective, member: from, slot: "done" }) as const);
  if (signals.length === 0) return { kind: "stream", stream };
  return { kind: "signals", stream: operation.output === null ? null : stream, signals };
}

/** What one member does, by positions in the team. */
interface Member {
  readonly signal: (to: number, slot: MemberSlot) => void;
  readonly wait: (from: number, slot: MemberSlot) => void;
  readonly copy: (from: number) => void;
  readonly combine: () => void;
}

/** Every reader makes its whole result of the sources. Returns the members whose `done` ends it for this one. */
function inOneRound(member: Member, request: PeerCollectiveRequest): readonly number[] {
  const { operation, position, readers, sources } = request;
  const behind = operation.input === null ? [] : rotated(readers, request, -1);
  const ahead = operation.output === null ? [] : rotated(sources, request, 1);
  for (const to of behind) member.signal(to, "ready");
  if (collectiveRules[operation.type].reduces && operation.output !== null && sources.length > 1) {
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
 * Every member combines a slice, then copies those of the others. That all have signalled their slices says that they have read
 * the inputs, so that only the second round ends with `done`.
 */
function inTwoRounds(member: Member, request: PeerCollectiveRequest, slices: Slices): readonly number[] {
  const { position, readers } = request;
  const combining = readers.filter((each) => !isEmptySlice(slices, each));
  const combines = combining.includes(position);
  const behind = rotated(readers, request, -1);
  for (const to of rotated(combining, request, -1)) member.signal(to, "ready");
  if (combines) {
    for (const from of rotated(readers, request, 1)) member.wait(from, "ready");
    member.combine();
    for (const to of behind) member.signal(to, "slice");
  }
  const ahead = rotated(combining, request, 1);
  for (const from of ahead) {
    member.wait(from, "slice");
    member.copy(from);
  }
  for (const to of ahead) member.signal(to, "done");
  return combines ? behind : [];
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
  const { splitsInput, splitsOutput } = collectiveRules[type];
  const piece = splitsInput ? partOf(input, readers.indexOf(position)) : input;
  const place = splitsOutput ? partOf(output, sources.indexOf(position)) : output;
  const [from, to] = alignViews([piece, place]) ?? [];
  // Views without a common box are the linker's to refuse.
  return from === undefined || to === undefined || !sameView(from, to);
}

/**
 * In one round every member reads all of n-1 inputs, in two 2(n-1)/n of them: (n-1)(n-2)/n inputs less, for one signal more. Up to
 * this many bytes less the second round takes longer than it saves: about 10 us of NVLink, against the launches, signals and
 * copies of a round.
 */
const worthOneRound = 4 * 2 ** 20;

/**
 * How the members of an Allreduce share the work: null for each doing all of it. In place they must share: who writes its result
 * over its input at once would spoil what others have yet to read.
 */
function slicesOf({ type, team, input, output }: Collective): Slices | null {
  if (type !== "Allreduce" || team.length === 1 || input === null || output === null) return null;
  const count = team.length;
  const box = boxToCut([input, output]);
  if (box === null) return null;
  const elementBytes = dtypes[input.dtype].bytes;
  const saved = ((count - 1) * (count - 2) * elementCount(box.shape) * elementBytes) / count;
  if (saved <= worthOneRound && !mayOverlap(input, output)) return null;
  return cutIntoSlices(box.shape, elementBytes, count);
}
