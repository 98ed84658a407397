/**
 * Splits a Program over processes. Each gets the commands of its ranks, in which all communication with other processes
 * is signals and waits; channels say which messages these stand for. Every process makes the same split, so that they
 * agree on slots and channels. What stays in one process does not change.
 */
import type { BufferRef } from "../../../commands/buffer.ts";
import type { Command, Copy, Launch, Origin, SlotId, TransferId } from "../../../commands/command.ts";
import { accumulates, type Operand } from "../../../commands/kernel.ts";
import type { Participant, Program, RankProgram } from "../../../commands/program.ts";
import { isEmpty, refOf, type View } from "../../../commands/view.ts";
import { makeId, at, invariant } from "../../../support/invariant.ts";
import { type Channel, type GrowingProgram, growingProgram, type ChannelPayload } from "./growing-program.ts";
import { splitTransfer } from "./split-transfer.ts";

export interface SplitProgram {
  /** What one process runs: other ranks have no commands and no memory. Buffers of the whole Program keep their ids. */
  readonly programOf: (process: number) => Program;
  readonly channels: readonly Channel[];
  /** By rank and command: the command of the whole Program that it is part of. */
  readonly sources: readonly (readonly number[])[];
}

/** `processOf`: by rank, the process that holds it. */
export function splitOverProcesses(program: Program, processOf: readonly number[]): SplitProgram {
  const growing = growingProgram(program, processOf);
  const staysWith = program.transfers.map(({ participants }) => {
    const processes = new Set(participants.map(({ rank }) => at(processOf, rank)));
    const [process] = processes;
    return processes.size === 1 && process !== undefined ? process : null;
  });
  const replaced = program.ranks.map(() => new Map<number, readonly Command[]>());
  for (const transfer of program.transfers) {
    if (staysWith[transfer.id] !== null) continue;
    const split = splitTransfer(growing, transfer);
    for (const [position, { rank, command }] of transfer.participants.entries()) {
      at(replaced, rank).set(command, at(split, position));
    }
  }
  addSignals(growing);
  const lists = program.ranks.map((rank) => listOf(growing, rank, at(replaced, rank.rank)));
  const { buffers, kernels, slots, channels, temporaryBytes } = growing;
  const programOf = (process: number): Program => {
    const kept = program.transfers.filter(({ id }) => staysWith[id] === process);
    const newId = new Map(kept.map(({ id }, i) => [id, makeId<TransferId>(i)]));
    const ranks = program.ranks.map((rank, i): RankProgram => {
      if (at(processOf, i) !== process) {
        return { ...rank, commands: [], origins: [], transferOf: [], eventCount: 0, arenaBytes: noBytes };
      }
      const { commands, origins, sources } = at(lists, i);
      const transferOf = commands.map((command, index) =>
        command.kind === "transfer" ? (newId.get(at(rank.transferOf, at(sources, index)) ?? makeId(-1)) ?? null) : null,
      );
      const arenaBytes = { ...rank.arenaBytes, temporary: temporaryBytes(i) };
      return { ...rank, commands, origins, transferOf, arenaBytes };
    });
    const place = ({ rank, command, operation }: Participant): Participant => ({
      rank,
      command: at(lists, rank).sources.indexOf(command),
      operation,
    });
    const transfers = kept.map((transfer, i) => ({
      ...transfer,
      id: makeId<TransferId>(i),
      participants: transfer.participants.map(place),
    }));
    return { ...program, buffers, kernels, slots, ranks, transfers };
  };
  return { programOf, channels, sources: lists.map(({ sources }) => sources) };
}

const noBytes = { input: 0, output: 0, temporary: 0, symmetric: 0 } as const;

interface List {
  readonly commands: readonly Command[];
  readonly origins: readonly Origin[];
  readonly sources: readonly number[];
}

function listOf(
  growing: GrowingProgram,
  { rank, commands, origins }: RankProgram,
  replaced: ReadonlyMap<number, readonly Command[]>,
): List {
  const parts = commands.map(
    (command, index) => replaced.get(index) ?? splitCommand(growing, rank, command) ?? [command],
  );
  return {
    commands: parts.flat(),
    origins: parts.flatMap((part, index) => part.map(() => at(origins, index))),
    sources: parts.flatMap((part, index) => part.map(() => index)),
  };
}

/** A channel for each slot whose two ranks are in different processes. */
function addSignals({ program, processOf, addChannel }: GrowingProgram): void {
  const counts = new Map<number, number>();
  for (const { commands } of program.ranks) {
    for (const command of commands) {
      if (command.kind === "signal") counts.set(command.slot, (counts.get(command.slot) ?? 0) + 1);
    }
  }
  for (const { id, signaller, waiter } of program.slots) {
    const [from, to] = [at(processOf, signaller), at(processOf, waiter)];
    if (from === to) continue;
    addChannel({ from, to, raise: id, count: counts.get(id) ?? 0, slots: [id] });
  }
}

// A command that accesses the memory of another process, as signals and messages around it. The command ends when its
// effects in the other process are done, as it does in one memory, so that what other ranks may rely on stays true.
//
//     copy peer -> own             ->      signal; wait                          the message brings the bytes to `own`
//     kernel(own, peer) -> peer    ->      signal; wait; kernel(own, span) -> span; signal; wait

/** What replaces the command; null if it stays. */
function splitCommand(growing: GrowingProgram, rank: number, command: Command): readonly Command[] | null {
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
  const fetched = before.map(({ peer, own }): ChannelPayload => ({ source: peer, destination: own }));
  const sent = after.map(({ peer, own }): ChannelPayload => ({ source: own, destination: peer }));
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
  payloads: readonly ChannelPayload[],
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
