/**
 * Where the operands of a rewritten command lie on another rank of the class. Within a buffer, each region that the
 * commands of the list touched has its image as far on as that of its command; a part of a region moves with it.
 */
import type { BufferId, BufferRef } from "../../../commands/buffer.ts";
import type { Kernel, Operand } from "../../../commands/kernel.ts";
import type { RankProgram } from "../../../commands/program.ts";
import type { Collective, PointToPointGroup } from "../../../commands/transfer.ts";
import type { View } from "../../../commands/view.ts";
import { dtypes } from "../../../numerics/dtype.ts";
import { at } from "../../../support/invariant.ts";

/** The lists of the representative and of the other rank as they were, and the kernels after the rewrite. */
export interface Lists {
  readonly before: RankProgram;
  readonly image: RankProgram;
  readonly bufferOn: (buffer: BufferId) => BufferId;
  readonly kernels: readonly Kernel[];
}

export type Form = Pick<Operand, "dtype" | "shape" | "strides">;

export interface OffsetImages {
  /** The operand on the other rank; null if regions that it is a part of move differently. */
  readonly of: <Ref extends BufferRef>(ref: Ref, form: Form) => Ref | null;
}

interface Moved {
  readonly start: number;
  readonly end: number;
  readonly by: number;
}

export function createOffsetImages(lists: Lists): OffsetImages {
  let known: ReadonlyMap<BufferId, readonly Moved[]> | null = null;
  return {
    of: (ref, form) => {
      known ??= regionsMoved(lists);
      const by = distance(known.get(ref.buffer) ?? [], ref.offset, endOf(ref.offset, form));
      return by === null ? null : { ...ref, buffer: lists.bufferOn(ref.buffer), offset: ref.offset + by };
    },
  };
}

/** How far the smallest region moves that has these bytes. */
function distance(regions: readonly Moved[], start: number, end: number): number | null {
  if (regions.every(({ by }) => by === 0)) return 0;
  const around = regions.filter((region) => region.start <= start && end <= region.end);
  const least = around.reduce((size, region) => Math.min(size, region.end - region.start), Infinity);
  const [first, ...others] = around.filter((region) => region.end - region.start === least);
  return first === undefined || others.some(({ by }) => by !== first.by) ? null : first.by;
}

/** The regions of the list, by buffer. */
function regionsMoved({ before, image, kernels }: Lists): ReadonlyMap<BufferId, readonly Moved[]> {
  const byBuffer = new Map<BufferId, Moved[]>();
  const add = (own: BufferRef, other: BufferRef, form: Form): void => {
    const regions = byBuffer.get(own.buffer) ?? [];
    byBuffer.set(own.buffer, regions);
    regions.push({ start: own.offset, end: endOf(own.offset, form), by: other.offset - own.offset });
  };
  for (const [position, command] of before.commands.entries()) {
    const other = at(image.commands, position);
    if (command.kind === "copy" && other.kind === "copy") {
      add(command.source, other.source, command.source);
      add(command.destination, other.destination, command.destination);
    } else if (command.kind === "launch" && other.kind === "launch") {
      const kernel = at(kernels, command.kernel);
      for (const [i, ref] of command.outputs.entries()) add(ref, at(other.outputs, i), at(kernel.outputs, i));
      // Several inputs of one buffer may be in another order.
      for (const [i, ref] of command.inputs.entries()) {
        const isAlone = command.inputs.every(({ buffer }, j) => i === j || buffer !== ref.buffer);
        if (isAlone) add(ref, at(other.inputs, i), at(kernel.inputs, i));
      }
    } else if (command.kind === "transfer" && other.kind === "transfer") {
      const [own, theirs] = [viewsOf(command.operation), viewsOf(other.operation)];
      for (const [i, view] of own.entries()) add(view, at(theirs, i), view);
    }
  }
  return byBuffer;
}

function viewsOf(operation: Collective | PointToPointGroup): readonly View[] {
  if (operation.kind === "group") return operation.ops.map(({ view }) => view);
  return [operation.input, operation.output].filter((view) => view !== null);
}

/** The byte after the last one of an operand that begins at `offset`. */
function endOf(offset: number, { dtype, shape, strides }: Form): number {
  const last = shape.reduce((sum, extent, axis) => sum + (extent - 1) * at(strides, axis), 0);
  return offset + (last + 1) * dtypes[dtype].bytes;
}
