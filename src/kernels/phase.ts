/** A phase is one step of a planned kernel: a loop nest or a contraction. Phases run in order. */
import type { Contraction } from "./gemm/contraction.ts";
import type { Memory, Nest } from "./nests/nest.ts";

/** An address in memory; `offset` in bytes. */
export interface Address {
  readonly memory: Memory;
  readonly offset: number;
}

export interface ContractionPhase {
  readonly kind: "contraction";
  readonly contraction: Contraction;
  readonly a: Address;
  readonly b: Address;
  readonly bias: Address | null;
  readonly c: Address;
}

export type Phase = { readonly kind: "nest"; readonly nest: Nest } | ContractionPhase;
