/** Phases as one function: the text of every nest, with calls of matrix products between them. */
import { jsLibrary } from "../numerics/emit-js.ts";
import { compileFunction } from "../support/compile-function.ts";
import { memoryViews } from "./element-text.ts";
import { emitNest, memoryText, type NestAddresses } from "./emit-nest.ts";
import type { Gemm } from "./gemm.ts";
import type { Contraction } from "./contraction.ts";
import type { Address, ContractionPhase, Phase } from "./phase.ts";

/** Absolute byte addresses of the kernel's inputs and outputs. */
export type PreparedKernel = (inputs: readonly number[], outputs: readonly number[]) => void;

export interface PhaseTarget extends NestAddresses {
  readonly buffer: ArrayBufferLike;
  readonly prepareGemm: (contraction: Contraction) => Gemm;
}

export function compilePhases(phases: readonly Phase[], target: PhaseTarget): PreparedKernel {
  const gemms: Record<string, Gemm> = {};
  const lines = phases.flatMap((phase, i) => {
    if (phase.kind === "nest") return emitNest(phase.nest, target);
    gemms[gemmName(i)] = target.prepareGemm(phase.contraction);
    return [callText(gemmName(i), phase, target)];
  });
  return compileFunction<PreparedKernel>(["inputs", "outputs"], lines.join("\n"), {
    ...jsLibrary,
    ...memoryViews(target.buffer),
    ...gemms,
  });
}

function gemmName(phase: number): string {
  return `$gemm${phase}`;
}

function callText(name: string, { a, b, bias, c }: ContractionPhase, { scratch }: NestAddresses): string {
  const text = (address: Address): string => addressText(address, scratch);
  return `${name}(${[text(a), text(b), bias === null ? "0" : text(bias), text(c)].join(", ")});`;
}

function addressText({ memory, offset }: Address, scratch: number): string {
  return memory.kind === "scratch" ? `${scratch + memory.offset + offset}` : `${memoryText(memory)} + ${offset}`;
}
