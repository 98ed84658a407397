/**
 * A change of a linked Program, as a rewrite with a bug would make it: any command left out, moved or put on another
 * stream, a wait for another event, a signal on another slot of the same two ranks, a shorter copy, a buffer laid where
 * another one is, a command on another buffer, an operand with other strides, or one alloc or free more.
 */
import type { BufferId, BufferRef } from "../../../src/commands/buffer.ts";
import type { Command } from "../../../src/commands/command.ts";
import type { Operand } from "../../../src/commands/kernel.ts";
import type { LinkedTransfer, Program, RankProgram } from "../../../src/commands/program.ts";
import type { View } from "../../../src/commands/view.ts";
import { at, makeId } from "../../../src/support/invariant.ts";
import type { Random } from "../../../src/support/random.ts";

export const changes = [
  "delete",
  "swap",
  "move",
  "stream",
  "event",
  "slot",
  "shorten",
  "place",
  "buffer",
  "strides",
  "alloc",
  "free",
] as const;
export type ProgramChange = (typeof changes)[number];

export interface ProgramMutant {
  /** For people. */
  readonly what: string;
  readonly program: Program;
}

/** Null where the command that was drawn cannot be changed so. */
export function mutateProgram(program: Program, change: ProgramChange, random: Random): ProgramMutant | null {
  const busy = program.ranks.filter(({ commands }) => commands.length > 0);
  if (busy.length === 0) return null;
  const list = at(busy, random.integer(busy.length));
  const index = random.integer(list.commands.length);
  const command = at(list.commands, index);
  const mutant = (what: string, changed: Program | null): ProgramMutant | null =>
    changed === null ? null : { what: `rank ${list.rank}: ${command.kind} at ${index} ${what}`, program: changed };
  const put = (next: Command): Program => withCommand(program, list.rank, index, next);
  switch (change) {
    case "delete":
      return command.kind === "transfer" ? null : mutant("deleted", reordered(program, list, without(list, index)));
    case "swap": {
      const other = index + 1 + random.integer(4);
      if (other >= list.commands.length) return null;
      return mutant(`swapped with ${other}`, reordered(program, list, swapped(list, index, other)));
    }
    case "move": {
      const to = random.integer(list.commands.length);
      return to === index ? null : mutant(`moved to ${to}`, reordered(program, list, moved(list, index, to)));
    }
    case "stream": {
      const { id } = at(list.streams, random.integer(list.streams.length));
      return id === command.stream ? null : mutant(`on stream ${id}`, put({ ...command, stream: id }));
    }
    case "event": {
      if (command.kind !== "waitEvent") return null;
      const event = random.integer(list.eventCount);
      return event === command.event ? null : mutant(`of event ${event}`, put({ ...command, event: makeId(event) }));
    }
    case "slot": {
      if (command.kind !== "signal" && command.kind !== "waitSignal") return null;
      const own = at(program.slots, command.slot);
      const others = program.slots.filter(
        ({ id, signaller, waiter }) => id !== own.id && signaller === own.signaller && waiter === own.waiter,
      );
      if (others.length === 0) return null;
      const { id } = at(others, random.integer(others.length));
      return mutant(`on slot ${id}`, put({ ...command, slot: id }));
    }
    case "shorten": {
      if (command.kind !== "copy") return null;
      const [source, destination] = [shorter(command.source), shorter(command.destination)];
      if (source.shape.join() !== destination.shape.join() || source.shape.includes(0)) return null;
      return mutant("shorter", put({ ...command, source, destination }));
    }
    case "place":
      return movedBuffer(program, random);
    case "buffer": {
      const own = buffersOf(command);
      if (own.length === 0) return null;
      const old = at(program.buffers, at(own, random.integer(own.length)));
      const others = program.buffers.filter(
        ({ id, rank, bytes, dtype, arena }) =>
          id !== old.id && rank === old.rank && bytes === old.bytes && dtype === old.dtype && arena === old.arena,
      );
      if (others.length === 0) return null;
      const { id, name } = at(others, random.integer(others.length));
      return mutant(`on ${name} in place of ${old.name}`, put(withBuffer(command, old.id, id)));
    }
    case "strides":
      return mutant("with other strides", restrided(program, list, index, random));
    case "alloc":
    case "free": {
      const own = program.buffers.filter(({ rank, role }) => rank === list.rank && role === "temporary");
      if (own.length === 0) return null;
      const { id, name } = at(own, random.integer(own.length));
      const { id: stream } = at(list.streams, random.integer(list.streams.length));
      const more = { kind: change, buffer: id, stream };
      return mutant(`after one more ${change} of ${name} on stream ${stream}`, inserted(program, list, index, more));
    }
  }
}

/** By new position: the old one. */
type Order = readonly number[];

function without({ commands }: RankProgram, index: number): Order {
  return commands.flatMap((_, i) => (i === index ? [] : [i]));
}

function swapped({ commands }: RankProgram, a: number, b: number): Order {
  return commands.map((_, i) => (i === a ? b : i === b ? a : i));
}

function moved({ commands }: RankProgram, from: number, to: number): Order {
  const order = [...commands.keys()].filter((index) => index !== from);
  order.splice(to, 0, from);
  return order;
}

/** The buffers of a launch or copy. A transfer's are compared between ranks, a combination's are of several ranks. */
function buffersOf(command: Command): readonly BufferId[] {
  if (command.kind === "copy") return [command.source.buffer, command.destination.buffer];
  return command.kind === "launch" ? [...command.inputs, ...command.outputs].map(({ buffer }) => buffer) : [];
}

function withBuffer(command: Command, from: BufferId, to: BufferId): Command {
  const swap = <R extends BufferRef>(ref: R): R => (ref.buffer === from ? { ...ref, buffer: to } : ref);
  if (command.kind === "copy") {
    return { ...command, source: swap(command.source), destination: swap(command.destination) };
  }
  if (command.kind !== "launch") return command;
  return { ...command, inputs: command.inputs.map(swap), outputs: command.outputs.map(swap) };
}

function reordered(program: Program, list: RankProgram, order: Order): Program {
  const pick = <T>(values: readonly T[]): readonly T[] => order.map((index) => at(values, index));
  const { commands, origins, transferOf } = list;
  const next = { ...list, commands: pick(commands), origins: pick(origins), transferOf: pick(transferOf) };
  return withList(program, list, next, (place) => order.indexOf(place));
}

/** `placeOf`: the new position of a command of the list. */
function withList(
  program: Program,
  list: RankProgram,
  next: RankProgram,
  placeOf: (command: number) => number,
): Program {
  return {
    ...program,
    ranks: program.ranks.map((rank) => (rank === list ? next : rank)),
    transfers: program.transfers.map((transfer): LinkedTransfer => ({
      ...transfer,
      participants: transfer.participants.map((member) =>
        member.rank === list.rank ? { ...member, command: placeOf(member.command) } : member,
      ),
    })),
  };
}

/** The command goes before the one at `index`, whose origin it gets. */
function inserted(program: Program, list: RankProgram, index: number, command: Command): Program {
  const { commands, origins, transferOf } = list;
  const next = {
    ...list,
    commands: commands.toSpliced(index, 0, command),
    origins: origins.toSpliced(index, 0, at(origins, index)),
    transferOf: transferOf.toSpliced(index, 0, null),
  };
  return withList(program, list, next, (place) => (place < index ? place : place + 1));
}

function withCommand(program: Program, rank: number, index: number, command: Command): Program {
  const put = (list: RankProgram): RankProgram => ({
    ...list,
    commands: list.commands.map((each, i) => (i === index ? command : each)),
  });
  return { ...program, ranks: program.ranks.map((list) => (list.rank === rank ? put(list) : list)) };
}

/** An operand repeats its elements along an axis, or steps along it as along another one. */
function restrided(program: Program, list: RankProgram, index: number, random: Random): Program | null {
  const command = at(list.commands, index);
  const change = <O extends Operand>(operand: O): O => {
    if (operand.shape.length === 0) return operand;
    const axis = random.integer(operand.shape.length);
    const stride = random.integer(2) === 0 ? 0 : at(operand.strides, random.integer(operand.shape.length));
    return { ...operand, strides: operand.strides.with(axis, stride) };
  };
  const isFirst = random.integer(2) === 0;
  switch (command.kind) {
    case "copy": {
      const { source, destination } = command;
      const changed = isFirst ? { source: change(source) } : { destination: change(destination) };
      return withCommand(program, list.rank, index, { ...command, ...changed });
    }
    case "launch": {
      const kernel = at(program.kernels, command.kernel);
      const { inputs, outputs } = kernel;
      const changed = isFirst ? { inputs: inputs.map(change) } : { outputs: outputs.map(change) };
      const next = withCommand(program, list.rank, index, { ...command, kernel: makeId(program.kernels.length) });
      return { ...next, kernels: [...program.kernels, { ...kernel, ...changed }] };
    }
    case "transfer": {
      const { operation } = command;
      if (operation.kind !== "collective") return null;
      const { input, output } = operation;
      const side = isFirst ? { input: input && change(input) } : { output: output && change(output) };
      const next = { ...operation, ...side };
      const isOwn = (member: LinkedTransfer["participants"][number]): boolean =>
        member.rank === list.rank && member.command === index;
      return {
        ...withCommand(program, list.rank, index, { ...command, operation: next }),
        transfers: program.transfers.map((transfer) =>
          transfer.kind === "collective"
            ? {
                ...transfer,
                participants: transfer.participants.map((each) => (isOwn(each) ? { ...each, operation: next } : each)),
              }
            : transfer,
        ),
      };
    }
    default:
      return null;
  }
}

/** One element less along the first axis that has two. */
function shorter(view: View): View {
  const axis = view.shape.findIndex((extent) => extent > 1);
  return { ...view, shape: view.shape.map((extent, i) => (i === axis || axis < 0 ? extent - 1 : extent)) };
}

/** A temporary laid where another one of its arena is. */
function movedBuffer(program: Program, random: Random): ProgramMutant | null {
  const temporaries = program.buffers.filter(({ role }) => role === "temporary");
  if (temporaries.length === 0) return null;
  const moved = at(temporaries, random.integer(temporaries.length));
  const room = at(program.ranks, moved.rank).arenaBytes[moved.arena];
  const others = temporaries.filter(
    ({ rank, arena, offset }) =>
      rank === moved.rank && arena === moved.arena && offset !== moved.offset && offset + moved.bytes <= room,
  );
  if (others.length === 0) return null;
  const { offset, name } = at(others, random.integer(others.length));
  return {
    what: `rank ${moved.rank}: ${moved.name} laid on ${name}`,
    program: { ...program, buffers: program.buffers.map((each) => (each === moved ? { ...each, offset } : each)) },
  };
}
