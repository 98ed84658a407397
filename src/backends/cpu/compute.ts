/**
 * Runs the machine's kernels and copies on one WebAssembly.Memory, at the addresses of a Program's buffers. Kernels are
 * compiled when the Program is prepared, combinations of transfers at first use.
 */
import type { Launch } from "../../commands/command.ts";
import type { Program } from "../../commands/program.ts";
import { operandOf, type View } from "../../commands/view.ts";
import type { ReductionOpType } from "../../ir/ops/op.ts";
import type { KernelLibrary, PreparedKernel } from "../../kernels/kernel-library.ts";
import { createMoveBytes, type PreparedCopy, prepareCopy } from "../../kernels/strided-copy.ts";
import type { Compute, SavedSource } from "../../machine/execution.ts";
import { dtypes } from "../../numerics/dtype.ts";
import { at, invariant, getOrMake } from "../../support/invariant.ts";
import type { WasmMemory } from "../../support/webassembly.ts";
import type { AddressSpace } from "./address-space.ts";

/** The address of a view's bytes, and the address of their copy. */
export interface SavedBytes {
  readonly from: number;
  readonly copy: number;
}

/** The kernel last used for a destination, keyed by the views themselves. */
interface Combination {
  readonly op: ReductionOpType;
  readonly sources: readonly View[];
  readonly kernel: PreparedKernel;
}

export interface CpuCompute extends Compute<SavedBytes> {
  /** Drops the saved bytes; call it between runs. */
  readonly forget: () => void;
}

export function createCompute(
  program: Program,
  space: AddressSpace,
  library: KernelLibrary,
  memory: WasmMemory,
): CpuCompute {
  const kernels = program.kernels.map((kernel) => library.prepare(kernel));
  const combinations = new Map<string, PreparedKernel>();
  const move = createMoveBytes(memory);
  const addressOf = ({ buffer, offset }: { readonly buffer: View["buffer"]; readonly offset: number }): number =>
    at(space.buffers, buffer) + offset;
  const sourceAddress = ({ view, saved }: SavedSource<SavedBytes>): number =>
    addressOf(view) + (saved === null ? 0 : saved.copy - saved.from);
  let nextSaved = space.saved.address;

  // Views are the same objects in every run, so a lookup need not compare shapes.
  const copies = new WeakMap<View, WeakMap<View, PreparedCopy>>();
  const copyOf = (source: View, destination: View): PreparedCopy => {
    const known = copies.get(destination)?.get(source);
    if (known !== undefined) return known;
    const { shape, strides, dtype } = destination;
    const elementBytes = dtypes[dtype].bytes;
    const sides = { shape, elementBytes, source: source.strides, destination: strides };
    const made = prepareCopy(memory, move, sides);
    const bySource = copies.get(destination) ?? new WeakMap<View, PreparedCopy>();
    copies.set(destination, bySource.set(source, made));
    return made;
  };
  const combined = new WeakMap<View, Combination>();
  const combinationOf = (op: ReductionOpType, sources: readonly View[], destination: View): PreparedKernel => {
    const last = combined.get(destination);
    if (last?.op === op && last.sources.every((view, i) => view === sources[i])) return last.kernel;
    const kernel = kernelOf(op, sources, destination);
    combined.set(destination, { op, sources, kernel });
    return kernel;
  };
  const kernelOf = (op: ReductionOpType, sources: readonly View[], destination: View): PreparedKernel => {
    const [inputs, output] = [sources.map(operandOf), operandOf(destination)];
    const key = JSON.stringify([op, inputs, output]);
    return getOrMake(combinations, key, () => library.prepare({ kind: "combine", op, inputs, outputs: [output] }));
  };

  return {
    launch: (_, { kernel, inputs, outputs, origins }: Launch) =>
      at(kernels, kernel)(inputs.map(addressOf), outputs.map(addressOf), origins),
    copy: (source, destination) => {
      copyOf(source.view, destination)(sourceAddress(source), addressOf(destination));
    },
    combine: (op, sources, destination) => {
      const combination = combinationOf(
        op,
        sources.map(({ view }) => view),
        destination,
      );
      combination(sources.map(sourceAddress), [addressOf(destination)]);
    },
    save: (view) => {
      const from = addressOf(view);
      const copy = nextSaved;
      nextSaved += alignedSpan(view);
      invariant(nextSaved <= space.saved.address + space.saved.bytes, "saved inputs fit their reserve", {
        nextSaved,
        ...space.saved,
      });
      move(copy, from, spanBytes(view));
      return { from, copy };
    },
    forget: () => {
      nextSaved = space.saved.address;
    },
  };
}

/** Bytes from the first to the last element of a view, gaps included. */
function spanBytes({ dtype, shape, strides }: View): number {
  const last = shape.reduce((sum, extent, axis) => sum + (extent - 1) * at(strides, axis), 0);
  return (last + 1) * dtypes[dtype].bytes;
}

function alignedSpan(view: View): number {
  return Math.ceil(spanBytes(view) / savedAlignment) * savedAlignment;
}

const savedAlignment = 16;

/** An upper bound on the bytes that a run saves: every transfer keeps its inputs. */
export function savedBytes(program: Program): number {
  const inputs = program.transfers.flatMap(({ participants }) =>
    participants.flatMap(({ operation }) =>
      operation.kind === "collective"
        ? [operation.input]
        : operation.ops.map(({ type, view }) => (type === "send" ? view : null)),
    ),
  );
  return inputs.reduce((sum, view) => sum + (view === null ? 0 : alignedSpan(view)), 0);
}
