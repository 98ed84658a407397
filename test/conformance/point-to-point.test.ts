/**
 * nvFuser's test_multidevice_stream_parallel_type.cpp, items 7 to 11: a DID axis that becomes the Stream axis, alone, in front of a
 * matmul and behind one, on 1 to 8 devices against the oracle; and the linear Allgather of #4515.
 */
import { describe, expect, it } from "vitest";
import { type Fusion, lower } from "braid";
import type { HostProgram, Statement } from "../../src/host/nodes.ts";
import { walk } from "../../src/host/traverse.ts";
import { expectOracle } from "../support/expect-oracle.ts";
import {
  allgather,
  allgatherMatmul,
  reduceScatterP2p,
  reduceScatterReduceBased,
} from "../support/point-to-point-fusions.ts";
import { type ScheduleOptions, schedules } from "../support/point-to-point-schedules.ts";

const deviceCounts = [1, 2, 3, 4, 5, 6, 7, 8];
const loop = ["Allocate", "GetCurrentStream", "ForLoop", "ForLoop"];
const streams = ["SetCurrentStream", "Synchronize"];

const kinds = (statements: readonly Statement[]): readonly string[] => statements.map(({ kind }) => kind);
const topLevel = (host: HostProgram): readonly string[] => kinds(host.body).filter((kind) => kind !== "Deallocate");

function lastLoop(host: HostProgram): readonly Statement[] {
  const last = host.body.findLast((statement) => statement.kind === "ForLoop");
  return last?.kind === "ForLoop" ? last.body : [];
}

interface Pattern {
  readonly name: string;
  readonly build: (devices: number) => Fusion;
  readonly options?: ScheduleOptions;
  /** Top-level statements for each kind of schedule, without Deallocate. */
  readonly exchanged: readonly string[];
  readonly rooted: readonly string[];
}

const patterns: readonly Pattern[] = [
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
];

describe.each(patterns)("$name", ({ build, options = {}, exchanged, rooted }) => {
  describe.each(Object.entries(schedules))("%s", (_, schedule) => {
    it("has nvFuser's statements at top level", () => {
      for (const devices of deviceCounts) {
        const host = lower(build(devices), { ...options, ...schedule });
        expect(topLevel(host)).toEqual(schedule.p2p === "broadcast" ? rooted : exchanged);
      }
    });

    it.each(deviceCounts)("gives the oracle's result on %i devices", async (devices) => {
      // More streams than iterations too; what lies between is tested on all devices.
      for (const count of devices === 8 ? [1, 2, 3, 8] : [2, 8]) {
        await expectOracle(build(devices), { devices, streams: count, ...options, ...schedule });
      }
    });
  });
});

describe("the loop body", () => {
  const copy = ["HirAliasSelect", "Set"];
  const coalesced = ["StartCoalescing", "P2PCommunication", "P2PCommunication", "EndCoalescing", "Wait"];
  const oneSided = ["ShareMemHandles", "P2PCommunication", "P2PCommunication", "Wait"];

  it("of a gather is a branch between a copy and an exchange, before the matmul", () => {
    const body = lastLoop(lower(allgatherMatmul(8)));
    expect(kinds(body)).toEqual([
      "SetCurrentStream",
      "HirAliasSelect",
      "IfThenElse",
      "HirAliasSelect",
      "Matmul",
      ...streams,
    ]);
    const branch = body.find((statement) => statement.kind === "IfThenElse");
    expect(branch?.kind === "IfThenElse" ? [kinds(branch.then), kinds(branch.else)] : []).toEqual([copy, coalesced]);
  });

  it("of a one-sided gather waits for the send behind the matmul", () => {
    const body = lastLoop(lower(allgatherMatmul(8), { backend: "cuda" }));
    expect(kinds(body)).toEqual([
      "SetCurrentStream",
      "HirAliasSelect",
      "IfThenElse",
      "HirAliasSelect",
      "Matmul",
      "IfThenElse",
      ...streams,
    ]);
    const branches = body.flatMap((statement) => (statement.kind === "IfThenElse" ? [statement] : []));
    expect(branches.map((branch) => [kinds(branch.then), kinds(branch.else)])).toEqual([
      [copy, oneSided],
      [[], ["Wait"]],
    ]);
    expect(branches[0]?.predicate).toEqual(branches[1]?.predicate);
  });

  it.each([
    ["get", ["send", "recv"]],
    ["put", ["recv", "send"]],
  ] as const)("posts the half that signals first: %s", (protocol, order) => {
    const host = lower(allgather(4), { backend: "cuda", protocol });
    const posted = walk(host.body).flatMap((statement) =>
      statement.kind === "P2PCommunication" ? [statement.type] : [],
    );
    expect(posted).toEqual(order);
  });

  it("AllgatherInterStreamSyncNoWrap: a branch in the loop synchronizes the next stream with this one", () => {
    const host = lower(allgather(4), { backend: "cuda", interStreamSync: true });
    const branches = lastLoop(host).flatMap((statement) => (statement.kind === "IfThenElse" ? [statement.then] : []));
    expect(branches.map(kinds)).toContainEqual(["SetCurrentStream", "Synchronize", "SetCurrentStream"]);
  });
});
