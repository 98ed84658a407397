/**
 * A Kernel as the sequence of launches on the GPU: generated kernels and GEMMs, planned by the planner of the CPU's
 * kernels. A HostUnit without reductions and GEMMs is one generated kernel.
 */
import { isUnitOf, type Kernel, type Operand, withoutAddend } from "../../../../commands/kernel.ts";
import { sameNumbers, type View } from "../../../../commands/view.ts";
import { hasBlocks } from "../../../../ir/ops/kinds/contractions.ts";
import { reductionSemantics } from "../../../../ir/ops/functions/expressions.ts";
import type { ReductionOpType } from "../../../../ir/ops/op.ts";
import { type Contraction, scaledContraction } from "../../../../kernels/gemm/contraction.ts";
import { kernelPhases } from "../../../../kernels/kernel-plan.ts";
import { constantIndex, dot } from "../../../../kernels/nests/affine.ts";
import { arrangeLoops } from "../../../../kernels/nests/arrange-loops.ts";
import { createIndexSpace, unsplit } from "../../../../kernels/nests/index-space.ts";
import type { NestMemory, Nest } from "../../../../kernels/nests/nest.ts";
import { memoriesOf, movedNest, movedPhase, placeScratch } from "../../../../kernels/nests/stored-values.ts";
import type { ContractionPhase, PhaseAddress } from "../../../../kernels/phase.ts";
import { computeType, constant } from "../../../../numerics/scalar/expression.ts";
import { at, invariant, unreachable } from "../../../../support/invariant.ts";
import { elementwiseKernel } from "../elementwise-kernel.ts";
import { blockScaleLayout } from "../../matmul/gemm-layout.ts";
import type { KernelSource } from "../kernel-source.ts";
import { partBytes, reductionKernels } from "../reduction-kernel.ts";
import { rowKernel } from "../row-kernel.ts";
import { orderedKernels, sortBytes } from "../ordered-kernel.ts";
import { tiledKernel } from "../tiled-kernel.ts";
import { type GroupedNest, groupPhases, type PhaseGroup } from "./nest-groups.ts";
import { planTiles } from "./tile-plan.ts";
import { unevenBytes, unevenGemms } from "./uneven-rows.ts";
import type { AlignmentOf } from "./vector-width.ts";

export type KernelStep =
  | { readonly kind: "kernel"; readonly source: KernelSource }
  | {
      readonly kind: "gemm";
      readonly contraction: Contraction;
      readonly a: PhaseAddress;
      readonly b: PhaseAddress;
      readonly bias: PhaseAddress | null;
      /** What the GEMM adds to, with the strides of c; null for c itself, or for nothing. */
      readonly addend: PhaseAddress | null;
      /** Of a and b, if the contraction is scaled. */
      readonly scales?: readonly [PhaseAddress, PhaseAddress];
      readonly c: PhaseAddress;
    };

export interface KernelSteps {
  readonly steps: readonly KernelStep[];
  /** Scratch bytes of the stream that launches the steps: values between steps, and parts of reductions. */
  readonly scratchBytes: number;
}

/** Of what is not a value between steps. */
export const workAlignment = 256;

/** `alignmentOf` covers inputs and outputs; scratch is aligned to 64 bytes. */
export function kernelSteps(kernel: Kernel, alignmentOf: AlignmentOf): KernelSteps {
  const sum = withoutAddend(kernel);
  if (sum !== null && sameNumbers(sum.addend.strides, at(kernel.outputs, 0).strides)) {
    const { steps, scratchBytes } = kernelSteps(sum.product, alignmentOf);
    const [step] = steps;
    if (steps.length === 1 && step?.kind === "gemm") {
      const addend: PhaseAddress = { memory: { kind: "input", position: kernel.inputs.length - 1 }, offset: 0 };
      const contraction = { ...step.contraction, accumulate: true };
      return { steps: [{ ...step, contraction, addend }], scratchBytes };
    }
  }
  const scaled = scaledSteps(kernel, alignmentOf);
  if (scaled !== null) return scaled;
  const { phases, sizes } = kernelPhases(kernel);
  const { groups, valueBytes } = placeGroups(groupPhases(phases), sizes);
  const partsFrom = Math.ceil(valueBytes / workAlignment) * workAlignment;
  const parts = Math.max(0, ...groups.map(bytesOfParts));
  const partsAt = { kind: "scratch", offset: partsFrom } as const;
  const steps = groups.flatMap((group): readonly KernelStep[] => {
    switch (group.kind) {
      case "nests":
        return [{ kind: "kernel", source: nestsKernel(group.nests, alignmentOf) }];
      case "rows":
        return [{ kind: "kernel", source: rowKernel(group, alignmentOf) }];
      case "reduction": {
        const kernels = reductionKernels(group.nest, alignmentOf, partsAt);
        return kernels.map((source) => ({ kind: "kernel", source }));
      }
      case "ordered":
        return orderedKernels(group.nest, partsAt).map((source) => ({ kind: "kernel", source }));
      case "contraction":
        return gemmSteps(group, partsAt, alignmentOf);
      default:
        return unreachable(group);
    }
  });
  return { steps, scratchBytes: parts === 0 ? valueBytes : partsFrom + parts };
}

/**
 * A scaled linear whose rows are one matrix; its plan would convert the operands to float. Scales of blocks that lie
 * otherwise than cuBLASLt reads them are copied first.
 */
function scaledSteps(kernel: Kernel, alignmentOf: AlignmentOf): KernelSteps | null {
  if (!isUnitOf("Linear", kernel)) return null;
  const [x, weight, ...given] = kernel.inputs;
  const [step] = kernel.steps;
  const [ofX, ofWeight] = given;
  invariant(x && weight && ofX && ofWeight && step?.kind === "Linear", "a scaled linear has two scales");
  const inBlocks = hasBlocks(ofX.shape, x.shape);
  let scratchBytes = 0;
  const copies: KernelStep[] = [];
  const lay = (scale: Operand, position: number): readonly [Operand, PhaseAddress] => {
    const memory = { kind: "input", position } as const;
    const laid = inBlocks ? blockScaleLayout(scale, at(kernel.inputs, position - 2)) : null;
    if (laid === null || (alignmentOf(memory) >= scaleAlignment && isLaid(scale, laid.strides)))
      return [scale, { memory, offset: 0 }];
    const to = { memory: { kind: "scratch", offset: scratchBytes } as const, offset: 0 };
    const copy = copyBetween([scale, memory], [{ ...scale, strides: laid.strides }, to.memory], alignmentOf);
    copies.push({ kind: "kernel", source: copy });
    scratchBytes += Math.ceil((4 * laid.elements) / workAlignment) * workAlignment;
    return [{ ...scale, strides: laid.strides }, to];
  };
  const [[rows, ofRows], [columns, ofColumns]] = [lay(ofX, 2), lay(ofWeight, 3)];
  const fast = step.fastAccumulation === true;
  const contraction = scaledContraction(x, weight, [rows, columns], at(kernel.outputs, 0), fast);
  if (contraction === null || contraction.m * contraction.n * contraction.k === 0) return null;
  const input = (position: number): PhaseAddress => ({ memory: { kind: "input", position }, offset: 0 });
  const c: PhaseAddress = { memory: { kind: "output", position: 0 }, offset: 0 };
  const scales = [ofRows, ofColumns] as const;
  const gemm: KernelStep = { kind: "gemm", contraction, a: input(0), b: input(1), bias: null, addend: null, scales, c };
  return { steps: [...copies, gemm], scratchBytes };
}

/** Of cuBLASLt, for scales of blocks. */
const scaleAlignment = 16;

function isLaid({ shape, strides }: Operand, wanted: readonly number[]): boolean {
  return shape.every((extent, axis) => extent === 1 || strides[axis] === wanted[axis]);
}

/** Copies a box of elements to another of the same shape, from input 0 to output 0, bit for bit. */
export function copyKernel(source: Operand, destination: Operand, alignmentOf: AlignmentOf): KernelSource {
  return copyBetween(
    [source, { kind: "input", position: 0 }],
    [destination, { kind: "output", position: 0 }],
    alignmentOf,
  );
}

type OperandIn = readonly [operand: Operand, memory: NestMemory];

function copyBetween([source, from]: OperandIn, [destination, to]: OperandIn, alignmentOf: AlignmentOf): KernelSource {
  const { dtype, shape } = destination;
  const space = createIndexSpace(unsplit(shape));
  const nest: Nest = {
    atoms: space.atoms,
    loops: space.atoms.map(({ extent }, atom) => ({ atom, extent })),
    reducedLoops: [],
    reduction: null,
    body: [
      {
        kind: "load",
        access: { memory: from, dtype, offset: dot(space.axes, source.strides) },
      },
    ],
    target: { memory: to, dtype, offset: dot(space.axes, destination.strides) },
  };
  return oneNest(nest, alignmentOf);
}

/** Writes `count` neutral elements of the reduction to output 0. */
export function identityKernel(
  op: ReductionOpType,
  dtype: View["dtype"],
  count: number,
  alignmentOf: AlignmentOf,
): KernelSource {
  const { identity } = reductionSemantics(op, dtype);
  const space = createIndexSpace(unsplit([count]));
  const [axis = constantIndex(0)] = space.axes;
  const value = { ...constant(computeType[dtype], 0), value: identity };
  return oneNest(
    {
      atoms: space.atoms,
      loops: space.atoms.map(({ extent }, atom) => ({ atom, extent })),
      reducedLoops: [],
      reduction: null,
      body: [{ kind: "apply", expression: value, operands: [] }],
      target: { memory: { kind: "output", position: 0 }, dtype, offset: axis },
    },
    alignmentOf,
  );
}

function oneNest(nest: Nest, alignmentOf: AlignmentOf): KernelSource {
  return nestsKernel([{ nest: arrangeLoops(nest), given: new Map(), stores: true }], alignmentOf);
}

/** Of scratch that a step needs for itself. */
function bytesOfParts(group: PhaseGroup): number {
  switch (group.kind) {
    case "reduction":
      return partBytes(group.nest);
    case "ordered":
      return sortBytes(group.nest);
    case "contraction":
      return unevenBytes(group);
    case "nests":
    case "rows":
      return 0;
    default:
      return unreachable(group);
  }
}

function gemmSteps(phase: ContractionPhase, partsAt: NestMemory, alignmentOf: AlignmentOf): readonly KernelStep[] {
  const step = ({ contraction, a, b, bias, c }: ContractionPhase): KernelStep => {
    return { kind: "gemm", contraction, a, b, bias, addend: null, c };
  };
  const uneven = unevenGemms(phase, partsAt);
  if (uneven === null) return [step(phase)];
  const { gemms, scratchRow } = uneven;
  if (scratchRow === null) return gemms.map(step);
  const { dtype, m, n, c } = phase.contraction;
  const rows = (row: number): Operand => ({ dtype, shape: [m, n], strides: [row, 1] });
  const copy = copyBetween([rows(scratchRow), partsAt], [rows(c.row), phase.c.memory], alignmentOf);
  return [...gemms.map(step), { kind: "kernel", source: copy }];
}

function nestsKernel(group: readonly GroupedNest[], alignmentOf: AlignmentOf): KernelSource {
  const tiles = planTiles(group, alignmentOf);
  return tiles === null ? elementwiseKernel(group, alignmentOf) : tiledKernel(group, tiles);
}

// Places the values between the kernels of a unit in the scratch. Those that stay in registers have no place.

interface PlacedGroups {
  readonly groups: readonly PhaseGroup[];
  readonly valueBytes: number;
}

/** `sizes` maps the offset of each value to its aligned bytes. */
function placeGroups(groups: readonly PhaseGroup[], sizes: ReadonlyMap<number, number>): PlacedGroups {
  const { move, bytes } = placeScratch(groups.map(usedBy), sizes);
  return { groups: groups.map((group) => moved(group, move)), valueBytes: bytes };
}

function usedBy(group: PhaseGroup): readonly NestMemory[] {
  switch (group.kind) {
    case "nests":
    case "rows":
      return group.nests.flatMap(({ nest, given, stores }): readonly NestMemory[] => [
        ...nest.body.flatMap((step, i) => (step.kind === "load" && !given.has(i) ? [step.access.memory] : [])),
        ...(stores ? [nest.target.memory] : []),
      ]);
    case "reduction":
    case "ordered":
      return memoriesOf({ kind: "nest", nest: group.nest });
    case "contraction":
      return memoriesOf(group);
    default:
      return unreachable(group);
  }
}

function moved(group: PhaseGroup, move: (memory: NestMemory) => NestMemory): PhaseGroup {
  switch (group.kind) {
    case "nests":
      return { ...group, nests: group.nests.map((each) => ({ ...each, nest: movedNest(each.nest, move) })) };
    case "rows":
      return { ...group, nests: group.nests.map((each) => ({ ...each, nest: movedNest(each.nest, move) })) };
    case "reduction":
    case "ordered":
      return { ...group, nest: movedNest(group.nest, move) };
    case "contraction":
      return movedPhase(group, move);
    default:
      return unreachable(group);
  }
}
