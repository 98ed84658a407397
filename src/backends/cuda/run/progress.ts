/**
 * How far the streams of a run have come, for the message of a run that does not end. Before a stream waits for a peer, in the same batch of memory operations, it
 * writes the number of the command into pinned memory, and after a wait for a signal that it is past it; completed events say more in
 * an eager run.
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
  /** To be called between runs. */
  readonly reset: () => void;
  /** The last command that the stream said it came to; null if it has said nothing in this run. */
  readonly last: (stream: CommandStreamId) => { readonly command: number; readonly passed: boolean } | null;
}

const passedBit = 0x8000_0000;

/** What a stream writes when it comes to a command. */
export function progressWord(command: number): number {
  return command + 1;
}

/** What it writes when it is past what it came to. */
export function passedWord(word: number): number {
  return word + passedBit;
}

export function createProgress(streams: number, blocks: Pick<HostBlocks, "take">): Progress {
  const { address, view } = blocks.take(Math.max(4, 4 * streams));
  return {
    address: (stream) => address + 4 * stream,
    reset: () => {
      for (let i = 0; i < streams; i++) view.setUint32(4 * i, 0, true);
    },
    last: (stream) => {
      const word = view.getUint32(4 * stream, true);
      return word === 0 ? null : { command: (word % passedBit) - 1, passed: word >= passedBit };
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
