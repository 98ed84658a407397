/**
 * Remembers the accesses of commands by their operands. Rewrites move most commands to other streams and positions, and
 * such a command shares its operands with the one that it was made from.
 */
import { accessesOf, type Operands } from "../../../commands/accesses.ts";
import type { Arena } from "../../../commands/buffer.ts";
import type { Command } from "../../../commands/command.ts";
import type { Kernel } from "../../../commands/kernel.ts";
import type { Region } from "../../../commands/region.ts";
import { at } from "../../../support/invariant.ts";
import { runsOf } from "./regions-meet.ts";
import type { Touch } from "./touch.ts";

export interface TouchCache {
  /** Equal accesses are the same object. */
  readonly touchesOf: (command: Command, operands: Operands) => readonly Touch[];
  /** Equal for equal kernels. */
  readonly textOf: (kernel: Kernel) => string;
}

/** The accesses of a command by what they depend on, besides the first of its operands. */
interface Known {
  readonly second: object | null;
  readonly third: object | null;
  readonly touches: readonly Touch[];
}

const arenas: readonly Arena[] = ["input", "output", "temporary", "symmetric"];

/** For Programs that number buffers alike: one Program, and what rewrites make of it. */
export function createTouchCache(): TouchCache {
  const ofOperands = new Map<object, Known[]>();
  const texts = new Map<Kernel, string>();
  const distinct = new Map<string, Touch>();
  const touchIn = ({ buffers }: Operands, region: Region, writes: boolean): Touch => {
    const { rank, arena, offset } = at(buffers, region.buffer);
    const place = rank * arenas.length + arenas.indexOf(arena);
    const touch = { ...runsOf(offset + region.offset, region.dims, region.bytes), rank, place, writes };
    const dims = region.dims.map(({ count, stride }) => `${count} ${stride}`);
    const key = [place, writes, touch.start, touch.bytes, ...dims].join(" ");
    const known = distinct.get(key) ?? touch;
    distinct.set(key, known);
    return known;
  };
  const touchesIn = (command: Command, operands: Operands): readonly Touch[] => {
    const { reads, writes } = accessesOf(command, operands);
    return [
      ...reads.map((region) => touchIn(operands, region, false)),
      ...writes.map((region) => touchIn(operands, region, true)),
    ];
  };
  const withOperands = (
    command: Command,
    operands: Operands,
    first: object,
    second: object | null = null,
    third: object | null = null,
  ): readonly Touch[] => {
    const known = ofOperands.get(first);
    const found = known?.find((entry) => entry.second === second && entry.third === third);
    if (found !== undefined) return found.touches;
    const touches = touchesIn(command, operands);
    const entry: Known = { second, third, touches };
    if (known === undefined) ofOperands.set(first, [entry]);
    else known.push(entry);
    return touches;
  };
  return {
    touchesOf: (command, operands) => {
      switch (command.kind) {
        case "launch":
          return withOperands(command, operands, command.outputs, command.inputs, at(operands.kernels, command.kernel));
        case "copy":
          return withOperands(command, operands, command.source, command.destination);
        case "transfer":
          return withOperands(command, operands, command.operation);
        case "alloc":
        case "free":
          return withOperands(command, operands, at(operands.buffers, command.buffer));
        default:
          return none;
      }
    },
    textOf: (kernel) => {
      const text = texts.get(kernel) ?? JSON.stringify(kernel);
      texts.set(kernel, text);
      return text;
    },
  };
}

const none: readonly Touch[] = [];
