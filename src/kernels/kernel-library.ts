/**
 * Runs kernels over one WebAssembly.Memory. A kernel's loops run as generated WebAssembly SIMD or, where only
 * JavaScript has an operation, as generated JavaScript. The memory must not grow while the library is in use, because
 * that would detach its views.
 */
import { type AttentionKernel, isAttention } from "../commands/attention.ts";
import type { Kernel, Operand } from "../commands/kernel.ts";
import { accumulatorOf, dtypes } from "../numerics/dtype.ts";
import { jsLibrary } from "../numerics/scalar/emit-js.ts";
import { isWhole, splitShared } from "../numerics/scalar/split-shared.ts";
import { compileFunction } from "../support/compile-function.ts";
import { at, invariant } from "../support/invariant.ts";
import type { WasmMemory } from "../support/webassembly.ts";
import { backwardProducts, backwardRows, backwardScratch, prepareBackward } from "./attention/backward.ts";
import { forwardProducts, forwardRows, forwardScratch, prepareForward } from "./attention/forward.ts";
import type { AttentionTools } from "./attention/tools.ts";
import { emitNest } from "./emit/emit-nest.ts";
import { memoryText, memoryViews, type NestAddresses } from "./emit/nest-text.ts";
import type { Contraction } from "./gemm/contraction.ts";
import { type Gemm, gemmScratchBytes, instantiateGemm, prepareGemm } from "./gemm/gemm.ts";
import { prepareGrouped } from "./gemm/grouped-gemm.ts";
import { prepareWidenedGemm } from "./gemm/widened-gemm.ts";
import { planKernel } from "./kernel-plan.ts";
import type { Instruction, Nest } from "./nests/nest.ts";
import { type KernelPart, axesByStride, cutsAlong, kernelParts, wholeKernel } from "./nests/split-kernel.ts";
import type { PhaseAddress, ContractionPhase, Phase } from "./phase.ts";
import { type CompiledNest, compileLaneNests, type SimdUse, usesLanes } from "./simd/compile-lane-nests.ts";
import { scratchAlignment, type UnitPlan, planUnit } from "./unit-plan.ts";
import { accumulatesRows } from "./nests/arrange-loops.ts";
import { elementCount } from "../numerics/tensor/host-tensor.ts";

export type { PreparedKernel, SimdUse };

export interface KernelLibrary {
  /** Generates the kernel's code. Prepare each kernel once. */
  readonly prepare: (kernel: Kernel) => PreparedKernel;
}

export interface KernelLibraryOptions {
  readonly memory: WasmMemory;
  /**
   * Scratch for one kernel at a time. `address` is a multiple of 64; `bytes` is at least the largest `scratchBytes` of
   * the kernels.
   */
  readonly scratch: { readonly address: number; readonly bytes: number };
  /**
   * Whether loops over elements run in WebAssembly SIMD; `auto` by default. The bits of the results do not depend on
   * it, except NaNs.
   */
  readonly simd?: SimdUse;
  /**
   * Another GEMM implementation, tried first for each contraction. null: this library does not support the contraction.
   */
  readonly gemms?: (contraction: Contraction) => Gemm | null;
}

export function scratchBytes(kernel: Kernel): number {
  if (isAttention(kernel)) return totalBytes(planAttention(kernel));
  return blockScratchBytes(kernel);
}

export function createKernelLibrary({ memory, scratch, simd = "auto", gemms }: KernelLibraryOptions): KernelLibrary {
  invariant(scratch.address % scratchAlignment === 0, "the scratch is aligned", scratch);
  const wasm = instantiateGemm(memory);
  const check = (address: number, plan: Scratch, kernel: Kernel): void => {
    const needed = address - scratch.address + totalBytes(plan);
    invariant(needed <= scratch.bytes, "the scratch is large enough", { needed, kind: kernel.kind });
  };
  const gemmAt = (work: number): PhaseTarget["prepareGemm"] => {
    const widening = gemms && { gemms, prepare: (kernel: Kernel) => prepareAt(kernel, scratch.address) };
    const prepareOne = (contraction: Contraction): Gemm =>
      gemms?.(contraction) ??
      (widening && prepareWidenedGemm(contraction, widening, work)) ??
      prepareGemm(contraction, wasm, work);
    return (contraction) =>
      contraction.groups === undefined
        ? prepareOne(contraction)
        : prepareGrouped(contraction, contraction.groups, prepareOne, memory.buffer);
  };
  /** `address` is where the kernel's scratch begins. */
  const prepareAt = (kernel: Kernel, address: number): PreparedKernel => {
    if (isAttention(kernel)) {
      const plan = planAttention(kernel);
      check(address, plan, kernel);
      const work = address + plan.valueBytes;
      const prepareRows = (each: Kernel): PreparedKernel => prepareAt(each, work);
      return prepareAttention(kernel, { gemm: gemmAt(work), prepare: prepareRows, buffer: memory.buffer }, address);
    }
    return inBlocks(rowBlocks(kernel), (block) => {
      const plan = planKernel(block);
      check(address, plan, block);
      const work = address + plan.valueBytes;
      return compilePhases(plan.phases, {
        memory,
        simd,
        scratch: address,
        accumulators: work,
        prepareGemm: gemmAt(work),
      });
    });
  };
  const prepare = (kernel: Kernel): PreparedKernel => prepareAt(kernel, scratch.address);
  return { prepare };
}

/** Runs the blocks in turn; blocks of one length share their code. */
function inBlocks(blocks: readonly KernelPart[], compile: (kernel: Kernel) => PreparedKernel): PreparedKernel {
  const [first] = blocks;
  if (first !== undefined && blocks.length === 1) return compile(first.kernel);
  const compiled = new Map<Kernel, PreparedKernel>();
  const runs = blocks.map(({ kernel, inputOffsets, outputOffsets }) => {
    const run = compiled.get(kernel) ?? compile(kernel);
    compiled.set(kernel, run);
    return { run, inputOffsets, outputOffsets };
  });
  const moved = (addresses: readonly number[], by: readonly number[]): readonly number[] =>
    addresses.map((address, i) => address + at(by, i));
  return (inputs, outputs, origins) => {
    for (const { run, inputOffsets, outputOffsets } of runs) {
      run(moved(inputs, inputOffsets), moved(outputs, outputOffsets), origins);
    }
  };
}

type Scratch = Pick<UnitPlan, "valueBytes" | "workBytes">;

function totalBytes({ valueBytes, workBytes }: Scratch): number {
  return valueBytes + workBytes;
}

/** Takes absolute byte addresses of the kernel's inputs and outputs, and the launch's origins. */
type PreparedKernel = (inputs: readonly number[], outputs: readonly number[], origins?: readonly number[]) => void;

interface PhaseTarget extends NestAddresses {
  readonly memory: WasmMemory;
  readonly simd: SimdUse;
  readonly prepareGemm: (contraction: Contraction) => Gemm;
}

function compilePhases(planned: readonly Phase[], target: PhaseTarget): PreparedKernel {
  const phases = planned.map((phase): Phase => {
    return phase.kind === "nest" ? { ...phase, nest: splitFunctions(phase.nest) } : phase;
  });
  const functions: Record<string, Gemm | CompiledNest["run"]> = {};
  const nests = phases.flatMap((phase) => (phase.kind === "nest" ? [phase.nest] : []));
  const inLanes = nests.filter((nest) => usesLanes(nest, target.simd));
  const compiled = compileLaneNests(inLanes, target.memory, target.scratch);
  const lines = phases.flatMap((phase, i) => {
    const name = `$phase${i}`;
    if (phase.kind === "contraction") {
      functions[name] = target.prepareGemm(phase.contraction);
      return [callText(name, phase, target)];
    }
    const nest = compiled.get(phase.nest);
    if (nest === undefined) return emitNest(phase.nest, target);
    functions[name] = nest.run;
    return [`${name}(${nest.operands.map(memoryText).join(", ")});`];
  });
  return compileFunction<PreparedKernel>(["inputs", "outputs", "origins"], lines.join("\n"), {
    ...jsLibrary,
    ...memoryViews(target.memory.buffer),
    ...functions,
  });
}

function callText(name: string, { a, b, bias, c }: ContractionPhase, { scratch }: NestAddresses): string {
  const text = (address: PhaseAddress): string => addressText(address, scratch);
  return `${name}(${[text(a), text(b), bias === null ? "0" : text(bias), text(c)].join(", ")});`;
}

function addressText({ memory, offset }: PhaseAddress, scratch: number): string {
  return memory.kind === "scratch" ? `${scratch + memory.offset + offset}` : `${memoryText(memory)} + ${offset}`;
}

// Makes instructions of what the expressions of a nest use several times (numerics/scalar/split-shared.ts).

export function splitFunctions(nest: Nest): Nest {
  if (nest.body.every((step) => step.kind !== "apply" || isWhole(step.expression))) return nest;
  const body: Instruction[] = [];
  const positions: number[] = [];
  const moved = (instruction: number): number => at(positions, instruction);
  for (const step of nest.body) {
    positions.push(
      step.kind === "apply"
        ? splitShared(step.expression, step.operands.map(moved), (expression, ...operands) => {
            return body.push({ kind: "apply", expression, operands }) - 1;
          })
        : body.push(step) - 1,
    );
  }
  const atoms = nest.atoms.map((atom) =>
    atom.kind === "loaded" ? { ...atom, instruction: moved(atom.instruction) } : atom,
  );
  return { ...nest, atoms, body };
}

// Attention on the CPU: its scratch, and the code of a kernel.

interface AttentionPlan {
  /** Scratch bytes of the scores and of what is accumulated. */
  readonly valueBytes: number;
  /** Scratch bytes after those, for one GEMM or unit at a time. */
  readonly workBytes: number;
}

function planAttention(kernel: AttentionKernel): AttentionPlan {
  const [{ bytes }, products, rows] =
    kernel.kind === "sdpa"
      ? [forwardScratch(kernel), forwardProducts(kernel), forwardRows(kernel)]
      : [backwardScratch(kernel), backwardProducts(kernel), backwardRows(kernel)];
  const work = [...products.map(gemmScratchBytes), ...rows.map(blockScratchBytes)];
  return { valueBytes: bytes, workBytes: work.reduce((most, each) => Math.max(most, each), 0) };
}

/** `scratch` is the address of `valueBytes` bytes. */
function prepareAttention(
  kernel: AttentionKernel,
  { buffer, ...tools }: Pick<AttentionTools, "gemm" | "prepare"> & { readonly buffer: ArrayBufferLike },
  scratch: number,
): (inputs: readonly number[], outputs: readonly number[]) => void {
  const isDouble = accumulatorOf(at(kernel.inputs, 0).dtype) === "double";
  const all = { ...tools, floats: isDouble ? new Float64Array(buffer) : new Float32Array(buffer) };
  return kernel.kind === "sdpa" ? prepareForward(kernel, all, scratch) : prepareBackward(kernel, all, scratch);
}

/*
 * Runs a unit with reductions in blocks of rows: all nests of the unit over a few rows, then over the next. A norm or
 * softmax then reads a row from memory once, and its intermediate values stay in the cache. Every element is computed as
 * in the whole unit, so the bits are the same. A unit runs whole if its rows depend on each other, or if they are so long
 * that a block would not stay in the cache; every nest then reads memory.
 */

/** Bytes of all values of a block: a share of a core's second-level cache, and the most where rows are long. */
const blockBytes = 2 ** 19;
const mostBlockBytes = 2 ** 21;

/** Rows that the lanes of a reduction take at once. */
const laneRows = 8;

/** The bytes of scratch that the blocks need, one after the other. */
function blockScratchBytes(kernel: Kernel): number {
  const kernels = new Set(rowBlocks(kernel).map((block) => block.kernel));
  return [...kernels].reduce((most, each) => {
    const { valueBytes, workBytes } = planKernel(each);
    return Math.max(most, valueBytes + workBytes);
  }, 0);
}

/** In order; the kernel itself if it runs whole. */
export function rowBlocks(kernel: Kernel): readonly KernelPart[] {
  if (kernel.kind !== "unit" || !kernel.steps.some(({ kind }) => kind === "Reduction")) return [wholeKernel(kernel)];
  const plan = planUnit(kernel);
  const bytes = [...kernel.inputs, ...kernel.outputs].reduce((sum, each) => sum + bytesOf(each), plan.valueBytes);
  if (bytes <= blockBytes || plan.phases.length < 2 || !plan.phases.every(isRowWise)) return [wholeKernel(kernel)];
  const { shape } = at(kernel.outputs, 0);
  for (const axis of axesByStride(kernel)) {
    const extent = at(shape, axis);
    const most = Math.floor(mostBlockBytes / (bytes / extent));
    const wanted = Math.floor(blockBytes / (bytes / extent));
    const lengths = [wanted < laneRows ? wanted : wanted - (wanted % laneRows), laneRows];
    const axes = most < 1 || extent < 2 ? null : cutsAlong(kernel, axis);
    if (axes === null) continue;
    for (const length of lengths) {
      if (length < 1 || length > most || length >= extent) continue;
      const ranges = Array.from({ length: Math.ceil(extent / length) }, (_, i) => ({
        start: i * length,
        stop: Math.min(extent, (i + 1) * length),
      }));
      const blocks = kernelParts(kernel, axes, ranges);
      const block = at(blocks, 0).kernel;
      if (block.kind === "unit" && lanesOf(planUnit(block)) >= Math.min(laneRows, lanesOf(plan))) return blocks;
    }
  }
  return [wholeKernel(kernel)];
}

/** Blocks of rows would read columns in short strips. */
function isRowWise(phase: Phase): boolean {
  return phase.kind === "nest" && (phase.nest.reduction === null || !accumulatesRows(phase.nest));
}

/** The fewest elements that a reduction computes side by side. */
function lanesOf({ phases }: UnitPlan): number {
  const extents = phases.flatMap((phase) =>
    phase.kind === "nest" && phase.nest.reduction !== null ? [phase.nest.loops.at(-1)?.extent ?? 1] : [],
  );
  return Math.min(...extents);
}

/** Elements along an axis of stride 0 count once. */
function bytesOf({ dtype, shape, strides }: Operand): number {
  return elementCount(shape.filter((_, axis) => strides[axis] !== 0)) * dtypes[dtype].bytes;
}
