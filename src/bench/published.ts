/** Published figures of others, shown beside those of this run. They are of other machines and say so. */
import type { Problem } from "./primitives.ts";

export interface Published {
  readonly name: string;
  /** Per GPU. */
  readonly teraflops: number;
  /** The machine, and where the figure was published. */
  readonly source: string;
}

const source = "published: 8 x H100, NVIDIA/Fuser pull request 5259";

/** AG + matmul of m 32768, k 16384 and n 8192 per GPU, in 16 bits. */
const allgatherMatmul: readonly Published[] = [
  { name: "nvFuser, NCCL", teraflops: 560, source },
  { name: "nvFuser, p2p pipeline", teraflops: 678, source },
  { name: "TransformerEngine", teraflops: 660, source },
];

export function publishedFor({ primitive, m, n, k, dtype }: Problem): readonly Published[] {
  const same = primitive === "tp-columnwise" && m === 32_768 && n === 8192 && k === 16_384;
  return same && (dtype === "bfloat16" || dtype === "half") ? allgatherMatmul : [];
}
