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
import type { Payload } from "./channel.ts";
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
  return exchange(growing, rank, stream, reads === true ? "fetch" : "put", [{ source, destination }]);
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
  const pairs = (peers: readonly View[], own: readonly View[]): readonly Pair[] =>
    peers.flatMap((peer, i) => (peer === own[i] || isEmpty(peer) ? [] : [{ peer, own: at(own, i) }]));
  const after = pairs(outputs, made);
  const before = [...pairs(inputs, read), ...(accumulates(kernel) ? after : [])];
  const fetched = before.map(({ peer, own }): Payload => ({ source: peer, destination: own }));
  const sent = after.map(({ peer, own }): Payload => ({ source: own, destination: peer }));
  return [
    ...exchange(growing, rank, launch.stream, "fetch", fetched),
    { ...launch, inputs: read.map(refOf), outputs: made.map(refOf) },
    ...exchange(growing, rank, launch.stream, "put", sent),
  ];
}

/** A peer's view, and the rank's own memory for it. */
interface Pair {
  readonly peer: View;
  readonly own: View;
}

/**
 * Asks peers for bytes, or sends them some, and waits until they are where they belong. Either is a message and its
 * answer; the bytes go with the answer, or with the message.
 */
function exchange(
  growing: GrowingProgram,
  rank: number,
  stream: Command["stream"],
  kind: "fetch" | "put",
  payloads: readonly Payload[],
): readonly Command[] {
  const { processOf, bufferRank, addSlot, addChannel } = growing;
  const slots = payloads.map((payload): readonly [message: SlotId, answer: SlotId] => {
    const peer = bufferRank(payload[kind === "fetch" ? "source" : "destination"].buffer);
    const [own, other] = [at(processOf, rank), at(processOf, peer)];
    const [message, answer] = [addSlot(rank, peer), addSlot(peer, rank)];
    const [asked, answered] = kind === "fetch" ? [null, payload] : [payload, null];
    const reply = addChannel({ from: other, to: own, payload: answered, slots: [answer] });
    addChannel({ from: own, to: other, raise: message, payload: asked, reply });
    return [message, answer];
  });
  return [
    ...slots.map(([slot]): Command => ({ kind: "signal", stream, slot })),
    ...slots.map(([, slot]): Command => ({ kind: "waitSignal", stream, slot })),
  ];
}

function isElsewhere({ processOf, bufferRank }: GrowingProgram, rank: number, { buffer }: BufferRef): boolean {
  return at(processOf, bufferRank(buffer)) !== at(processOf, rank);
}
