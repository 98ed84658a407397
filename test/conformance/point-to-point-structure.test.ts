/**
 * The structure of recorded and linked loops over the devices: which rank copies from which in each step, signals and
 * their waits, the chain of streams.
 */
import { describe, expect, it } from "vitest";
import { DeviceMesh, Fusion, lower, type Program, set } from "@braid-compiler/braid";
import { walk } from "../../src/host/traverse.ts";
import { at } from "../../src/support/invariant.ts";
import * as programs from "../support/point-to-point-fusions.ts";
import type { ScheduleOptions } from "../support/point-to-point-schedules.ts";
import { linked } from "../support/seeded-schedules.ts";

const oneSided: Readonly<Record<string, ScheduleOptions>> = {
  get: { backend: "cuda", insertReshardingAfter: true },
  put: { backend: "cuda", insertReshardingAfter: true, protocol: "put" },
};

/** Copies between ranks: the iteration, the source rank and the destination rank. */
function peerCopies({ ranks, buffers }: Program): { step: number; from: number; to: number }[] {
  return ranks.flatMap(({ commands, origins }) =>
    commands.flatMap((command, i) => {
      if (command.kind !== "copy") return [];
      const from = at(buffers, command.source.buffer).rank;
      const to = at(buffers, command.destination.buffer).rank;
      return from === to ? [] : [{ step: at(at(origins, i).iteration, 0), from, to }];
    }),
  );
}

describe.each(Object.entries(programs))("%s", (_, build) => {
  describe.each(Object.entries(oneSided))("rotated %s", (protocol, options) => {
    it.each([1, 3, 8])("is a permutation in every step, with D(D-1) copies, D = %i", (devices) => {
      const copies = peerCopies(linked(build(devices), { devices, ...options }));
      expect(copies).toHaveLength(devices * (devices - 1));
      for (let step = 1; step < devices; step++) {
        const inStep = copies.filter((copy) => copy.step === step);
        expect(new Set(inStep.map(({ from }) => from)).size).toBe(devices);
        expect(new Set(inStep.map(({ to }) => to)).size).toBe(devices);
      }
      const pairs = new Set(copies.map(({ from, to }) => `${from} ${to}`));
      expect(pairs.size).toBe(devices * (devices - 1));
    });

    it("copies where the protocol says", () => {
      const program = linked(build(4), { devices: 4, ...options });
      for (const { rank, commands } of program.ranks) {
        for (const command of commands) {
          if (command.kind !== "copy") continue;
          const view = protocol === "get" ? command.destination : command.source;
          expect(at(program.buffers, view.buffer).rank).toBe(rank);
        }
      }
    });

    it.each([1, 3, 8])("signals every slot once and waits for it once, on %i streams", (streams) => {
      const program = linked(build(8), { devices: 8, streams, ...options });
      const signals = program.slots.map(() => 0);
      const waits = program.slots.map(() => 0);
      for (const { rank, commands } of program.ranks) {
        for (const command of commands) {
          if (command.kind === "signal") {
            signals[command.slot] = (signals[command.slot] ?? 0) + 1;
            expect(at(program.slots, command.slot).signaller).toBe(rank);
          } else if (command.kind === "waitSignal") {
            waits[command.slot] = (waits[command.slot] ?? 0) + 1;
            expect(at(program.slots, command.slot).waiter).toBe(rank);
          }
        }
      }
      // Ready and done of each of the D(D-1) pairs.
      expect(signals).toEqual(Array.from({ length: 2 * 8 * 7 }, () => 1));
      expect(waits).toEqual(signals);
    });
  });

  it("coalesced: every rank takes part in D-1 groups of one send and one receive", () => {
    for (const p2p of ["linear", "rotated"] as const) {
      const { ranks } = linked(build(6), { devices: 6, p2p, insertReshardingAfter: true });
      for (const { commands } of ranks) {
        const groups = commands.flatMap((command) =>
          command.kind === "transfer" && command.operation.kind === "group" ? [command.operation.ops] : [],
        );
        expect(groups.map((ops) => ops.map(({ type }) => type))).toEqual(
          Array.from({ length: 5 }, () => ["recv", "send"]),
        );
      }
    }
  });

  it("broadcast: one collective per device, with every device as the root in turn", () => {
    const { ranks } = linked(build(5), { devices: 5, p2p: "broadcast", insertReshardingAfter: true });
    for (const { commands } of ranks) {
      const roots = commands.flatMap((command) =>
        command.kind === "transfer" && command.operation.kind === "collective" ? [command.operation.root] : [],
      );
      expect(roots).toEqual([0, 1, 2, 3, 4]);
    }
  });
});

describe("interStreamSync", () => {
  it.each([1, 2, 3, 8, 11])("chains streams 0 to n-1 without wrapping around, n = %i", (streams) => {
    const options = { backend: "cuda", interStreamSync: true } as const;
    const plain = linked(programs.allgather(8), { devices: 8, streams, backend: "cuda" });
    const chained = linked(programs.allgather(8), { devices: 8, streams, ...options });
    const waits = ({ ranks }: Program): readonly (readonly [string, string])[] => {
      const { commands, streams: infos } = at(ranks, 0);
      const recorded = new Map(
        commands.flatMap((command) => (command.kind === "recordEvent" ? [[command.event, command.stream]] : [])),
      );
      return commands.flatMap((command) => {
        if (command.kind !== "waitEvent") return [];
        const from = at(infos, recorded.get(command.event) ?? 0).name;
        const to = at(infos, command.stream).name;
        return from.startsWith("worker") && to.startsWith("worker") ? [[from, to] as const] : [];
      });
    };
    expect(waits(plain)).toEqual([]);
    // Eight iterations: the last one can reach stream 8.
    expect(waits(chained)).toEqual(
      Array.from({ length: Math.min(streams - 1, 8) }, (_, i) => [`worker ${i}`, `worker ${i + 1}`]),
    );
  });

  it("leaves collectives per chunk alone", () => {
    const f = new Fusion();
    const x = f.input([3, 4]);
    const y = set(x);
    f.output(y);
    for (const tensor of [x, y]) tensor.setDeviceMesh(DeviceMesh.range(4));
    x.axis(1).parallelize("DIDx");
    y.axis(0).parallelize("Stream");
    const host = lower(f, { interStreamSync: true });
    expect(walk(host.body).map(({ kind }) => kind)).not.toContain("IfThenElse");
  });
});
