/**
 * Gemms with communication at sizes that the oracle cannot evaluate: A [M, K] by B [K, N], laid out over the devices as
 * nvFuser's tests do. A case says which part of each matrix a rank holds, in the order of its local buffer.
 */
import type { Fusion } from "../../../src/ir/api/fusion.ts";
import type { LoweringOptions } from "../../../src/passes/options.ts";
import {
  allgatherMatmulChunks,
  matmulAllreduceChunks,
  matmulReduceScatterChunks,
} from "../../support/collective-pipelines.ts";
import { allgatherMatmul, reduceScatterP2p, reduceScatterReduceBased } from "../../support/point-to-point-fusions.ts";
import type { LargeDType, MatrixPart, Range } from "./large-matrix.ts";

export interface LargeSizes {
  readonly m: number;
  readonly k: number;
  readonly n: number;
  /** Chunks of the collective pipelines. */
  readonly chunks: number;
}

export interface LargeParts {
  readonly a: MatrixPart;
  readonly b: MatrixPart;
  readonly c: MatrixPart;
}

export interface LargeCase {
  readonly name: string;
  readonly build: (devices: number, sizes: LargeSizes, dtype: LargeDType) => Fusion;
  readonly parts: (devices: number, sizes: LargeSizes, rank: number) => LargeParts;
  /** Whether devices add what each has of K: roundings of parts and on the wire come into it. */
  readonly sharesK: boolean;
  readonly lowerings: readonly Partial<LoweringOptions>[];
}

/** What is 1 / devices of every chunk. */
function shareOfChunks(m: number, chunks: number, devices: number, rank: number): readonly Range[] {
  const count = m / (chunks * devices);
  return Array.from({ length: chunks }, (_, chunk) => ({ start: (chunk * devices + rank) * count, count }));
}

const all = (count: number): Range => ({ start: 0, count });

const share = (count: number, devices: number, rank: number): Range => ({
  start: (rank * count) / devices,
  count: count / devices,
});

/** A is sharded in rows, and C whole on every device. */
function gathered(chunks: number, { m, k, n }: LargeSizes, devices: number, rank: number): LargeParts {
  return {
    a: { rows: shareOfChunks(m, chunks, devices, rank), columns: all(k) },
    b: { rows: [all(k)], columns: all(n) },
    c: { rows: [all(m)], columns: all(n) },
  };
}

/** A and B are sharded in K, and C in rows or not. */
function reduced(rows: readonly Range[], { m, k, n }: LargeSizes, devices: number, rank: number): LargeParts {
  const own = share(k, devices, rank);
  return {
    a: { rows: [all(m)], columns: own },
    b: { rows: [own], columns: all(n) },
    c: { rows, columns: all(n) },
  };
}

const nccl = { backend: "nccl" } as const;
const cuda = { backend: "cuda" } as const;
const oneSided = [
  { ...cuda, protocol: "get" },
  { ...cuda, protocol: "put" },
] as const;

const whole = 1;

export const largeCases: readonly LargeCase[] = [
  {
    name: "AGMatmulTest.CollectiveBasedPipeline",
    build: (devices, sizes, dtype) => allgatherMatmulChunks(devices, { ...sizes, dtype }),
    parts: (devices, sizes, rank) => gathered(sizes.chunks, sizes, devices, rank),
    sharesK: false,
    lowerings: [nccl, cuda].flatMap((backend) =>
      [false, true].map((insertReshardingAfter) => ({ ...backend, insertReshardingAfter })),
    ),
  },
  {
    name: "StreamParallelBackendTest.AG_matmul_P2p",
    build: (devices, { m, k, n }, dtype) => allgatherMatmul(devices, { rows: m / devices, k, n, dtype }),
    parts: (devices, sizes, rank) => gathered(whole, sizes, devices, rank),
    sharesK: false,
    lowerings: [
      ...[nccl, cuda].map((backend) => ({ ...backend, p2p: "broadcast" as const })),
      ...[nccl, ...oneSided].map((backend) => ({ ...backend, p2p: "rotated" as const })),
    ],
  },
  {
    name: "matmul_AR",
    build: (devices, sizes, dtype) => matmulAllreduceChunks(devices, { ...sizes, dtype }),
    parts: (devices, sizes, rank) => reduced([all(sizes.m)], sizes, devices, rank),
    sharesK: true,
    lowerings: [nccl, cuda],
  },
  {
    name: "matmul_RS_through_bcast",
    build: (devices, sizes, dtype) => matmulReduceScatterChunks(devices, { ...sizes, dtype }),
    parts: (devices, sizes, rank) => reduced(shareOfChunks(sizes.m, sizes.chunks, devices, rank), sizes, devices, rank),
    sharesK: true,
    lowerings: [nccl, cuda],
  },
  {
    name: "RSMatmulTest.ReduceScatterP2p",
    build: (devices, { m, k, n }, dtype) => reduceScatterP2p(devices, { rows: m / devices, k: k / devices, n, dtype }),
    parts: (devices, sizes, rank) => reduced(shareOfChunks(sizes.m, whole, devices, rank), sizes, devices, rank),
    sharesK: true,
    lowerings: [nccl, ...oneSided].map((backend) => ({
      ...backend,
      p2p: "rotated" as const,
      insertReshardingAfter: true,
    })),
  },
  {
    name: "RSMatmulTest.ReduceScatterReduceBased",
    build: (devices, { m, k, n }, dtype) =>
      reduceScatterReduceBased(devices, { rows: m / devices, k: k / devices, n, dtype }),
    parts: (devices, sizes, rank) => reduced(shareOfChunks(sizes.m, whole, devices, rank), sizes, devices, rank),
    sharesK: true,
    lowerings: [nccl, cuda].map((backend) => ({
      ...backend,
      p2p: "broadcast" as const,
      insertReshardingAfter: true,
    })),
  },
];
