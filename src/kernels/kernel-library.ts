/**
 * Runs kernels over one WebAssembly.Memory. A kernel's loops run as generated WebAssembly SIMD or, where only
 * JavaScript has an operation, as generated JavaScript. The memory must not grow while the library is in use, because
 * that would detach its views.
 */
import type { Kernel } from "../commands/kernel.ts";
import { invariant } from "../support/invariant.ts";
import type { WasmMemory } from "../support/webassembly.ts";
import type { Contraction } from "./gemm/contraction.ts";
import { type Gemm, instantiateGemm, prepareGemm } from "./gemm/gemm.ts";
import { planKernel } from "./kernel-plan.ts";
import { type CompiledNest, compileLaneNests, type SimdUse, usesLanes } from "./simd/compile-lane-nests.ts";
import { scratchAlignment, type UnitPlan } from "./unit-plan.ts";
import { jsLibrary } from "../numerics/scalar/emit-js.ts";
import { compileFunction } from "../support/compile-function.ts";
import { memoryViews } from "./emit/element-text.ts";
import { emitNest, memoryText, type NestAddresses } from "./emit/emit-nest.ts";
import type { Address, ContractionPhase, Phase } from "./phase.ts";

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

/** The bytes of scratch that a kernel needs. */
export function scratchBytes(kernel: Kernel): number {
  return totalBytes(planKernel(kernel));
}

export function createKernelLibrary({
  memory,
  scratch,
  simd = "auto",
  gemms = () => null,
}: KernelLibraryOptions): KernelLibrary {
  invariant(scratch.address % scratchAlignment === 0, "the scratch is aligned", scratch);
  const wasm = instantiateGemm(memory);
  return {
    prepare(kernel) {
      const plan = planKernel(kernel);
      const needed = totalBytes(plan);
      invariant(needed <= scratch.bytes, "the scratch is large enough", { needed, kind: kernel.kind });
      const work = scratch.address + plan.valueBytes;
      return compilePhases(plan.phases, {
        memory,
        simd,
        scratch: scratch.address,
        accumulators: work,
        prepareGemm: (contraction) => gemms(contraction) ?? prepareGemm(contraction, wasm, work),
      });
    },
  };
}

function totalBytes({ valueBytes, workBytes }: UnitPlan): number {
  return valueBytes + workBytes;
}

/** Takes absolute byte addresses of the kernel's inputs and outputs. */
type PreparedKernel = (inputs: readonly number[], outputs: readonly number[]) => void;

interface PhaseTarget extends NestAddresses {
  readonly memory: WasmMemory;
  readonly simd: SimdUse;
  readonly prepareGemm: (contraction: Contraction) => Gemm;
}

function compilePhases(phases: readonly Phase[], target: PhaseTarget): PreparedKernel {
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
  return compileFunction<PreparedKernel>(["inputs", "outputs"], lines.join("\n"), {
    ...jsLibrary,
    ...memoryViews(target.memory.buffer),
    ...functions,
  });
}

function callText(name: string, { a, b, bias, c }: ContractionPhase, { scratch }: NestAddresses): string {
  const text = (address: Address): string => addressText(address, scratch);
  return `${name}(${[text(a), text(b), bias === null ? "0" : text(bias), text(c)].join(", ")});`;
}

function addressText({ memory, offset }: Address, scratch: number): string {
  return memory.kind === "scratch" ? `${scratch + memory.offset + offset}` : `${memoryText(memory)} + ${offset}`;
}
