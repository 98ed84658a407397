/** A phase is one step of a planned kernel: a loop nest or a contraction. Phases run in order. */
import type { Contraction } from "./gemm/contraction.ts";
import type { NestMemory, Nest } from "./nests/nest.ts";

/** An address in memory; `offset` in bytes. */
export interface PhaseAddress {
  readonly memory: NestMemory;
  readonly offset: number;
}

export interface ContractionPhase {
  readonly kind: "contraction";
  readonly contraction: Contraction;
  readonly a: PhaseAddress;
  readonly b: PhaseAddress;
  /** The bias or, of a grouped contraction, the ends of its groups. */
  readonly bias: PhaseAddress | null;
  readonly c: PhaseAddress;
}

export type Phase = { readonly kind: "nest"; readonly nest: Nest } | ContractionPhase;
