/**
 * The progress of a run's streams, for the message of a run that hangs. Before a stream waits for a peer, it writes the
 * number of the command into pinned memory, in the same batch of memory operations. After the wait it writes that it
 * has passed. A run of waits is reported once before the first and once after the last; the words of their slots show
 * which signals have arrived. In an eager run, completed events say more.
 */
import { type CommandStreamId, originText } from "../../../../commands/command.ts";
import { commandDetails } from "../../../../commands/command-text.ts";
import type { Program } from "../../../../commands/program.ts";
import { at } from "../../../../support/invariant.ts";
import type { Reported } from "../../../../trace/flight/flight-record.ts";
import type { GpuWords } from "../../../flight/flight-message.ts";
import type { HostBlocks } from "../../memory/host-blocks.ts";

export interface Progress {
  /** The address of a stream's word. */
  readonly address: (stream: CommandStreamId) => number;
  readonly words: GpuWords;
  /** Call it between runs. */
  readonly reset: () => void;
  /** Null if the stream reported nothing in this run. */
  readonly last: (stream: CommandStreamId) => Reported;
}

const passedBit = 0x8000_0000;

/** The word that a stream writes when it reaches a command. */
export function progressWord(command: number): number {
  return command + 1;
}

/** The command of a word made by `progressWord`. */
export function commandOf(word: number): number {
  return word - 1;
}

/** The word that a stream writes after that command. */
export function passedWord(word: number): number {
  return word + passedBit;
}

export function createProgress(streams: number, blocks: Pick<HostBlocks, "take">): Progress {
  const { address, view } = blocks.take(Math.max(4, 4 * streams));
  return {
    address: (stream) => address + 4 * stream,
    words: { address, streams },
    reset: () => {
      for (let i = 0; i < streams; i++) view.setUint32(4 * i, 0, true);
    },
    last: (stream) => readProgress(view, stream),
  };
}

export function readProgress(view: DataView, stream: number): Reported {
  const word = view.getUint32(4 * stream, true);
  return word === 0 ? null : { command: commandOf(word % passedBit), passed: word >= passedBit };
}

/** The command that a stream has reached. */
export interface Standing {
  /** Its position in the rank's list. */
  readonly command: number;
  /**
   * For a waitSignal: the commands of its run whose signals have not arrived. If `isKnown` is false, at least one of
   * them is missing.
   */
  readonly missing: readonly number[];
  readonly isKnown: boolean;
}

/** One line: what the stream is doing and which peers it waits for. Null if it has reported nothing. */
export function stuckStream(
  program: Program,
  rank: number,
  stream: CommandStreamId,
  standing: Standing | null,
): string {
  const own = at(program.ranks, rank);
  const { name } = at(own.streams, stream);
  if (standing === null) return `rank ${rank}, ${name}: has not reached a command that waits for a peer`;
  const { command: reached } = standing;
  const command = at(own.commands, reached);
  const text = `${command.kind} ${commandDetails(own, reached)}`;
  return `rank ${rank}, ${name}: reached command ${reached}, ${text}${waitsFor(program, rank, standing)} (${originText(at(own.origins, reached))})`;
}

function waitsFor(program: Program, rank: number, standing: Standing): string {
  const own = at(program.ranks, rank);
  if (at(own.commands, standing.command).kind === "waitSignal") return signallers(program, rank, standing);
  const id = own.transferOf[standing.command] ?? null;
  if (id === null) return "";
  const others = at(program.transfers, id).participants.flatMap((member) =>
    member.rank === rank ? [] : [member.rank],
  );
  return `; it communicates with ranks ${[...new Set(others)].join(", ")}`;
}

function signallers({ ranks, slots }: Program, rank: number, { missing, isKnown }: Standing): string {
  const late = missing.flatMap((index) => {
    const command = at(at(ranks, rank).commands, index);
    return command.kind === "waitSignal" ? [at(slots, command.slot).signaller] : [];
  });
  const each = [...new Set(late)].toSorted((a, b) => a - b);
  if (each.length === 0) return "";
  const [others, last] = [each.slice(0, -1), at(each, each.length - 1)];
  if (others.length === 0) return `; it waits for rank ${last}`;
  return `; it waits for ${isKnown ? "" : "at least one of "}ranks ${others.join(", ")} and ${last}`;
}
