/**
 * Remembers the accesses of commands by their operands. Rewrites move most commands to other streams and positions, and
 * such a command shares its operands with the one that it was made from.
 */
import { accessesOf, type Operands } from "../../commands/accesses.ts";
import type { Arena } from "../../commands/buffer.ts";
import type { Command } from "../../commands/command.ts";
import type { Kernel } from "../../commands/kernel.ts";
import type { Region } from "../../commands/region.ts";
import { at } from "../../support/invariant.ts";
import { runsOf } from "./regions-meet.ts";
import type { Touch } from "./touch.ts";

export interface TouchCache {
  readonly touchesOf: (command: Command, operands: Operands) => readonly Touch[];
  /** Equal for equal kernels. */
  readonly textOf: (kernel: Kernel) => string;
}

interface Known {
  /** What else the accesses depend on. */
  readonly with: readonly unknown[];
  readonly touches: readonly Touch[];
}

const arenas: readonly Arena[] = ["input", "output", "temporary", "symmetric"];

/** For Programs that number buffers alike: one Program, and what rewrites make of it. */
export function createTouchCache(): TouchCache {
  const known = new WeakMap<object, Known[]>();
  const texts = new WeakMap<Kernel, string>();
  return {
    touchesOf: (command, operands) => {
      const parts = partsOf(command, operands);
      if (parts === null) return none;
      const [first, ...others] = parts;
      const entries = known.get(first) ?? [];
      const found = entries.find((entry) => others.every((part, i) => part === entry.with[i]));
      if (found !== undefined) return found.touches;
      const touches = touchesIn(command, operands);
      known.set(first, [...entries, { with: others, touches }]);
      return touches;
    },
    textOf: (kernel) => {
      const text = texts.get(kernel) ?? JSON.stringify(kernel);
      texts.set(kernel, text);
      return text;
    },
  };
}

const none: readonly Touch[] = [];

/** The objects on which a command's accesses depend; null for none. */
function partsOf(command: Command, { kernels, buffers }: Operands): readonly [object, ...object[]] | null {
  switch (command.kind) {
    case "launch":
      return [command.outputs, command.inputs, at(kernels, command.kernel)];
    case "copy":
      return [command.source, command.destination];
    case "transfer":
      return [command.operation];
    case "alloc":
    case "free":
      return [at(buffers, command.buffer)];
    default:
      return null;
  }
}

function touchesIn(command: Command, operands: Operands): readonly Touch[] {
  const touch = (region: Region, writes: boolean): Touch => {
    const { rank, arena, offset } = at(operands.buffers, region.buffer);
    const place = rank * arenas.length + arenas.indexOf(arena);
    return { ...runsOf(offset + region.offset, region.dims, region.bytes), rank, place, writes };
  };
  const { reads, writes } = accessesOf(command, operands);
  return [...reads.map((region) => touch(region, false)), ...writes.map((region) => touch(region, true))];
}
