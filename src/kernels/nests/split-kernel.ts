/**
 * Divides a kernel into parts that may run in any order and concurrently. Each part computes a range of the outputs
 * along one axis that is not reduced. Every element is computed as in the whole kernel, so the bits are the same.
 */
import { type Kernel, type Operand, originsOf, type UnitKernel, type UnitStep } from "../../commands/kernel.ts";
import { elementCount } from "../../commands/view.ts";
import { dtypes } from "../../numerics/dtype.ts";
import { at } from "../../support/invariant.ts";
import { attentionCut, attentionWork, isAttention } from "../../commands/attention.ts";
import { asUnit, shapesOf } from "../../commands/as-unit.ts";
import { type CutAxes, cutAxes } from "./cut-axes.ts";
import { tileRows } from "../gemm/gemm-wasm.ts";
import { elementWork } from "../../ir/ops/row.ts";
import { rowOf } from "../../ir/ops/rows.ts";

export interface KernelPart {
  /** All parts of one length share this object, so that it is prepared once. */
  readonly kernel: Kernel;
  /** Bytes to add to the addresses of the whole kernel's operands; one per input and output. */
  readonly inputOffsets: readonly number[];
  readonly outputOffsets: readonly number[];
}

/** Half-open, in elements of the cut axis. */
interface Range {
  readonly start: number;
  readonly stop: number;
}

/** A cut is accepted at once if its longest part is at most this many times an equal share. */
const goodBalance = 1.25;

const lineBytes = 64;

/**
 * At most `parts` parts with about the same work, or the kernel itself if no axis can be cut. A part may need more
 * scratch than the whole kernel: call `scratchBytes` for each. The caller decides with `kernelWork` whether dividing
 * pays.
 */
export function splitKernel(kernel: Kernel, parts: number): readonly KernelPart[] {
  const cut = chooseCut(kernel, parts);
  return cut === null ? [wholeKernel(kernel)] : partsOf(kernel, cut.axes, cut.ranges);
}

/** The kernel as its only part. */
export function wholeKernel(kernel: Kernel): KernelPart {
  return { kernel, inputOffsets: kernel.inputs.map(() => 0), outputOffsets: kernel.outputs.map(() => 0) };
}

/** A part for each range of the axes that `cutsAlong` returns. */
export function partsOf(kernel: Kernel, axes: CutAxes, ranges: readonly Range[]): readonly KernelPart[] {
  const ofLength = new Map<number, Kernel>();
  return ranges.map(({ start, stop }) => {
    const length = stop - start;
    const part = ofLength.get(length) ?? cutKernel(kernel, axes, length);
    ofLength.set(length, part);
    const { inputs, outputs } = operandAxes(kernel, axes);
    const offset = (operand: Operand, axis: number | null): number =>
      axis === null ? 0 : start * at(operand.strides, axis) * dtypes[operand.dtype].bytes;
    return {
      kernel: part,
      inputOffsets: kernel.inputs.map((operand, i) => offset(operand, at(inputs, i))),
      outputOffsets: kernel.outputs.map((operand, i) => offset(operand, at(outputs, i))),
    };
  });
}

interface Cut {
  readonly axes: CutAxes;
  readonly ranges: readonly Range[];
  /** The longest part divided by an equal share. */
  readonly balance: number;
}

/** The outermost axis of the first output with good balance, or else the axis with the best balance. */
function chooseCut(kernel: Kernel, parts: number): Cut | null {
  const output = at(kernel.outputs, 0);
  if (parts < 2 || elementCount(output.shape) === 0) return null;
  let best: Cut | null = null;
  for (const axis of axesByStride(kernel)) {
    const extent = at(output.shape, axis);
    const ranges = cutRange(extent, parts, grainOf(kernel, axis));
    const longest = Math.max(...ranges.map(({ start, stop }) => stop - start));
    const balance = (longest * parts) / extent;
    if (ranges.length < 2 || (best !== null && balance >= best.balance)) continue;
    const axes = cutsAlong(kernel, axis);
    if (axes === null) continue;
    best = { axes, ranges, balance };
    if (balance <= goodBalance) break;
  }
  return best;
}

/**
 * Parts begin at multiples of this: cache lines of the output, so that no two workers write one line, and whole tiles
 * of GEMMs.
 */
function grainOf(kernel: Kernel, axis: number): number {
  const { dtype, strides } = at(kernel.outputs, 0);
  if (strides[axis] === 1) return lineBytes / dtypes[dtype].bytes;
  const multiplies =
    kernel.kind === "unit"
      ? kernel.steps.some(({ kind }) => kind === "Matmul" || kind === "Linear")
      : kernel.kind === "matmul" || kernel.kind === "linear";
  return multiplies ? tileRows : 1;
}

function cutRange(extent: number, parts: number, grain: number): readonly Range[] {
  const blocks = Math.ceil(extent / grain);
  const count = Math.min(parts, blocks);
  const boundary = (i: number): number => Math.min(extent, Math.floor((i * blocks) / count) * grain);
  return Array.from({ length: count }, (_, i) => ({ start: boundary(i), stop: boundary(i + 1) }));
}

/** Axes of the first output, the outermost in memory first. */
export function axesByStride({ outputs }: Kernel): readonly number[] {
  const { shape, strides } = at(outputs, 0);
  return [...shape.keys()].toSorted((a, b) => at(strides, b) - at(strides, a));
}

/**
 * How parts along an axis of the first output cut the kernel; null if they would not be independent. One entry per value
 * of a unit. For other kernels one per operand, inputs first.
 */
export function cutsAlong(kernel: Kernel, axis: number): CutAxes | null {
  // The parts of a kernel are launched with its origins.
  if (kernel.kind === "opaque" || originsOf(kernel) > 0) return null;
  if (isAttention(kernel)) return attentionCut(kernel, axis);
  return kernel.kind === "combine" || kernel.kind === "fill"
    ? [...kernel.inputs, ...kernel.outputs].map(() => axis)
    : cutAxes(asUnit(kernel), axis);
}

function operandAxes(kernel: Kernel, axes: CutAxes): { readonly inputs: CutAxes; readonly outputs: CutAxes } {
  const count = kernel.inputs.length;
  const outputs = kernel.kind === "unit" ? kernel.results : kernel.outputs.map((_, i) => count + i);
  return { inputs: kernel.inputs.map((_, i) => at(axes, i)), outputs: outputs.map((value) => at(axes, value)) };
}

/** The kernel with `length` elements along the cut axes. */
function cutKernel(kernel: Kernel, axes: CutAxes, length: number): Kernel {
  const cuts = operandAxes(kernel, axes);
  const inputs = kernel.inputs.map((operand, i) => shortened(operand, at(cuts.inputs, i), length));
  const outputs = kernel.outputs.map((operand, i) => shortened(operand, at(cuts.outputs, i), length));
  return kernel.kind === "unit"
    ? { ...cutUnit(kernel, axes, length), inputs, outputs }
    : { ...kernel, inputs, outputs };
}

function cutUnit(unit: UnitKernel, axes: CutAxes, length: number): UnitKernel {
  const cutStep = (step: UnitStep): UnitStep => {
    const axis = at(axes, step.output);
    if (step.kind !== "Slice" || axis === null) return step;
    return { ...step, ranges: step.ranges.with(axis, { start: 0, stop: length }) };
  };
  return {
    ...unit,
    values: unit.values.map((value, i) => shortened(value, at(axes, i), length)),
    steps: unit.steps.map(cutStep),
  };
}

function shortened<T extends { readonly shape: readonly number[] }>(value: T, axis: number | null, length: number): T {
  return axis === null ? value : { ...value, shape: value.shape.with(axis, length) };
}

/** Estimates the kernel's work, in multiply-adds of the GEMM kernels. */
export function kernelWork(kernel: Kernel): number {
  if (kernel.kind === "combine" || kernel.kind === "fill" || kernel.kind === "opaque") {
    return elementWork * elementCount(at(kernel.outputs, 0).shape) * (kernel.inputs.length + kernel.outputs.length);
  }
  if (isAttention(kernel)) return attentionWork(kernel);
  const unit = asUnit(kernel);
  const written = unit.outputs.reduce((count, { shape }) => count + elementCount(shape), 0);
  return unit.steps.reduce((work, step) => work + rowOf(step).work(step, shapesOf(unit, step)), elementWork * written);
}
