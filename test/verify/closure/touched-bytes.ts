/**
 * The addresses that each command touches, byte by byte: views are walked element by element. Nothing of regions,
 * accesses or overlaps is taken from the sources, only the fields of commands, views and kernels.
 */
import type { Arena } from "../../../src/commands/buffer.ts";
import type { Command } from "../../../src/commands/command.ts";
import type { LinkedTransfer, Program } from "../../../src/commands/program.ts";
import { dtypes } from "../../../src/numerics/dtype.ts";
import { at } from "../../../src/support/invariant.ts";

/** Addresses of the first bytes of an operand's elements, in row-major order. */
interface Elements {
  readonly addresses: readonly number[];
  readonly width: number;
  /** A read and a write of this group may touch the same element only if they are at the same position in it. */
  readonly first: number;
}

export interface Touched {
  readonly reads: ReadonlySet<number>;
  readonly writes: ReadonlySet<number>;
  /** An operand reaches outside its buffer, or its buffer outside its arena, or into a peer's own arenas. */
  readonly outside: boolean;
  /** An output overlaps an input, or another output, where reading and writing element by element would go wrong. */
  readonly overlaps: boolean;
}

/** What a kernel or collective does with an operand's elements. */
interface Strided {
  readonly buffer: number;
  readonly offset: number;
  readonly dtype: keyof typeof dtypes;
  readonly shape: readonly number[];
  readonly strides: readonly number[];
}

const arenas: readonly Arena[] = ["input", "output", "temporary", "symmetric"];

/** Where each buffer starts and ends, in one address space of all ranks. */
export function placesOf({ ranks, buffers }: Program): readonly (readonly [start: number, end: number])[] {
  const bases = new Map<string, number>();
  let next = 0;
  for (const { rank, arenaBytes } of ranks) {
    for (const arena of arenas) {
      bases.set(`${rank} ${arena}`, next);
      next += arenaBytes[arena];
    }
  }
  return buffers.map(({ rank, arena, offset, bytes }) => {
    const start = (bases.get(`${rank} ${arena}`) ?? 0) + offset;
    return [start, start + bytes];
  });
}

/** Kernels of which every element of the output depends on the elements of the inputs at the same position alone. */
const elementwise: ReadonlySet<string> = new Set(["unary", "cast", "binary", "combine"]);

export function touchedBytes(
  { kernels, buffers, ranks }: Program,
  places: readonly (readonly [start: number, end: number])[],
  command: Command,
  transfer: LinkedTransfer | null,
  rank: number,
): Touched {
  let outside = false;
  const elements = (view: Strided, first = 0): Elements => {
    const { bytes: width } = dtypes[view.dtype];
    const [start, end] = at(places, view.buffer);
    let addresses = [start + view.offset];
    for (const [axis, extent] of view.shape.entries()) {
      const step = at(view.strides, axis) * width;
      addresses = addresses.flatMap((address) => Array.from({ length: extent }, (_, i) => address + i * step));
    }
    const { rank: owner, arena, offset, bytes } = at(buffers, view.buffer);
    outside ||=
      addresses.some((address) => address < start || address + width > end) ||
      offset < 0 ||
      offset + bytes > at(ranks, owner).arenaBytes[arena] ||
      (owner !== rank && arena !== "symmetric");
    return { addresses, width, first };
  };
  const whole = (buffer: number): Elements => {
    const [start, end] = at(places, buffer);
    return { addresses: Array.from({ length: end - start }, (_, i) => start + i), width: 1, first: 0 };
  };
  const touch = (reads: readonly Elements[], writes: readonly Elements[], aligned: boolean): Touched => ({
    reads: bytesOf(reads),
    writes: bytesOf(writes),
    outside,
    overlaps: overlaps(reads, writes, aligned),
  });
  switch (command.kind) {
    case "launch": {
      const kernel = at(kernels, command.kernel);
      const reads = command.inputs.map((ref, i) => elements({ ...at(kernel.inputs, i), ...ref }));
      const writes = command.outputs.map((ref, i) => elements({ ...at(kernel.outputs, i), ...ref }));
      const touched = touch(reads, writes, elementwise.has(kernel.kind));
      const accumulates = (kernel.kind === "matmul" || kernel.kind === "linear") && kernel.accumulate === true;
      return accumulates ? { ...touched, reads: bytesOf([...reads, ...writes]) } : touched;
    }
    case "copy":
      return touch([elements(command.source)], [elements(command.destination)], false);
    case "transfer": {
      const { operation } = command;
      if (operation.kind === "group") {
        const of = (wanted: string): readonly Elements[] =>
          operation.ops.flatMap(({ type, view }) => (type === wanted ? [elements(view)] : []));
        return touch(of("send"), of("recv"), false);
      }
      const { type, input, output } = operation;
      // Of the two sides the smaller one is the rank's own part of the other.
      const own = (side: "input" | "output"): number =>
        (transfer?.participants ?? [])
          .slice(
            0,
            transfer?.participants.findIndex((each) => each.rank === rank),
          )
          .filter((each) => each.operation.kind === "collective" && each.operation[side] !== null).length;
      const count = (view: Strided | null): number => (view?.shape ?? []).reduce((product, n) => product * n, 1);
      const gathers = type === "Allgather" || type === "Gather";
      const scatters = type === "ReduceScatter" || type === "Scatter";
      const reads = input === null ? [] : [elements(input, gathers ? own("output") * count(input) : 0)];
      const writes = output === null ? [] : [elements(output, scatters ? own("input") * count(output) : 0)];
      return touch(reads, writes, type !== "AllToAll");
    }
    case "alloc":
    case "free":
      return touch([], [whole(command.buffer)], false);
    case "recordEvent":
    case "waitEvent":
    case "signal":
    case "waitSignal":
      return touch([], [], false);
  }
}

function bytesOf(operands: readonly Elements[]): ReadonlySet<number> {
  const bytes = new Set<number>();
  for (const { addresses, width } of operands) {
    for (const address of addresses) for (let i = 0; i < width; i++) bytes.add(address + i);
  }
  return bytes;
}

/** `aligned`: an element may be read and written at one position. */
function overlaps(reads: readonly Elements[], writes: readonly Elements[], aligned: boolean): boolean {
  /** Positions by byte; an element of another width that begins elsewhere is at no position of this one. */
  const written = new Map<number, string>();
  for (const { addresses, width, first } of writes) {
    const own = new Map<number, string>();
    for (const [i, address] of addresses.entries()) {
      if (own.has(address)) return true;
      for (let byte = 0; byte < width; byte++) own.set(address + byte, `${first + i} ${byte} of ${width}`);
    }
    for (const [address, position] of own) {
      if (written.has(address)) return true;
      written.set(address, position);
    }
  }
  return reads.some(({ addresses, width, first }) =>
    addresses.some((address, i) => {
      for (let byte = 0; byte < width; byte++) {
        const position = written.get(address + byte);
        if (position !== undefined && !(aligned && position === `${first + i} ${byte} of ${width}`)) return true;
      }
      return false;
    }),
  );
}
