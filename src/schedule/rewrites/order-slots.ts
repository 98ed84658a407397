/**
 * Puts the chunks that a loop keeps in slots of a temporary into the order of the other operand of their GEMMs, so that
 * merge-gemms finds all of them side by side. Loops number slots by iteration, and shards by device:
 *
 *     slot 0 -> result 1; slot 1 -> result 0        ->        slot 1 -> result 1; slot 0 -> result 0
 *
 * Every access keeps its command and its order, and moves with its slot, peers' accesses too.
 */
import { accessesOf } from "../../commands/accesses.ts";
import type { BufferId, BufferRef } from "../../commands/buffer.ts";
import type { Command, Launch } from "../../commands/command.ts";
import type { Program, RankProgram } from "../../commands/program.ts";
import type { Region } from "../../commands/region.ts";
import { at } from "../../support/invariant.ts";
import { isGemmLaunch } from "../draft/gemm-axes.ts";

/** For loops of at most `most` chunks. Returns the same object if all slots are in order, or cannot be. */
export function orderSlots(program: Program, most: number): Program {
  const all = program.ranks.flatMap(({ commands }) => slotsOfRank(program, commands, most));
  // The first order counts where two matmuls want different ones.
  const slots = new Map(all.toReversed().map((each) => [each.buffer, each]));
  if (slots.size === 0) return program;
  const fixed = new Set(
    program.ranks.flatMap(({ commands }) => commands.flatMap((each) => fixedBy(program, each, slots))),
  );
  for (const buffer of fixed) slots.delete(buffer);
  if (slots.size === 0) return program;
  const ranks = program.ranks.map((rank): RankProgram => ({
    ...rank,
    commands: rank.commands.map((command) => moved(program, command, slots)),
  }));
  return { ...program, ranks };
}

/** Slots of equal size: where each one moves. */
interface Slots {
  readonly buffer: BufferId;
  /** From the start of the buffer. */
  readonly base: number;
  readonly bytes: number;
  /** By slot: the bytes that its contents move by. */
  readonly shifts: readonly number[];
}

function slotsOfRank(program: Program, commands: readonly Command[], most: number): readonly Slots[] {
  const families = new Map<string, Launch[]>();
  for (const command of commands) {
    if (command.kind !== "launch" || !isGemmLaunch(command, program)) continue;
    const key = `${command.kernel} ${at(command.outputs, 0).buffer}`;
    families.set(key, [...(families.get(key) ?? []), command]);
  }
  return [...families.values()].flatMap((family) => {
    if (family.length < 2 || family.length > most) return [];
    const [first, ...others] = family.map(({ inputs, outputs }) => [...inputs, ...outputs]);
    const operands = (first ?? []).map((ref, place) => [ref, ...others.map((refs) => at(refs, place))]);
    const chunks = operands.filter((refs) => new Set(refs.map(({ offset }) => offset)).size === family.length);
    // Inputs and outputs of the program have their order.
    const given = chunks.find((refs) => at(program.buffers, at(refs, 0).buffer).role !== "temporary");
    const order = (given ?? chunks.at(-1) ?? []).map(({ offset }) => offset);
    const positions = order.toSorted((a, b) => a - b).map((offset) => order.indexOf(offset));
    return chunks.flatMap((refs) =>
      slotsOf(
        program,
        positions.map((position) => at(refs, position)),
      ),
    );
  });
}

/** `refs`: an operand of each GEMM, in the order that the slots are to have. */
function slotsOf({ buffers }: Program, refs: readonly BufferRef[]): readonly Slots[] {
  const { buffer } = at(refs, 0);
  if (refs.some((ref) => ref.buffer !== buffer) || at(buffers, buffer).role !== "temporary") return [];
  const places = refs.map(({ offset }) => offset).toSorted((a, b) => a - b);
  const base = at(places, 0);
  const bytes = at(places, 1) - base;
  if (places.some((place, i) => place !== base + i * bytes)) return [];
  const shifts = places.map((place, i) => (refs.findIndex(({ offset }) => offset === place) - i) * bytes);
  return shifts.every((shift) => shift === 0) ? [] : [{ buffer, base, bytes, shifts }];
}

type AllSlots = ReadonlyMap<BufferId, Slots>;

/** The buffers whose slots have to stay, because the command accesses several of them, or communicates by a library. */
function fixedBy(program: Program, command: Command, slots: AllSlots): readonly BufferId[] {
  if (command.kind === "alloc" || command.kind === "free") return [];
  const { reads, writes } = accessesOf(command, program);
  return [...reads, ...writes].flatMap((region) => {
    const own = slots.get(region.buffer);
    if (own === undefined || region.bytes === 0) return [];
    return command.kind === "transfer" || shiftOf(region, own) === null ? [region.buffer] : [];
  });
}

/** The common shift of the slots of these bytes; null if there is none. */
function shiftOf({ offset, dims, bytes: run }: Region, { base, bytes, shifts }: Slots): number | null {
  const end = dims.reduce((sum, { count, stride }) => sum + (count - 1) * stride, offset + run);
  const first = Math.floor((offset - base) / bytes);
  const last = Math.ceil((end - base) / bytes);
  const shift = shifts[first];
  if (shift === undefined || last > shifts.length) return null;
  return shifts.slice(first, last).every((each) => each === shift) ? shift : null;
}

function moved(program: Program, command: Command, slots: AllSlots): Command {
  const isMoved = ({ buffer }: BufferRef): boolean => slots.has(buffer);
  if (command.kind === "copy") {
    const { source, destination } = command;
    if (!isMoved(source) && !isMoved(destination)) return command;
    const { reads, writes } = accessesOf(command, program);
    return {
      ...command,
      source: shifted(source, reads[0], slots),
      destination: shifted(destination, writes[0], slots),
    };
  }
  if (command.kind !== "launch" || !(command.inputs.some(isMoved) || command.outputs.some(isMoved))) return command;
  const { reads, writes } = accessesOf(command, program);
  return {
    ...command,
    inputs: command.inputs.map((ref, i) => shifted(ref, reads[i], slots)),
    outputs: command.outputs.map((ref, i) => shifted(ref, writes[i], slots)),
  };
}

function shifted<Ref extends BufferRef>(ref: Ref, region: Region | undefined, slots: AllSlots): Ref {
  const own = slots.get(ref.buffer);
  const shift = own === undefined || region === undefined || region.bytes === 0 ? null : shiftOf(region, own);
  return shift === null || shift === 0 ? ref : { ...ref, offset: ref.offset + shift };
}
