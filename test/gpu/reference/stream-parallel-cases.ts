/**
 * test_multidevice_stream_parallel_type.cpp at its own sizes but for the products of 32768 x 32768 x 1024, which are
 * test/gpu/large's. Item 9 is a program's structure; here it runs.
 */
import {
  allgatherChunks,
  allreduceChunks,
  matmulAllreduceChunks,
  matmulReduceScatterChunks,
  reduceScatterChunks,
} from "../../support/collective-pipelines.ts";
import { allgather, reduceScatterP2p, reduceScatterReduceBased } from "../../support/point-to-point-fusions.ts";
import { movedExpectations } from "./moved-tensors.ts";
import { cuda, fusionCase, get, nccl, onAnyNumber, put, type ReferenceCase } from "./reference-case.ts";

const collectives = [nccl, cuda];
const rotated = [nccl, get, put].map((backend) => ({ ...backend, p2p: "rotated" as const }));
const rooted = collectives.map((backend) => ({ ...backend, p2p: "broadcast" as const }));
const after = { insertReshardingAfter: true } as const;

const product = { chunks: 4, m: 32, k: 8, n: 2 };
const cube = 64;
const columns = 2 << 20;

export const streamParallelCases: readonly ReferenceCase[] = [
  fusionCase("Allgather", collectives, allgatherChunks),
  fusionCase("Allreduce", collectives, allreduceChunks),
  fusionCase("ReduceScatter", collectives, reduceScatterChunks),
  fusionCase("matmul_AR", collectives, (devices) => matmulAllreduceChunks(devices, product)),
  fusionCase("matmul_RS_through_bcast", collectives, (devices) => matmulReduceScatterChunks(devices, product)),
  {
    name: "StreamParallelBackendTest.AllgatherP2p",
    runsOn: onAnyNumber,
    lowerings: [
      ...rooted,
      ...rotated,
      { ...nccl, p2p: "linear" },
      ...[get, put].map((backend) => ({
        ...backend,
        p2p: "rotated" as const,
        interStreamSync: true,
      })),
    ],
    source: (devices, { backend, p2p }) =>
      allgather(devices, columns, backend === "cuda" && p2p === "broadcast" ? "symmetric" : "global"),
    expectations: (devices) => movedExpectations(devices, columns, (input) => input),
    repeat: 3,
  },
  fusionCase(
    "RSMatmulTest.ReduceScatterP2p",
    rotated.map((each) => ({ ...each, ...after })),
    (devices) => reduceScatterP2p(devices, { rows: product.m / devices, k: product.k / devices, n: product.n }),
  ),
  fusionCase(
    "RSMatmulTest.ReduceScatterReduceBased",
    rooted.map((each) => ({ ...each, ...after })),
    (devices) => reduceScatterReduceBased(devices, { rows: cube / devices, k: cube / devices, n: cube }),
  ),
];
