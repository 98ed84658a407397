/**
 * Divides a kernel into parts that may run in any order and concurrently. Each part computes a range of the outputs
 * along one axis that is not reduced. Every element is computed as in the whole kernel, so the bits are the same.
 */
import { asUnit, stepShapes } from "../../commands/as-unit.ts";
import { attentionCut, attentionWork, isAttention } from "../../commands/attention.ts";
import { type Kernel, type Operand, originsOf, type UnitKernel, type UnitStep } from "../../commands/kernel.ts";
import { hasGroupMatrices } from "../../ir/ops/kinds/grouped.ts";
import { isKept } from "../../ir/ops/kinds/views/pad.ts";
import { elementWork, type Shapes } from "../../ir/ops/row.ts";
import { rowOf } from "../../ir/ops/rows.ts";
import { dtypes } from "../../numerics/dtype.ts";
import { at, invariant, unreachable } from "../../support/invariant.ts";
import { tileRows } from "../gemm/gemm-wasm.ts";
import { isFree } from "./stored-values.ts";
import { isViewStep, viewSources } from "./view-index.ts";
import { elementCount } from "../../numerics/tensor/host-tensor.ts";

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
  return cut === null ? [wholeKernel(kernel)] : kernelParts(kernel, cut.axes, cut.ranges);
}

/** The kernel as its only part. */
export function wholeKernel(kernel: Kernel): KernelPart {
  return { kernel, inputOffsets: kernel.inputs.map(() => 0), outputOffsets: kernel.outputs.map(() => 0) };
}

/** A part for each range of the axes that `cutsAlong` returns. */
export function kernelParts(kernel: Kernel, axes: CutAxes, ranges: readonly Range[]): readonly KernelPart[] {
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
  return unit.steps.reduce(
    (work, step) => work + rowOf(step).work(step, stepShapes(unit, step)),
    elementWork * written,
  );
}

// The axis along which each value of a unit is cut if its first result is cut along a given axis. The constraints of
// all steps are propagated from outputs to operands and back until nothing changes.

/** Per value, the axis that is cut, or null if every part uses the whole value. */
type CutAxes = readonly (number | null)[];

/** Null if parts would need overlapping boxes, compute a value more than once, or all write one result. */
function cutAxes(unit: Pick<UnitKernel, "values" | "steps" | "results">, axis: number): CutAxes | null {
  const cuts = new Map<number, number | null>();
  let [changed, torn] = [false, false];
  const set = (value: number, cut: number | null): void => {
    const known = cuts.get(value);
    if (known === undefined) {
      cuts.set(value, cut);
      changed = true;
    } else if (known !== cut) torn = true;
  };
  const visit = (step: UnitStep): void => {
    const shapes = stepShapes(unit, step);
    const cut = cuts.get(step.output);
    if (cut === undefined) {
      const found = outputCut(step, shapes, cuts);
      if (found === "torn") torn = true;
      else if (found !== null) set(step.output, found);
      return;
    }
    for (const [position, input] of step.inputs.entries()) {
      const follows = cut === null ? "whole" : operandCut(step, position, cut, shapes);
      if (follows === "torn") torn = true;
      else set(input, follows === "whole" ? null : follows);
    }
  };
  set(at(unit.results, 0), axis);
  while (changed && !torn) {
    changed = false;
    for (const step of unit.steps.toReversed()) visit(step);
  }
  if (torn) return null;
  const isCut = (value: number): boolean => (cuts.get(value) ?? null) !== null;
  const needed = unit.steps.filter(({ output }) => cuts.has(output));
  if (!unit.results.every(isCut)) return null;
  if (!needed.every((step) => isFree(unit, step) || isCut(step.output))) return null;
  return unit.values.map((_, value) => cuts.get(value) ?? null);
}

/** The output axis that an operand's cut requires; null while no operand is cut. */
function outputCut(step: UnitStep, shapes: Shapes, cuts: ReadonlyMap<number, number | null>): number | "torn" | null {
  for (const [position, input] of step.inputs.entries()) {
    const cut = cuts.get(input) ?? null;
    if (cut === null) continue;
    const extents = [...shapes.output.entries()].filter(([, extent]) => extent > 1);
    return extents.find(([axis]) => operandCut(step, position, axis, shapes) === cut)?.[0] ?? "torn";
  }
  return null;
}

/**
 * How a cut of the output cuts an operand. A number is the operand's axis that is cut alike. `whole`: every part reads
 * all of the operand. `torn`: no range of one axis has the elements.
 */
type OperandCut = number | "whole" | "torn";

/**
 * The elements of input `position` that a range along `axis` of the output needs. The output has more than one element
 * along `axis`.
 */
function operandCut(step: UnitStep, position: number, axis: number, shapes: Shapes): OperandCut {
  const shape = at(shapes.operands, position);
  const extent = at(shapes.output, axis);
  if (isViewStep(step)) {
    const sources = viewSources(step, shape.length);
    if (sources === null) return reshapedAxis(shape, shapes.output, axis);
    const own = sources.findIndex((source) => source.axis === axis);
    if (step.kind === "Expand" && shape[own] === 1) return "whole";
    return shape[own] === extent ? own : "torn";
  }
  switch (step.kind) {
    case "Unary":
    case "Cast":
    case "Binary":
    case "Ternary":
      return shape[axis] === 1 ? "whole" : axis;
    case "RandomBits":
      return position === axis + 1 ? 0 : "whole";
    case "Full":
    case "Iota":
      invariant(false, "an op without operands has none to cut", { kind: step.kind });
      break;
    case "Reduction":
      return at(
        [...shape.keys()].filter((i) => !step.axes.includes(i)),
        axis,
      );
    case "Cat":
      return step.axis === axis ? "torn" : axis;
    case "ScatterAdd":
    case "Scan":
    case "Argsort":
      return step.axis === axis ? "torn" : axis;
    case "Gather":
      return position === 0 && step.axis === axis ? "whole" : axis;
    case "IndexSelect": {
      const rank = at(shapes.operands, 1).length;
      const isIndex = axis >= step.axis && axis < step.axis + rank;
      if (position === 1) return isIndex ? axis - step.axis : "whole";
      if (isIndex) return "whole";
      return axis < step.axis ? axis : axis - rank + 1;
    }
    case "Pad":
      return isKept(at(step.widths, axis)) ? axis : "torn";
    case "Matmul":
      return matmulAxis(position, axis, shapes);
    case "Linear":
      return step.to !== undefined && position > 1
        ? scaleAxis(position, axis, shapes)
        : linearAxis(position, axis, shapes);
    case "GroupedMatmul":
      return groupedAxis(position, axis, shapes);
    default:
      return unreachable(step);
  }
}

/**
 * The input axis with the same numbers of elements before it, along it and after it. Axes of one element are skipped.
 */
function reshapedAxis(input: readonly number[], output: readonly number[], axis: number): OperandCut {
  const behind = (shape: readonly number[], i: number): number => elementCount(shape.slice(i + 1));
  const inner = behind(output, axis);
  const found = input.findIndex((extent, i) => extent === output[axis] && behind(input, i) === inner);
  return found < 0 ? "torn" : found;
}

/** A block of rows is not cut, unless all parts read the only one. */
function scaleAxis(position: number, axis: number, shapes: Shapes): OperandCut {
  const scale = at(shapes.operands, position);
  const cut = scale.length === 0 ? "whole" : linearAxis(position - 2, axis, shapes);
  if (typeof cut !== "number" || scale[cut] === at(shapes.operands, position - 2)[cut]) return cut;
  return scale[cut] === 1 ? "whole" : "torn";
}

function matmulAxis(position: number, axis: number, { operands, output }: Shapes): OperandCut {
  const [rows, columns] = [0, 1].map((i) => (at(operands, i).length > 1 ? 1 : 0));
  const shape = at(operands, position);
  const batch = output.length - (rows ?? 0) - (columns ?? 0);
  if (axis < batch) {
    const own = axis - batch + shape.length - 2;
    return (shape[own] ?? 1) === 1 ? "whole" : own;
  }
  const isRow = rows === 1 && axis === batch;
  if (position === 0) return isRow ? shape.length - 2 : "whole";
  return isRow ? "whole" : shape.length - 1;
}

/** The ends of groups count all rows. */
function groupedAxis(position: number, axis: number, { operands, output }: Shapes): OperandCut {
  const [x, y] = [at(operands, 0), at(operands, 1)];
  const perGroup = hasGroupMatrices(x, y);
  const shape = at(operands, position);
  const batch = x.length - 2;
  if (axis < batch) {
    const inner = [2, perGroup ? 3 : 2, 1][position] ?? 0;
    const own = axis - batch + shape.length - inner;
    return (shape[own] ?? 1) === 1 ? "whole" : own;
  }
  if (axis === output.length - 1) return position === 1 ? y.length - 1 : "whole";
  if (perGroup || axis === batch) return "torn";
  return position === 0 ? x.length - 1 : "whole";
}

function linearAxis(position: number, axis: number, { operands, output }: Shapes): OperandCut {
  const isColumn = at(operands, 1).length > 1 && axis === output.length - 1;
  if (position === 0) return isColumn ? "whole" : axis;
  return isColumn ? 0 : "whole";
}
