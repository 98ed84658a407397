/**
 * What the recorded and linked Programs of loops over the devices are like: who copies from whom in which step, signals and their waits,
 * the chain of streams; and that no schedule of the machine, protocol or number of streams changes a bit.
 */
import { describe, expect, it } from "vitest";
import { DeviceMesh, Fusion, link, lower, MultiDeviceExecutor, type Program, record, set, type Tensor } from "braid";
import { createCpuBackend, type CpuOptions } from "braid/cpu";
import { walk } from "../../src/host/traverse.ts";
import { shapeOf } from "../../src/ir/sizes.ts";
import { randomInputs } from "../../src/oracle/random-inputs.ts";
import { at } from "../../src/support/invariant.ts";
import { createRandom } from "../../src/support/random.ts";
import {
  allgather,
  allgatherMatmul,
  reduceScatterP2p,
  reduceScatterReduceBased,
} from "../support/point-to-point-fusions.ts";
import { type ScheduleOptions, schedules } from "../support/point-to-point-schedules.ts";

interface Setting extends ScheduleOptions {
  readonly devices: number;
  readonly streams?: number;
}

const programs: Readonly<Record<string, (devices: number) => Fusion>> = {
  allgather,
  allgatherMatmul,
  reduceScatterP2p,
  reduceScatterReduceBased,
};

const oneSided: Readonly<Record<string, ScheduleOptions>> = {
  get: { communicatorBackend: "cuda", insertReshardingAfter: true },
  put: { communicatorBackend: "cuda", insertReshardingAfter: true, p2pProtocol: "put" },
};

function linked(fusion: Fusion, { devices, streams = 4, ...options }: Setting): Program {
  const { p2pProtocol = "get" } = options;
  return link(
    Array.from({ length: devices }, (_, rank) =>
      record(lower(fusion, { ...options, rank }), { rank, numberOfStreams: streams, p2pProtocol }),
    ),
  );
}

/** Copies between ranks: the iteration, who has the data and who gets it. */
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
    it.each([1, 2, 3, 5, 8])("is a permutation in every step, with D(D-1) copies, D = %i", (devices) => {
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

    it.each([1, 2, 3, 8])("signals every slot once and waits for it once, on %i streams", (streams) => {
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
    for (const pointToPoint of ["linear", "rotated"] as const) {
      const { ranks } = linked(build(6), { devices: 6, pointToPoint, insertReshardingAfter: true });
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
    const { ranks } = linked(build(5), { devices: 5, pointToPoint: "broadcast", insertReshardingAfter: true });
    for (const { commands } of ranks) {
      const roots = commands.flatMap((command) =>
        command.kind === "transfer" && command.operation.kind === "collective" ? [command.operation.root] : [],
      );
      expect(roots).toEqual([0, 1, 2, 3, 4]);
    }
  });
});

/** Two runs, so that the second finds slots and temporaries as the first has left them. */
async function runTwice(
  fusion: Fusion,
  { devices, streams = 4, ...options }: Setting,
  cpu: CpuOptions,
): Promise<readonly Buffer[]> {
  const data = fusion.data();
  const shapes = data.inputs.map((id) => {
    const tensor = at(data.tensors, id);
    return { dtype: tensor.dtype, shape: shapeOf(tensor, new Map()) };
  });
  const inputs = randomInputs(shapes, createRandom(7), "uniform");
  const executor = await MultiDeviceExecutor.create(fusion, {
    devices,
    streams,
    on: createCpuBackend(cpu),
    ...options,
  });
  await executor.run(inputs);
  const outputs = (await executor.run(inputs)) as Tensor[];
  await executor.close();
  return outputs.map(({ data: { buffer, byteOffset, byteLength } }) => Buffer.from(buffer, byteOffset, byteLength));
}

describe("the same bits", () => {
  const seeds = 50;

  it.each(Object.entries(programs))(`in ${seeds} seeded schedules of every kind of loop: %s`, async (_, build) => {
    for (const [name, options] of Object.entries(schedules)) {
      const setting = { devices: 4, streams: 3, insertReshardingAfter: true, ...options };
      const expected = await runTwice(build(4), setting, { schedule: { kind: "turns" } });
      for (let seed = 1; seed <= seeds; seed++) {
        const transfers = seed % 2 === 0 ? "eager" : "synchronous";
        const outputs = await runTwice(build(4), setting, { schedule: { kind: "seed", seed }, transfers });
        const equal = outputs.every((output, i) => output.equals(expected[i] ?? Buffer.alloc(0)));
        expect(equal, `${name}, seed ${seed}`).toBe(true);
      }
    }
  });

  it.each(Object.entries(programs))("by every schedule, protocol and number of streams: %s", async (_, build) => {
    const [expected] = await runTwice(build(8), { devices: 8, streams: 1, insertReshardingAfter: true }, {});
    for (const [name, options] of Object.entries(schedules)) {
      for (const streams of [1, 2, 3, 8, 11]) {
        for (const interStreamSynchronization of [false, true]) {
          const setting = { devices: 8, streams, insertReshardingAfter: true, interStreamSynchronization, ...options };
          for (const cpu of [{ queues: "ranks" }, { schedule: { kind: "seed", seed: 3 } }] satisfies CpuOptions[]) {
            const [output] = await runTwice(build(8), setting, cpu);
            expect(output?.equals(expected ?? Buffer.alloc(0)), `${name}, ${streams} streams`).toBe(true);
          }
        }
      }
    }
  });
});

describe("interStreamSynchronization", () => {
  it.each([1, 2, 3, 8, 11])("chains streams 0 to n-1 without wrapping around, n = %i", (streams) => {
    const options = { communicatorBackend: "cuda", interStreamSynchronization: true } as const;
    const plain = linked(allgather(8), { devices: 8, streams, communicatorBackend: "cuda" });
    const chained = linked(allgather(8), { devices: 8, streams, ...options });
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
    const host = lower(f, { interStreamSynchronization: true });
    expect(walk(host.body).map(({ kind }) => kind)).not.toContain("IfThenElse");
  });
});
