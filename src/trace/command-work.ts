/** How much a command does: the bytes it reads, writes or moves and the floating-point operations it counts for. */
import { accesses } from "../commands/accesses.ts";
import type { Command } from "../commands/command.ts";
import {
  accumulates,
  type Kernel,
  type LinearKernel,
  type MatmulKernel,
  type Operand,
  type UnitKernel,
  type UnitStep,
} from "../commands/kernel.ts";
import type { Program } from "../commands/program.ts";
import type { Region } from "../commands/region.ts";
import type { View } from "../commands/transfer.ts";
import { elementCount } from "../commands/view.ts";
import { dtypes } from "../numerics/dtype.ts";
import { dispatch, type RuleTable } from "../support/dispatch.ts";
import { at } from "../support/invariant.ts";

/**
 * Bytes of the command at `index` of `rank`'s list. Of a launch those of its operands, read and written; of a copy those that are copied;
 * of a collective the greater of the rank's two sides, as nccl-tests counts; of a group those sent and received. Of commands that only order
 * streams, and of marks, null.
 */
export function bytesOf(program: Program, rank: number, index: number): number | null {
  const command = at(at(program.ranks, rank).commands, index);
  switch (command.kind) {
    case "launch": {
      const { reads, writes } = accesses(program, rank, index);
      return [...reads, ...writes].reduce((sum, region) => sum + regionBytes(region), 0);
    }
    case "copy":
      return viewBytes(command.source);
    case "transfer":
      return command.operation.kind === "collective"
        ? Math.max(viewBytes(command.operation.input), viewBytes(command.operation.output))
        : command.operation.ops.reduce((sum, { view }) => sum + viewBytes(view), 0);
    case "recordEvent":
    case "waitEvent":
    case "signal":
    case "waitSignal":
    case "alloc":
    case "free":
      return null;
  }
}

/** The other rank of a copy from or to a peer's buffer, and the direction; null for other commands. */
export function peerOf(
  { buffers }: Program,
  rank: number,
  command: Command,
): { readonly direction: "from" | "to"; readonly rank: number } | null {
  if (command.kind !== "copy") return null;
  const source = at(buffers, command.source.buffer).rank;
  if (source !== rank) return { direction: "from", rank: source };
  const destination = at(buffers, command.destination.buffer).rank;
  return destination === rank ? null : { direction: "to", rank: destination };
}

/**
 * Floating-point operations (for integers: operations) of a kernel, by the usual counts: 2 M N K of a product, one per element of an
 * elementwise op whatever it costs, one per element that a reduction or combination adds to another. Moving and converting are 0.
 */
export function flopsOf(kernel: Kernel): number {
  return dispatch<Kernel, number, []>(kernelFlops, kernel);
}

const kernelFlops: RuleTable<Kernel, number> = {
  unary: ({ outputs }) => sumOf(outputs),
  cast: () => 0,
  binary: ({ outputs }) => sumOf(outputs),
  reduction: ({ inputs, outputs }) => sumOf(inputs) - sumOf(outputs),
  matmul: gemmKernelFlops,
  linear: gemmKernelFlops,
  // However many outputs the result goes to.
  combine: ({ inputs }) => sumOf(inputs.slice(1)),
  fill: () => 0,
  unit: (unit) =>
    unit.steps.reduce((sum, step) => sum + dispatch<UnitStep, number, [UnitKernel]>(stepFlops, step, unit), 0),
};

const stepFlops: RuleTable<UnitStep, number, [UnitKernel]> = {
  Set: () => 0,
  Unary: ({ output }, unit) => valueCount(unit, output),
  Cast: () => 0,
  Binary: ({ output }, unit) => valueCount(unit, output),
  Reduction: ({ inputs, output }, unit) => valueCount(unit, at(inputs, 0)) - valueCount(unit, output),
  Broadcast: () => 0,
  Squeeze: () => 0,
  Permute: () => 0,
  Reshape: () => 0,
  Slice: () => 0,
  Select: () => 0,
  Matmul: ({ inputs, output }, { values }) => gemmFlops(at(values, at(inputs, 0)).shape, at(values, output).shape, 0),
  Linear: ({ inputs, output }, { values }) =>
    gemmFlops(at(values, at(inputs, 0)).shape, at(values, output).shape, inputs.length - 2),
};

/** A bias, and what the output held, are added once. */
function gemmKernelFlops(kernel: MatmulKernel | LinearKernel): number {
  const { inputs, outputs } = kernel;
  const added = inputs.length - 2 + (accumulates(kernel) ? 1 : 0);
  return gemmFlops(at(inputs, 0).shape, at(outputs, 0).shape, added);
}

/** `left` is [..., K] (both [K] and [..., M, K] are), `result` what it is multiplied to; `added` beside the products. */
function gemmFlops(left: readonly number[], result: readonly number[], added: number): number {
  const contracted = left.at(-1) ?? 1;
  return elementCount(result) * (2 * contracted + added);
}

function sumOf(operands: readonly Operand[]): number {
  return operands.reduce((sum, { shape }) => sum + elementCount(shape), 0);
}

function valueCount({ values }: UnitKernel, value: number): number {
  return elementCount(at(values, value).shape);
}

function viewBytes(view: View | null): number {
  return view === null ? 0 : elementCount(view.shape) * dtypes[view.dtype].bytes;
}

export function regionBytes({ dims, bytes }: Region): number {
  return dims.reduce((product, { count }) => product * count, bytes);
}
