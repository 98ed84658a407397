/** nvFuser's collective pipelines, and the statements that they are lowered to. */
import type { Fusion } from "@braid-compiler/braid";
import {
  allgatherChunks,
  allgatherMatmulChunks,
  allreduceChunks,
  matmulAllreduceChunks,
  matmulReduceScatterChunks,
  type PipelineSizes,
  reduceScatterChunks,
} from "../support/collective-pipelines.ts";

const loop = ["Allocate", "GetCurrentStream", "ForLoop", "ForLoop"];

interface Case {
  readonly name: string;
  readonly build: (devices: number) => Fusion;
  /** Top-level statements, without Deallocate. */
  readonly kinds: readonly string[];
  /** Statements of the last loop, where there is one. */
  readonly body?: readonly string[];
  readonly insertReshardingAfter?: boolean;
}

const gatheredSizes = (devices: number): PipelineSizes => ({ chunks: 8, m: 16 * devices, k: 5, n: 3 });
const allgatherMatmul = (devices: number): Fusion => allgatherMatmulChunks(devices, gatheredSizes(devices));

const streams = ["SetCurrentStream", "Synchronize"];

export const pipelines: readonly Case[] = [
  {
    name: "Allgather",
    build: allgatherChunks,
    kinds: loop,
    body: ["SetCurrentStream", "HirAliasSelect", "HirAliasSelect", "Allocate", "Communication", "Wait", ...streams],
  },
  {
    name: "Allreduce",
    build: allreduceChunks,
    kinds: loop,
    body: ["SetCurrentStream", "HirAliasSelect", "HirAliasSelect", "Allocate", "Communication", "Wait", ...streams],
  },
  {
    name: "ReduceScatter",
    build: reduceScatterChunks,
    kinds: loop,
    body: ["SetCurrentStream", "HirAliasSelect", "HirAliasSelect", "Allocate", "Communication", "Wait", ...streams],
  },
  {
    name: "AGMatmul, resharding before",
    build: allgatherMatmul,
    kinds: ["Allocate", ...loop],
    body: [
      "SetCurrentStream",
      "HirAliasSelect",
      "HirAliasSelect",
      "Allocate",
      "Communication",
      "Wait",
      "HirAliasSelect",
      "Matmul",
      ...streams,
    ],
  },
  {
    name: "AGMatmul, resharding after",
    build: allgatherMatmul,
    insertReshardingAfter: true,
    kinds: ["Allocate", ...loop],
    body: [
      "SetCurrentStream",
      "HirAliasSelect",
      "HirAliasSelect",
      "Matmul",
      "HirAliasSelect",
      "Allocate",
      "Communication",
      "Wait",
      ...streams,
    ],
  },
  {
    name: "matmul_AR",
    build: (devices) => matmulAllreduceChunks(devices, { chunks: 4, m: 12, k: 2 * devices, n: 5 }),
    kinds: ["Allocate", ...loop],
  },
  {
    name: "matmul_RS_through_bcast",
    build: (devices) => matmulReduceScatterChunks(devices, { chunks: 4, m: 8 * devices, k: 3 * devices, n: 2 }),
    kinds: ["PostOnStream", "Allocate", ...loop],
  },
];
