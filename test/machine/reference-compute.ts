/**
 * A Compute for tests: one block of floats per arena, as link lays it out, and element by element arithmetic. `alloc`
 * is not its business: temporaries keep what was in them, NaN at first, so that a read of memory nothing wrote shows.
 */
import type { Arena, BufferId } from "../../src/commands/buffer.ts";
import type { Launch } from "../../src/commands/command.ts";
import type { Program } from "../../src/commands/program.ts";
import type { View } from "../../src/commands/view.ts";
import type { BinaryOpType, ReductionOpType } from "../../src/ir/ops/op.ts";
import type { Compute, SavedSource } from "../../src/machine/execution.ts";
import { binaryOf } from "../../src/oracle/definitions.ts";
import { at, invariant } from "../../src/support/invariant.ts";

/** A copy of a whole buffer. */
type SavedFloats = Float32Array;

export interface ReferenceCompute extends Compute<SavedFloats> {
  write(buffer: BufferId, values: readonly number[]): void;
  read(buffer: BufferId): readonly number[];
  /** Every byte that the ranks hold, for comparing runs. */
  dump(): readonly (readonly number[])[];
}

const floatBytes = 4;

export function createReferenceCompute(program: Program): ReferenceCompute {
  const arenas = program.ranks.map(({ arenaBytes }) => {
    const block = (arena: Arena): Float32Array => new Float32Array(arenaBytes[arena] / floatBytes).fill(NaN);
    return {
      input: block("input"),
      output: block("output"),
      temporary: block("temporary"),
      symmetric: block("symmetric"),
    };
  });
  const memoryOf = (id: BufferId): Float32Array => {
    const { rank, arena, offset, bytes } = at(program.buffers, id);
    return at(arenas, rank)[arena].subarray(offset / floatBytes, (offset + bytes) / floatBytes);
  };
  const valuesOf = ({ view, saved }: SavedSource<SavedFloats>): readonly number[] => {
    const memory = saved ?? memoryOf(view.buffer);
    return indicesOf(view).map((index) => at(memory, index));
  };
  const write = (view: View, values: readonly number[]): void => {
    const memory = memoryOf(view.buffer);
    for (const [i, index] of indicesOf(view).entries()) memory[index] = at(values, i);
  };
  return {
    launch: (_rank, command) => {
      const { a, b, out, op } = binaryOperands(program, command);
      const left = valuesOf({ view: a, saved: null });
      const right = valuesOf({ view: b, saved: null });
      write(
        out,
        left.map((x, i) => Number(binaryOf(op, "float", x, at(right, i)))),
      );
    },
    copy: (source, destination) => {
      invariant(same(source.view.shape, destination.shape), "a copy has one shape", { source, destination });
      write(destination, valuesOf(source));
    },
    combine: (op, sources, destination) => {
      invariant(sources.length > 1 && sources.every(({ view }) => same(view.shape, destination.shape)), "one shape");
      const parts = sources.map(valuesOf);
      write(
        destination,
        at(parts, 0).map((_, i) =>
          parts.map((part) => at(part, i)).reduce((x, y) => Math.fround(reductions[op](x, y))),
        ),
      );
    },
    save: ({ buffer }) => memoryOf(buffer).slice(),
    write: (buffer, values) => memoryOf(buffer).set(values),
    read: (buffer) => [...memoryOf(buffer)],
    dump: () => program.buffers.map(({ id }) => [...memoryOf(id)]),
  };
}

const reductions: { readonly [K in ReductionOpType]: (x: number, y: number) => number } = {
  sum: (x, y) => x + y,
  prod: (x, y) => x * y,
  amax: Math.max,
  amin: Math.min,
};

function binaryOperands(
  program: Program,
  { kernel: id, inputs, outputs }: Launch,
): { readonly a: View; readonly b: View; readonly out: View; readonly op: BinaryOpType } {
  const kernel = at(program.kernels, id);
  invariant(kernel.kind === "binary", "the tests launch binary kernels only", kernel.kind);
  const a: View = { ...at(inputs, 0), ...at(kernel.inputs, 0) };
  const b: View = { ...at(inputs, 1), ...at(kernel.inputs, 1) };
  const out: View = { ...at(outputs, 0), ...at(kernel.outputs, 0) };
  return { a, b, out, op: kernel.op };
}

/** The positions of a view's elements in its buffer, in row-major order. */
function indicesOf({ offset, shape, strides }: View): readonly number[] {
  return shape.reduce<readonly number[]>(
    (bases, extent, axis) =>
      bases.flatMap((base) => Array.from({ length: extent }, (_, i) => base + i * at(strides, axis))),
    [offset / floatBytes],
  );
}

function same(a: readonly number[], b: readonly number[]): boolean {
  return a.length === b.length && a.every((value, i) => value === b[i]);
}
