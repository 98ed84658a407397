/**
 * Moves copies of the one-sided protocol onto one copy stream per device. A GPU copies between devices at the link's
 * full rate if its copies wait in one queue, and at about half of it if they are spread over the streams that also
 * compute. The edges to the copy stream and back are ordinary events, which the verifier checks.
 *
 *     worker 1: waitSignal, copy, signal      ->   worker 1:    waitSignal, recordEvent a, waitEvent b, signal
 *                                                  copy stream: waitEvent a, copy, recordEvent b
 */
import type { Command, CommandStreamId, EventId, StreamInfo } from "../../commands/command.ts";
import { createListWriter, movedTransfer } from "../../commands/list-writer.ts";
import type { Program, RankProgram } from "../../commands/program.ts";
import { makeId, at } from "../../support/invariant.ts";
import { programRewrite, type Rewrite } from "../rewrite.ts";

export type CopyStream = "dedicated" | "inline";

/** Returns the same Program for `inline`, and if every copy from or to a peer already runs on a copy stream. */
export const copyStream: Rewrite<CopyStream> = programRewrite((program, placement) =>
  placement === "dedicated" ? moveCopiesToStream(program) : program,
);

function moveCopiesToStream(program: Program): Program {
  const moved = program.ranks.map((rank) => moveCopies(program, rank));
  if (moved.every(({ rank }, i) => rank === at(program.ranks, i))) return program;
  const transfers = program.transfers.map((transfer) =>
    movedTransfer(transfer, (rank, position) => at(at(moved, rank).positions, position)),
  );
  return { ...program, ranks: moved.map(({ rank }) => rank), transfers };
}

interface Moved {
  readonly rank: RankProgram;
  /** The new position of every command. */
  readonly positions: readonly number[];
}

function moveCopies(program: Program, rank: RankProgram): Moved {
  const crossesLink = rank.commands.map(
    (command) =>
      command.kind === "copy" &&
      at(rank.streams, command.stream).role !== "copy" &&
      [command.source, command.destination].some(({ buffer }) => at(program.buffers, buffer).rank !== rank.rank),
  );
  if (!crossesLink.includes(true)) return { rank, positions: rank.commands.map((_, i) => i) };
  const info: StreamInfo = rank.streams.find(({ role }) => role === "copy") ?? {
    id: makeId<CommandStreamId>(rank.streams.length),
    role: "copy",
    name: "copy stream",
  };
  const copies = info.id;
  const { list, add: write } = createListWriter();
  const positions: number[] = [];
  let events = rank.eventCount;
  const add = (command: Command, from: number): void =>
    write(command, at(rank.origins, from), at(rank.transferOf, from));
  const edge = (earlier: CommandStreamId, later: CommandStreamId, from: number): void => {
    const event = makeId<EventId>(events++);
    add({ kind: "recordEvent", stream: earlier, event }, from);
    add({ kind: "waitEvent", stream: later, event }, from);
  };
  for (let i = 0; i < rank.commands.length; i++) {
    const command = at(rank.commands, i);
    if (crossesLink[i] !== true) {
      positions.push(list.commands.length);
      add(command, i);
      continue;
    }
    // Consecutive copies of one stream share a pair of edges.
    const { stream } = command;
    edge(stream, copies, i);
    for (; crossesLink[i] === true && at(rank.commands, i).stream === stream; i++) {
      positions.push(list.commands.length);
      add({ ...at(rank.commands, i), stream: copies }, i);
    }
    i--;
    edge(copies, stream, i);
  }
  const streams = rank.streams.includes(info) ? rank.streams : [...rank.streams, info];
  return { rank: { ...rank, streams, eventCount: events, ...list }, positions };
}
