/** Communications: the streams and events around them, each rank's sides for every type, and roots outside a mesh. */
import { DeviceMesh, HostProgramBuilder } from "@braid-compiler/braid";
import { describe, expect, it } from "vitest";
import type { HostProgram } from "../../src/host/nodes.ts";
import type { CommunicationType } from "../../src/host/collectives.ts";
import type { AxisSpec, TensorOptions } from "../../src/host/build/options.ts";
import { record } from "../../src/compile/record.ts";
import { dataKinds, listing } from "./listing.ts";

interface Sides {
  readonly type: CommunicationType;
  readonly team?: readonly number[];
  readonly root?: number;
  readonly input: readonly [readonly AxisSpec[], TensorOptions];
  readonly output: readonly [readonly AxisSpec[], TensorOptions];
}

function communicate({ type, team, root, input, output }: Sides): HostProgram {
  const h = new HostProgramBuilder();
  const x = h.input(...input);
  const y = h.tensor(...output);
  h.output(y);
  h.wait(
    h.communication(type, {
      input: x,
      output: y,
      ...(team === undefined ? {} : { team }),
      ...(root === undefined ? {} : { root }),
    }),
  );
  return h.build();
}

/** The transfer of every rank in `ranks`, without the streams. */
function transfers(sides: Sides, ranks: readonly number[]): string[] {
  const program = communicate(sides);
  return ranks.map((rank) =>
    listing(record(program, { rank }), { kinds: dataKinds })
      .trim()
      .replace(/^[^:]*: /u, ""),
  );
}

const mesh = DeviceMesh.range(3);
const sharded = (axis: number): TensorOptions => ({
  mesh,
  parallel: Array.from({ length: axis + 1 }, (_, i) => (i === axis ? "DIDx" : "Serial")),
});

describe("a communication", () => {
  it("runs on the communicator's stream, after the current stream and before the Wait", () => {
    const program = communicate({ type: "Allgather", input: [[3, 4], sharded(0)], output: [[3, 4], { mesh }] });
    expect(listing(record(program, { rank: 1 }))).toMatchInlineSnapshot(`
      "
      caller: record e0
      NCCL (0 1 2): wait e0
      NCCL (0 1 2): Allgather T0 float [4] -> T1 float [3, 4]
      NCCL (0 1 2): record e1
      caller: wait e1
      "
    `);
  });

  it("has one stream per team and backend", () => {
    const h = new HostProgramBuilder();
    const x = h.input([4], { mesh });
    const options = { input: x, output: x, root: 0 };
    h.communication("Broadcast", { ...options, team: [0, 1] });
    h.communication("Broadcast", { ...options, team: [0, 1] });
    h.communication("Broadcast", { ...options, team: [1, 0] });
    h.communication("Broadcast", { ...options, team: [0, 1], backend: "ucc" });
    const { streams } = record(h.build(), { rank: 1 });
    expect(streams.map(({ name, role }) => `${role} ${name}`)).toEqual([
      "caller caller",
      "communicator NCCL (0 1)",
      "communicator NCCL (1 0)",
      "communicator UCC (0 1)",
    ]);
  });

  it("is nothing on ranks outside its team, and so is the Wait", () => {
    const program = communicate({
      type: "Broadcast",
      team: [0, 2],
      root: 0,
      input: [[4], { mesh }],
      output: [[4], { mesh }],
    });
    expect(listing(record(program, { rank: 1 })).trim()).toBe("");
  });

  it("waits for the latest post", () => {
    const h = new HostProgramBuilder();
    const x = h.input([4], { mesh });
    const posted = h.communication("Allreduce", { input: x, output: x });
    h.post(posted);
    h.setCurrentStream(h.stream(0));
    h.wait(posted);
    expect(listing(record(h.build(), { rank: 0 }), { kinds: ["recordEvent", "waitEvent"] })).toMatchInlineSnapshot(`
      "
      caller: record e0
      NCCL (0 1 2): wait e0
      NCCL (0 1 2): record e1
      caller: record e2
      NCCL (0 1 2): wait e2
      NCCL (0 1 2): record e3
      worker 0: wait e3
      "
    `);
  });

  it("takes its root from the loop's index", () => {
    const h = new HostProgramBuilder();
    const [x, y] = [h.input([4], { mesh }), h.tensor([3, 4], { mesh })];
    h.output(y);
    h.forLoop(3, (i) => {
      h.wait(h.communication("Broadcast", { input: x, output: h.select(y, 0, i), root: i }));
    });
    expect(listing(record(h.build(), { rank: 1 }), { kinds: dataKinds })).toMatchInlineSnapshot(`
      "
      NCCL (0 1 2): Broadcast root 0 nothing -> T1 float [4]
      NCCL (0 1 2): Broadcast root 1 T0 float [4] -> T1+16 float [4]
      NCCL (0 1 2): Broadcast root 2 nothing -> T1+32 float [4]
      "
    `);
  });
});

describe("views", () => {
  it("Allgather: the axis that the input shards comes first", () => {
    const inner = { type: "Allgather", input: [[2, 3, 4], sharded(1)], output: [[2, 3, 4], { mesh }] } as const;
    expect(transfers(inner, [1])).toEqual(["Allgather T0 float [2, 4] -> T1 float [3, 2, 4] strides [4, 12, 1]"]);
  });

  it("Allgather along DIDy of a two-dimensional mesh leaves the DIDx axis alone", () => {
    const grid = new DeviceMesh([
      [0, 1],
      [2, 3],
    ]);
    const rows = {
      type: "Allgather",
      team: [1, 3],
      input: [[2, 2, 4], { mesh: grid, parallel: ["DIDx", "DIDy"] }],
      output: [[2, 2, 4], { mesh: grid, parallel: ["DIDx"] }],
    } as const;
    expect(transfers(rows, [3])).toEqual(["Allgather T0 float [4] -> T1 float [2, 4]"]);
  });

  it("Gather: only the root has an output", () => {
    const gather = { type: "Gather", root: 1, input: [[3, 4], sharded(0)], output: [[3, 4], { mesh }] } as const;
    expect(transfers(gather, [0, 1])).toEqual([
      "Gather root 1 T0 float [4] -> nothing",
      "Gather root 1 T0 float [4] -> T1 float [3, 4]",
    ]);
  });

  it("Scatter: only the root has an input", () => {
    const scatter = { type: "Scatter", root: 2, input: [[4, 3], { mesh }], output: [[4, 3], sharded(1)] } as const;
    expect(transfers(scatter, [0, 2])).toEqual([
      "Scatter root 2 nothing -> T1 float [4]",
      "Scatter root 2 T0 float [3, 4] strides [1, 3] -> T1 float [4]",
    ]);
  });

  it("Reduce and Allreduce: the reduced axis is dropped, whether the output keeps it or not", () => {
    const reduced: Sides["input"] = [[3, 4], sharded(0)];
    expect(transfers({ type: "Allreduce", input: reduced, output: [[{ reduced: 3 }, 4], { mesh }] }, [0])).toEqual([
      "Allreduce sum T0 float [4] -> T1 float [4]",
    ]);
    expect(transfers({ type: "Reduce", root: 0, input: reduced, output: [[4], { mesh }] }, [0, 1])).toEqual([
      "Reduce sum root 0 T0 float [4] -> T1 float [4]",
      "Reduce sum root 0 T0 float [4] -> nothing",
    ]);
  });

  it("ReduceScatter: the axis that the output shards comes first, whether the output keeps the reduced axis or not", () => {
    const input: Sides["input"] = [[2, 3, 3, 4], sharded(1)];
    const parts = "ReduceScatter sum T0 float [3, 2, 4] strides [4, 12, 1] -> T1 float [2, 4]";
    expect(transfers({ type: "ReduceScatter", input, output: [[2, { reduced: 3 }, 3, 4], sharded(2)] }, [2])).toEqual([
      parts,
    ]);
    expect(transfers({ type: "ReduceScatter", input, output: [[2, 3, 4], sharded(1)] }, [2])).toEqual([parts]);
  });

  it("ReduceScatter along DIDx of a two-dimensional mesh, whether the output keeps the reduced axis or not", () => {
    const grid = new DeviceMesh([
      [0, 1],
      [2, 3],
    ]);
    const input: Sides["input"] = [[2, 2, 2, 4], { mesh: grid, parallel: ["DIDy", "DIDx"] }];
    const parts = "ReduceScatter sum T0 float [2, 4] -> T1 float [4]";
    const kept: Sides["output"] = [[2, { reduced: 2 }, 2, 4], { mesh: grid, parallel: ["DIDy", "Serial", "DIDx"] }];
    const dropped: Sides["output"] = [[2, 2, 4], { mesh: grid, parallel: ["DIDy", "DIDx"] }];
    for (const output of [kept, dropped]) {
      expect(transfers({ type: "ReduceScatter", team: [2, 3], input, output }, [3])).toEqual([parts]);
    }
  });

  it("AllToAll: each side leads with the axis that the other shards", () => {
    const exchange = { type: "AllToAll", input: [[3, 4, 3], sharded(0)], output: [[3, 4, 3], sharded(2)] } as const;
    expect(transfers(exchange, [1])).toEqual(["AllToAll T0 float [3, 4] strides [1, 3] -> T1 float [3, 4]"]);
  });

  it("the outermost axis counts the parts where no axis is sharded", () => {
    const bare = { type: "Allgather", input: [[4], { mesh }], output: [[3, 4], { mesh }] } as const;
    expect(transfers(bare, [0])).toEqual(["Allgather T0 float [4] -> T1 float [3, 4]"]);
  });

  it("a team of one", () => {
    const alone = DeviceMesh.range(1);
    const gather = {
      type: "Allgather",
      input: [[1, 4], { mesh: alone, parallel: ["DIDx"] }],
      output: [[1, 4], { mesh: alone }],
    } as const;
    expect(transfers(gather, [0])).toEqual(["Allgather T0 float [4] -> T1 float [1, 4]"]);
  });
});

describe("a root outside the mesh", () => {
  const senders = new DeviceMesh([0, 1]);
  const receiver = new DeviceMesh([2]);

  it("gathers without contributing", () => {
    const gather: Sides = {
      type: "Gather",
      team: [0, 1, 2],
      root: 2,
      input: [[2, 4], { mesh: senders, parallel: ["DIDx"] }],
      output: [[2, 4], { mesh: receiver }],
    };
    expect(transfers(gather, [0, 2])).toEqual([
      "Gather root 2 T0 float [4] -> nothing",
      "Gather root 2 nothing -> T1 float [2, 4]",
    ]);
  });

  it("reduces without contributing", () => {
    const reduce: Sides = {
      type: "Reduce",
      team: [0, 1, 2],
      root: 2,
      input: [[2, 4], { mesh: senders, parallel: ["DIDx"] }],
      output: [[4], { mesh: receiver }],
    };
    expect(transfers(reduce, [1, 2])).toEqual([
      "Reduce sum root 2 T0 float [4] -> nothing",
      "Reduce sum root 2 nothing -> T1 float [4]",
    ]);
  });

  it("scatters without receiving: one part per receiver", () => {
    const scatter: Sides = {
      type: "Scatter",
      team: [0, 1, 2],
      root: 2,
      input: [[2, 4], { mesh: receiver }],
      output: [[2, 4], { mesh: senders, parallel: ["DIDx"] }],
    };
    expect(transfers(scatter, [0, 2])).toEqual([
      "Scatter root 2 nothing -> T1 float [4]",
      "Scatter root 2 T0 float [2, 4] -> nothing",
    ]);
  });

  it("broadcasts without receiving", () => {
    const cast: Sides = {
      type: "Broadcast",
      team: [0, 1, 2],
      root: 2,
      input: [[4], { mesh: receiver }],
      output: [[4], { mesh: senders }],
    };
    expect(transfers(cast, [0, 2])).toEqual([
      "Broadcast root 2 nothing -> T1 float [4]",
      "Broadcast root 2 T0 float [4] -> nothing",
    ]);
  });

  it("may slice what lies on other ranks, as long as only the communication names the slice", () => {
    const h = new HostProgramBuilder();
    const x = h.input([3, 2, 4], { mesh: senders, parallel: ["Serial", "DIDx"] });
    const y = h.tensor([3, 2, 4], { mesh: receiver });
    h.output(y);
    h.forLoop(3, (i) => {
      const options = { input: h.select(x, 0, i), output: h.select(y, 0, i), team: [0, 1, 2], root: 2 };
      h.wait(h.communication("Gather", options));
    });
    const program = h.build();
    expect(listing(record(program, { rank: 2 }), { kinds: dataKinds })).toMatchInlineSnapshot(`
      "
      NCCL (0 1 2): Gather root 2 nothing -> T1 float [2, 4]
      NCCL (0 1 2): Gather root 2 nothing -> T1+32 float [2, 4]
      NCCL (0 1 2): Gather root 2 nothing -> T1+64 float [2, 4]
      "
    `);
    expect(listing(record(program, { rank: 1 }), { kinds: dataKinds })).toMatchInlineSnapshot(`
      "
      NCCL (0 1 2): Gather root 2 T0 float [4] -> nothing
      NCCL (0 1 2): Gather root 2 T0+16 float [4] -> nothing
      NCCL (0 1 2): Gather root 2 T0+32 float [4] -> nothing
      "
    `);
  });
});

describe("SendRecv", () => {
  it("is a group of one send, and of one receive", () => {
    const [from, to] = [new DeviceMesh([1]), new DeviceMesh([0])];
    const pair: Sides = {
      type: "SendRecv",
      team: [1, 0],
      root: 0,
      input: [[4], { mesh: from }],
      output: [[4], { mesh: to }],
    };
    expect(transfers(pair, [0, 1])).toEqual(["recv T1 float [4] from 1", "send T0 float [4] to 0"]);
  });

  it("copies on a device that sends to itself", () => {
    const own = new DeviceMesh([1]);
    const program = communicate({
      type: "SendRecv",
      team: [1],
      root: 0,
      input: [[4], { mesh: own }],
      output: [[4], { mesh: own }],
    });
    expect(listing(record(program, { rank: 1 }))).toMatchInlineSnapshot(`
      "
      caller: record e0
      NCCL (1): wait e0
      NCCL (1): copy T0 float [4] -> T1 float [4]
      NCCL (1): record e1
      caller: wait e1
      "
    `);
  });
});
