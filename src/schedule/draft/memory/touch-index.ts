/**
 * Finds accesses to bytes of one arena without looking at all of them. Accesses are in bins: aligned ranges of 2^level
 * bytes, each in the smallest that holds all of it. A look-up visits the bins that overlap its bytes.
 */
import type { Arena } from "../../../commands/buffer.ts";
import type { Command } from "../../../commands/command.ts";
import type { Kernel } from "../../../commands/kernel.ts";
import { accessesOf, type OperandTables, type Region } from "../../../commands/region.ts";
import { at } from "../../../support/invariant.ts";
import { type ByteRuns, byteRunsOf, type Touch } from "./touch.ts";

type Bytes = Pick<ByteRuns, "start" | "end">;

/** Bins by the aligned range that they stand for; `Bin` is what one holds. */
export interface Bins<Bin> {
  /** The bin of these bytes, made if there is none; null for no bytes, which meet nothing. */
  readonly binOf: (touch: Bytes) => Bin | null;
  /** Calls `visit` with the bins that overlap, until it returns true; whether it did. */
  readonly some: (touch: Bytes, visit: (bin: Bin) => boolean) => boolean;
}

export function createBins<Bin>(create: () => Bin): Bins<Bin> {
  const levels = new Map<number, Map<number, Bin>>();
  return {
    binOf: ({ start, end }) => {
      if (end <= start) return null;
      let width = 1;
      while (Math.floor(start / width) !== Math.floor((end - 1) / width)) width *= 2;
      const bins = levels.get(width) ?? new Map<number, Bin>();
      levels.set(width, bins);
      const number = Math.floor(start / width);
      const bin = bins.get(number) ?? create();
      bins.set(number, bin);
      return bin;
    },
    some: ({ start, end }, visit) => {
      for (const [width, bins] of levels) {
        const [first, last] = [Math.floor(start / width), Math.floor((end - 1) / width)];
        if (last - first < bins.size) {
          for (let number = first; number <= last; number++) {
            const bin = bins.get(number);
            if (bin !== undefined && visit(bin)) return true;
          }
        } else {
          for (const [number, bin] of bins) if (number >= first && number <= last && visit(bin)) return true;
        }
      }
      return false;
    },
  };
}

export interface TouchIndex<T> {
  readonly add: (touch: Bytes, value: T) => void;
  /** Calls `visit` with the values whose bytes may overlap, until it returns true; whether it did. */
  readonly some: (touch: Bytes, visit: (value: T) => boolean) => boolean;
  /** Removes the values whose bytes lie within. */
  readonly removeWithin: (touch: Bytes) => void;
}

interface Entry<T> extends Bytes {
  readonly value: T;
}

export function createTouchIndex<T>(): TouchIndex<T> {
  const bins = createBins<{ entries: Entry<T>[] }>(() => ({ entries: [] }));
  return {
    add: ({ start, end }, value) => {
      bins.binOf({ start, end })?.entries.push({ start, end, value });
    },
    some: (touch, visit) =>
      bins.some(touch, ({ entries }) =>
        entries.some((entry) => entry.start < touch.end && touch.start < entry.end && visit(entry.value)),
      ),
    removeWithin: (touch) => {
      bins.some(touch, (bin) => {
        const isLeft = ({ start, end }: Entry<T>): boolean => start < touch.start || touch.end < end;
        if (!bin.entries.every(isLeft)) bin.entries = bin.entries.filter(isLeft);
        return false;
      });
    },
  };
}

// Remembers the accesses of commands by their operands. Rewrites move most commands to other streams and positions, and
// such a command shares its operands with the one that it was made from.

export interface TouchCache {
  /** Equal accesses are the same object. */
  readonly touchesOf: (command: Command, operands: OperandTables) => readonly Touch[];
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
  const touchIn = ({ buffers }: OperandTables, region: Region, writes: boolean): Touch => {
    const { rank, arena, offset } = at(buffers, region.buffer);
    const place = rank * arenas.length + arenas.indexOf(arena);
    const touch = { ...byteRunsOf(offset + region.offset, region.dims, region.bytes), rank, place, writes };
    const dims = region.dims.map(({ count, stride }) => `${count} ${stride}`);
    const key = [place, writes, touch.start, touch.bytes, ...dims].join(" ");
    const known = distinct.get(key) ?? touch;
    distinct.set(key, known);
    return known;
  };
  const touchesIn = (command: Command, operands: OperandTables): readonly Touch[] => {
    const { reads, writes } = accessesOf(command, operands);
    return [
      ...reads.map((region) => touchIn(operands, region, false)),
      ...writes.map((region) => touchIn(operands, region, true)),
    ];
  };
  const withOperands = (
    command: Command,
    operands: OperandTables,
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
