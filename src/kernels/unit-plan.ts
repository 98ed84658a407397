/**
 * Plans a unit: the memory of each stored value, and the phases that compute the values, in order. A phase is a loop
 * nest or a contraction. A stored value that is not a result is in the scratch, row-major, until its last reader has
 * run.
 */
import { hasBlocks, isScaled, scaledBlock } from "../ir/ops/kinds/contractions.ts";
import type { Operand, UnitKernel, UnitStep } from "../commands/kernel.ts";
import { contiguousStrides } from "../commands/view.ts";
import { dtypes } from "../numerics/dtype.ts";
import { at, invariant } from "../support/invariant.ts";
import { rowAccumulatorBytes } from "./emit/emit-nest.ts";
import {
  type Contraction,
  groupedContraction,
  linearContraction,
  matmulContraction,
  type StridedShape,
} from "./gemm/contraction.ts";
import { groupedScratchBytes } from "./gemm/grouped-gemm.ts";
import { contractionScratchBytes } from "./gemm/widened-gemm.ts";
import { arrangeLoops } from "./nests/arrange-loops.ts";
import { stridedBox, type UnitGraph } from "./nests/build-nest.ts";
import type { NestMemory, ValuePlacement } from "./nests/nest.ts";
import { shareScratch, storedValues } from "./nests/stored-values.ts";
import { valueNests, withoutEmptyReduction } from "./nests/value-nests.ts";
import type { PhaseAddress, Phase } from "./phase.ts";
import { elementCount } from "../numerics/tensor/host-tensor.ts";

export interface UnitPlan {
  readonly phases: readonly Phase[];
  /** Scratch bytes of the stored values. */
  readonly valueBytes: number;
  /** Scratch bytes after the values, which one phase at a time uses for packed panels and row accumulators. */
  readonly workBytes: number;
}

/** A plan in which every stored value has its own place in the scratch. */
export interface PhasePlan {
  readonly phases: readonly Phase[];
  /** Aligned bytes of the values in the scratch, by offset. */
  readonly sizes: ReadonlyMap<number, number>;
}

/** Offsets in the scratch are multiples of this: a cache line. */
export const scratchAlignment = 64;

type ContractionStep = Extract<UnitStep, { kind: "Matmul" | "Linear" | "GroupedMatmul" }>;

export function planUnit(kernel: UnitKernel): UnitPlan {
  const { phases, sizes } = unitPhases(kernel);
  const work = phases.map((phase) => {
    if (phase.kind === "nest") return rowAccumulatorBytes(phase.nest);
    const { contraction } = phase;
    const { groups } = contraction;
    return groups === undefined ? contractionScratchBytes(contraction) : groupedScratchBytes(contraction, groups);
  });
  const shared = shareScratch(phases, sizes);
  return { phases: shared.phases, valueBytes: shared.bytes, workBytes: Math.max(0, ...work) };
}

export function unitPhases(kernel: UnitKernel): PhasePlan {
  const unit = withOwnResults(withoutScales(kernel));
  const producers = unit.values.map((): UnitStep | undefined => undefined);
  for (const step of unit.steps) producers[step.output] = step;
  const layout = placeValues(unit, storedValues(unit));
  const graph: UnitGraph = { unit, producers, placements: layout.placements };
  const nestsOf = (value: number): readonly Phase[] => {
    const placement = graph.placements[value];
    invariant(placement !== undefined, "a nest stores its value", { value });
    return valueNests(graph, value).map((nest) => {
      const whole = withoutEmptyReduction(nest, at(unit.values, value).shape, placement);
      return { kind: "nest", nest: arrangeLoops(whole) };
    });
  };
  const phases = unit.steps.flatMap((step): readonly Phase[] => {
    if (graph.placements[step.output] === undefined) return [];
    // Nothing computes an empty value, and nothing reads it: a reduction of it is the neutral element.
    if (elementCount(at(unit.values, step.output).shape) === 0) return [];
    if (!isContractionStep(step)) return nestsOf(step.output);
    const gathered = new Set(step.inputs.filter((value) => stridedBox(graph, value) === null));
    const gatherings = [...gathered].flatMap((value) => {
      layout.place(value);
      return nestsOf(value);
    });
    return [...gatherings, contractionPhase(graph, step)];
  });
  return { phases, sizes: layout.sizes };
}

/**
 * Makes every result a distinct value that a step computes: results that are inputs, or that are named twice, are
 * copied.
 */
function withOwnResults(kernel: UnitKernel): UnitKernel {
  const values = [...kernel.values];
  const steps = [...kernel.steps];
  const seen = new Set<number>(kernel.inputs.keys());
  const results = kernel.results.map((result) => {
    if (!seen.has(result)) {
      seen.add(result);
      return result;
    }
    const output = values.push(at(kernel.values, result)) - 1;
    steps.push({ kind: "Set", inputs: [result], output });
    return output;
  });
  return { ...kernel, values, steps, results };
}

/**
 * A scaled linear as a linear of floats, whose results are multiplied by the scales and rounded. With scales of blocks its
 * operands are multiplied.
 */
function withoutScales(kernel: UnitKernel): UnitKernel {
  if (!kernel.steps.some(isScaled)) return kernel;
  const values = [...kernel.values];
  const steps = kernel.steps.flatMap((step): readonly UnitStep[] => {
    if (step.kind !== "Linear" || step.to === undefined) return [step];
    const made: UnitStep[] = [];
    const shapeOf = (value: number): readonly number[] => at(values, value).shape;
    const shape = shapeOf(step.output);
    const add = (own: readonly number[], make: (output: number) => UnitStep): number => {
      const output = values.push({ dtype: "float", shape: own }) - 1;
      made.push(make(output));
      return output;
    };
    const times = (a: number, b: number): number =>
      add(shapeOf(a), (output) => ({ kind: "Binary", op: "mul", inputs: [a, b], output }));
    const reshaped = (input: number, own: readonly number[]): number =>
      add(own, (output) => ({ kind: "Reshape", inputs: [input], output }));
    const spread = (input: number, flags: readonly boolean[], own: readonly number[]): number =>
      add(own, (output) => ({ kind: "Broadcast", flags, inputs: [input], output }));
    /** A scale for each row: those of blocks of rows are repeated. */
    const ofRows = (scale: number, rows: number): number => {
      const [count = 1, blocks = 1] = shapeOf(scale);
      if (count === rows) return scale;
      const one = spread(scale, [false, true, false], [count, 1, blocks]);
      const repeated = add([count, scaledBlock, blocks], (output) => ({ kind: "Expand", inputs: [one], output }));
      const whole = reshaped(repeated, [count * scaledBlock, blocks]);
      const ranges = [
        { start: 0, stop: rows, step: 1 },
        { start: 0, stop: blocks, step: 1 },
      ];
      return add([rows, blocks], (output) => ({ kind: "Slice", ranges, inputs: [whole], output }));
    };
    const inputs = step.inputs.slice(0, 2).map((input, i) => {
      const own = shapeOf(input);
      const floats = add(own, (output) => ({ kind: "Cast", to: "float", inputs: [input], output }));
      const scale = at(step.inputs, 2 + i);
      if (!hasBlocks(shapeOf(scale), own)) return floats;
      const each = own.length === 2 ? ofRows(scale, at(own, 0)) : scale;
      const cut = [...shapeOf(each), scaledBlock];
      const flags = cut.map((_, axis) => axis === cut.length - 1);
      return reshaped(times(reshaped(floats, cut), spread(each, flags, cut.with(-1, 1))), own);
    });
    const sums = add(shape, (output) => ({ kind: "Linear", inputs, output }));
    const scales = hasBlocks(shapeOf(at(step.inputs, 2)), shapeOf(at(step.inputs, 0))) ? [] : step.inputs.slice(2);
    const scaled = scales.reduce((product, scale, i) => {
      const { length } = shapeOf(scale);
      const flags = shape.map((_, axis) => length === 0 || (axis === shape.length - 1) === (i === 0));
      const own = shape.map((extent, axis) => (flags[axis] === true ? 1 : extent));
      return times(product, spread(scale, flags, own));
    }, sums);
    return [...made, { kind: "Cast", to: step.to, inputs: [scaled], output: step.output }];
  });
  return { ...kernel, values, steps };
}

function isContractionStep(step: UnitStep): step is ContractionStep {
  return step.kind === "Matmul" || step.kind === "Linear" || step.kind === "GroupedMatmul";
}

interface Layout {
  readonly placements: readonly (ValuePlacement | undefined)[];
  /** Allocates scratch for a value. */
  readonly place: (value: number) => void;
  /** Aligned bytes of the values in the scratch, by offset. */
  readonly sizes: ReadonlyMap<number, number>;
}

function placeValues(unit: UnitKernel, stored: ReadonlySet<number>): Layout {
  const placements = unit.values.map((): ValuePlacement | undefined => undefined);
  const bind = (value: number, memory: NestMemory, { dtype, strides }: Operand): void => {
    placements[value] = { memory, dtype, strides };
  };
  const written = unit.outputs.map((_, position): NestMemory => ({ kind: "output", position }));
  for (const [position, operand] of unit.inputs.entries()) {
    const over = unit.inPlace?.find(({ input }) => input === position);
    bind(position, over === undefined ? { kind: "input", position } : at(written, over.output), operand);
  }
  for (const [position, operand] of unit.outputs.entries()) {
    bind(at(unit.results, position), at(written, position), operand);
  }
  const sizes = new Map<number, number>();
  let next = 0;
  const place = (value: number): void => {
    const { dtype, shape } = at(unit.values, value);
    const size = Math.ceil((elementCount(shape) * dtypes[dtype].bytes) / scratchAlignment) * scratchAlignment;
    bind(value, { kind: "scratch", offset: next }, { dtype, shape, strides: contiguousStrides(shape) });
    sizes.set(next, size);
    next += size;
  };
  for (const value of stored) if (placements[value] === undefined) place(value);
  return { placements, place, sizes };
}

function contractionPhase(graph: UnitGraph, step: ContractionStep): Phase {
  const operands = step.inputs.map((value) => operandOf(graph, value));
  const a = at(operands, 0);
  const b = at(operands, 1);
  const bias = operands[2];
  const c = operandOf(graph, step.output);
  const contraction = (): Contraction => {
    if (step.kind === "Matmul") return matmulContraction(a.box, b.box, c.box, step.accumulate);
    if (step.kind === "Linear") return linearContraction(a.box, b.box, bias?.box, c.box, step.accumulate);
    return groupedContraction(a.box, b.box, at(operands, 2).box, c.box);
  };
  return {
    kind: "contraction",
    contraction: contraction(),
    a: a.address,
    b: b.address,
    bias: bias?.address ?? null,
    c: c.address,
  };
}

function operandOf(graph: UnitGraph, value: number): { readonly box: StridedShape; readonly address: PhaseAddress } {
  const found = stridedBox(graph, value);
  invariant(found !== null, "what a contraction reads lies in memory", { value });
  const { memory, dtype, strides } = found.placement;
  const { shape } = at(graph.unit.values, value);
  return {
    box: { dtype, shape, strides },
    address: { memory, offset: found.offset * dtypes[dtype].bytes },
  };
}
