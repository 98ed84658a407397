/**
 * The programs of nvFuser's tests with a DID axis that becomes the Stream axis, the same in runs, and the statements that
 * they are lowered to.
 */
import type { Fusion } from "@braid-compiler/braid";
import {
  allgather,
  allgatherMatmul,
  exchangeRuns,
  reduceScatterP2p,
  reduceScatterReduceBased,
  reduceScatterRuns,
} from "../support/point-to-point-fusions.ts";
import type { ScheduleOptions } from "../support/point-to-point-schedules.ts";

const loop = ["Allocate", "GetCurrentStream", "ForLoop", "ForLoop"];

interface Pattern {
  readonly name: string;
  readonly build: (devices: number) => Fusion;
  readonly options?: ScheduleOptions;
  /** Top-level statements for each kind of schedule, without Deallocate. */
  readonly exchanged: readonly string[];
  readonly rooted: readonly string[];
}

export const patterns: readonly Pattern[] = [
  { name: "AllgatherP2p", build: allgather, exchanged: loop, rooted: loop },
  { name: "AG_matmul_P2p", build: allgatherMatmul, exchanged: ["Allocate", ...loop], rooted: ["Allocate", ...loop] },
  {
    name: "AG_matmul_P2p, resharding after",
    build: allgatherMatmul,
    options: { insertReshardingAfter: true },
    exchanged: ["Matmul", ...loop],
    rooted: ["Matmul", ...loop],
  },
  {
    name: "ReduceScatterP2p",
    build: reduceScatterP2p,
    options: { insertReshardingAfter: true },
    exchanged: ["Allocate", ...loop, "Reduction"],
    rooted: ["Allocate", ...loop, "Reduction"],
  },
  {
    name: "ReduceScatterReduceBased",
    build: reduceScatterReduceBased,
    options: { insertReshardingAfter: true },
    exchanged: ["Allocate", ...loop, "Reduction"],
    rooted: ["Allocate", ...loop],
  },
  {
    name: "reduce-scatter in runs",
    build: reduceScatterRuns,
    exchanged: ["Allocate", ...loop, "Reduction"],
    rooted: ["Allocate", ...loop],
  },
  { name: "exchange in runs", build: exchangeRuns, exchanged: loop, rooted: loop },
];
