/** The transformer blocks that `braid bench block` times: the published sizes of models, and small ones for any machine. */

export interface BlockSizes {
  /** llama: rmsNorm, rotary positions, swiglu. gpt: layerNorm, biases, gelu. */
  readonly kind: "llama" | "gpt";
  /** Sequences, tokens of each, and the hidden size. */
  readonly B: number;
  readonly L: number;
  readonly H: number;
  readonly HEADS: number;
  /** Groups of query heads that share a key and a value. */
  readonly GROUPS: number;
  readonly FFN: number;
}

export const models = {
  "gpt-3-175b": { kind: "gpt", B: 1, L: 2048, H: 12_288, HEADS: 96, GROUPS: 96, FFN: 49_152 },
  "llama-2-70b": { kind: "llama", B: 1, L: 4096, H: 8192, HEADS: 64, GROUPS: 8, FFN: 28_672 },
  "llama-3-70b": { kind: "llama", B: 1, L: 8192, H: 8192, HEADS: 64, GROUPS: 8, FFN: 28_672 },
  "llama-3-8b": { kind: "llama", B: 1, L: 8192, H: 4096, HEADS: 32, GROUPS: 8, FFN: 14_336 },
  "small-gpt": { kind: "gpt", B: 1, L: 16, H: 32, HEADS: 8, GROUPS: 8, FFN: 64 },
  "small-llama": { kind: "llama", B: 1, L: 16, H: 32, HEADS: 8, GROUPS: 4, FFN: 64 },
} as const satisfies Readonly<Record<string, BlockSizes>>;

export type ModelName = keyof typeof models;

export const modelNames = [
  "gpt-3-175b",
  "llama-2-70b",
  "llama-3-70b",
  "llama-3-8b",
  "small-gpt",
  "small-llama",
] as const satisfies readonly ModelName[];
