/**
 * A command that accesses the memory of another process, as signals and messages around it. The command ends when its
 * effects in the other process are done, as it does in one memory, so that what other ranks may rely on stays true.
 *
 *     copy peer -> own             ->      signal; wait                          the message brings the bytes to `own`
 *     kernel(own, peer) -> peer    ->      signal; wait; kernel(own, span) -> span; signal; wait
 */
import type { BufferRef } from "../../../commands/buffer.ts";
import type { Command, Copy, Launch, SlotId } from "../../../commands/command.ts";
import { accumulates, type Operand } from "../../../commands/kernel.ts";
import { isEmpty, refOf, type View } from "../../../commands/view.ts";
import { at, invariant } from "../../../support/invariant.ts";
import type { GrowingProgram } from "./growing-program.ts";

/** What replaces the command; null if it stays. */
export function splitCommand(growing: GrowingProgram, rank: number, command: Command): readonly Command[] | null {
  if (command.kind === "copy") return splitCopy(growing, rank, command);
  return command.kind === "launch" ? splitLaunch(growing, rank, command) : null;
}

function splitCopy(growing: GrowingProgram, rank: number, copy: Copy): readonly Command[] | null {
  const { source, destination, stream } = copy;
  const [reads, writes] = [source, destination].map((view) => isElsewhere(growing, rank, view));
  if ((reads !== true && writes !== true) || isEmpty(source)) return null;
  invariant(reads !== writes, "one side of a copy is the rank's own", { rank });
  return reads === true
    ? fetch(growing, rank, stream, [{ source, destination }])
    : put(growing, rank, stream, [{ source, destination }]);
}

function splitLaunch(growing: GrowingProgram, rank: number, launch: Launch): readonly Command[] | null {
  const kernel = at(growing.program.kernels, launch.kernel);
  const viewsOf = (refs: readonly BufferRef[], operands: readonly Operand[]): readonly View[] =>
    refs.map((ref, i) => ({ ...at(operands, i), ...ref }));
  const inputs = viewsOf(launch.inputs, kernel.inputs);
  const outputs = viewsOf(launch.outputs, kernel.outputs);
  if (![...inputs, ...outputs].some((view) => isElsewhere(growing, rank, view))) return null;
  /** A peer's view, in memory of the rank's own. */
  const here = (view: View): View => (isElsewhere(growing, rank, view) ? growing.addSpan(rank, view) : view);
  const [read, made] = [inputs.map(here), outputs.map(here)];
  const moved = (peers: readonly View[], own: readonly View[]): readonly (readonly [View, View])[] =>
    peers.flatMap((peer, i) => (peer === own[i] || isEmpty(peer) ? [] : [[peer, at(own, i)] as const]));
  const before = [...moved(inputs, read), ...(accumulates(kernel) ? moved(outputs, made) : [])];
  const after = moved(outputs, made);
  const { stream } = launch;
  return [
    ...fetch(
      growing,
      rank,
      stream,
      before.map(([source, destination]) => ({ source, destination })),
    ),
    { ...launch, inputs: read.map(refOf), outputs: made.map(refOf) },
    ...put(
      growing,
      rank,
      stream,
      after.map(([destination, source]) => ({ source, destination })),
    ),
  ];
}

interface Moved {
  readonly source: View;
  readonly destination: View;
}

/** Asks for peers' bytes, and waits for them. */
function fetch(growing: GrowingProgram, rank: number, stream: Command["stream"], moves: readonly Moved[]): Command[] {
  return both(stream, moves, (payload) => {
    const peer = growing.bufferRank(payload.source.buffer);
    const [own, other] = [at(growing.processOf, rank), at(growing.processOf, peer)];
    const [asks, arrived] = [growing.addSlot(rank, peer), growing.addSlot(peer, rank)];
    const reply = growing.addChannel({
      from: other,
      to: own,
      raise: null,
      count: 1,
      payload,
      sent: null,
      ready: null,
      slots: [arrived],
      reply: null,
    });
    growing.addChannel({
      from: own,
      to: other,
      raise: asks,
      count: 1,
      payload: null,
      sent: null,
      ready: null,
      slots: [],
      reply,
    });
    return [asks, arrived];
  });
}

/** Sends bytes to peers, and waits until they are there. */
function put(growing: GrowingProgram, rank: number, stream: Command["stream"], moves: readonly Moved[]): Command[] {
  return both(stream, moves, (payload) => {
    const peer = growing.bufferRank(payload.destination.buffer);
    const [own, other] = [at(growing.processOf, rank), at(growing.processOf, peer)];
    const [ready, arrived] = [growing.addSlot(rank, peer), growing.addSlot(peer, rank)];
    const reply = growing.addChannel({
      from: other,
      to: own,
      raise: null,
      count: 1,
      payload: null,
      sent: null,
      ready: null,
      slots: [arrived],
      reply: null,
    });
    growing.addChannel({
      from: own,
      to: other,
      raise: ready,
      count: 1,
      payload,
      sent: null,
      ready: null,
      slots: [],
      reply,
    });
    return [ready, arrived];
  });
}

function both(
  stream: Command["stream"],
  moves: readonly Moved[],
  slotsOf: (move: Moved) => readonly [asks: SlotId, arrived: SlotId],
): Command[] {
  const slots = moves.map(slotsOf);
  return [
    ...slots.map(([slot]): Command => ({ kind: "signal", stream, slot })),
    ...slots.map(([, slot]): Command => ({ kind: "waitSignal", stream, slot })),
  ];
}

function isElsewhere({ processOf, bufferRank }: GrowingProgram, rank: number, { buffer }: BufferRef): boolean {
  return at(processOf, bufferRank(buffer)) !== at(processOf, rank);
}
