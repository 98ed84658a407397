/**
 * How far the streams of a run have come, for the message of a run that does not end. Before a stream waits for a peer, in the same batch of memory operations, it
 * writes the number of the command into pinned memory; completed events say more in an eager run.
 */
import type { CommandStreamId } from "../../../commands/command.ts";
import { commandDetails } from "../../../commands/command-text.ts";
import type { Program } from "../../../commands/program.ts";
import { originText } from "../../../commands/origin-text.ts";
import { at } from "../../../support/invariant.ts";
import type { HostBlocks } from "../memory/host-blocks.ts";

export interface Progress {
  /** The address of a stream's word. */
  readonly address: (stream: CommandStreamId) => number;
  /** To be called before a run. */
  readonly reset: () => void;
  /** The command before which the stream said that it waits; null if it has said nothing in this run. */
  readonly lastWait: (stream: CommandStreamId) => number | null;
}

export function createProgress(streams: number, blocks: HostBlocks): Progress {
  const { address, view } = blocks.take(Math.max(4, 4 * streams));
  return {
    address: (stream) => address + 4 * stream,
    reset: () => {
      for (let i = 0; i < streams; i++) view.setUint32(4 * i, 0, true);
    },
    lastWait: (stream) => {
      const word = view.getUint32(4 * stream, true);
      return word === 0 ? null : word - 1;
    },
  };
}

/** One line: what the stream is at, and the peers that it waits for. `reached` is a command that it has come to, or null. */
export function stuckStream(program: Program, rank: number, stream: CommandStreamId, reached: number | null): string {
  const own = at(program.ranks, rank);
  const { name } = at(own.streams, stream);
  if (reached === null) return `rank ${rank}, ${name}: has not come to a command that waits for a peer`;
  const command = at(own.commands, reached);
  const text = `${command.kind} ${commandDetails(own, reached)}`;
  return `rank ${rank}, ${name}: came to command ${reached}, ${text}${waitsFor(program, rank, reached)} (${originText(at(own.origins, reached))})`;
}

function waitsFor(program: Program, rank: number, index: number): string {
  const own = at(program.ranks, rank);
  const command = at(own.commands, index);
  if (command.kind === "waitSignal") return `; it waits for rank ${at(program.slots, command.slot).signaller}`;
  const id = own.transferOf[index] ?? null;
  if (id === null) return "";
  const others = at(program.transfers, id).members.flatMap((member) => (member.rank === rank ? [] : [member.rank]));
  return `; it meets ranks ${[...new Set(others)].join(", ")}`;
}
