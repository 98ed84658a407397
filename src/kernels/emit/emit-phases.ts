/** Phases as one function: the text of every nest or a call of its WebAssembly form, with calls of matrix products between them. */
import { jsLibrary } from "../../numerics/scalar/emit-js.ts";
import { compileFunction } from "../../support/compile-function.ts";
import type { WasmMemory } from "../../support/webassembly.ts";
import { memoryViews } from "./element-text.ts";
import { emitNest, memoryText, type NestAddresses } from "./emit-nest.ts";
import type { Gemm } from "../gemm/gemm.ts";
import type { Contraction } from "../gemm/contraction.ts";
import type { Address, ContractionPhase, Phase } from "../phase.ts";
import { type CompiledNest, compileLaneNests, type SimdUse, usesLanes } from "../simd/compile-lane-nests.ts";

/** Absolute byte addresses of the kernel's inputs and outputs. */
export type PreparedKernel = (inputs: readonly number[], outputs: readonly number[]) => void;

export interface PhaseTarget extends NestAddresses {
  readonly memory: WasmMemory;
  readonly simd: SimdUse;
  readonly prepareGemm: (contraction: Contraction) => Gemm;
}

export function compilePhases(phases: readonly Phase[], target: PhaseTarget): PreparedKernel {
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
