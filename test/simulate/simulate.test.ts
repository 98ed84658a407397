/** Simulated times of command lists, compared with times added up by hand. */
import { describe, expect, it } from "vitest";
import { DeviceMesh, Fusion, link, lower, matmul, record, sum } from "@braid-compiler/braid";
import { createCalendar } from "../../src/simulate/occupancy.ts";
import { loadFactor, marginOf, gemmTime, interpolatedTime } from "../../src/simulate/interpolate.ts";
import { applySchedule } from "../../src/schedule/schedule.ts";
import { simulate } from "../../src/simulate/simulate.ts";
import { buildLists } from "../machine/list-builder.ts";
import { roundProfile } from "./profile.ts";

const { costs } = roundProfile;
const graph = { graph: true };
/** Microseconds of a simulated run without its fixed cost. */
function microseconds(lists: Parameters<typeof buildLists>, options = graph, profile = roundProfile): number {
  return simulate(link(buildLists(...lists)), profile, options).milliseconds * 1000 - profile.costs.run;
}

/** An addition of 100 floats reads and writes 1,200 bytes: 12 us. */
const added = 12;

describe("one rank", () => {
  it("runs the commands of a stream one after the other", () => {
    const time = microseconds([
      1,
      (list) => {
        const [a, b, c] = [list.input([100]), list.input([100]), list.output([100])];
        list.binary(0, "add", a, b, c);
        list.copy(0, a, list.output([100]));
      },
    ]);
    // 400 bytes: 1.8 us.
    expect(time).toBeCloseTo(added + 1.8);
  });

  it("gives the device to one kernel at a time, whatever their streams", () => {
    const time = microseconds([
      1,
      (list) => {
        const worker = list.stream("worker");
        const [a, b] = [list.input([100]), list.input([100])];
        list.binary(0, "add", a, b, list.output([100]));
        list.binary(worker, "add", a, b, list.output([100]));
      },
    ]);
    expect(time).toBeCloseTo(2 * added);
  });

  it("lets the latency of a kernel pass while another stream's runs", () => {
    const profile = { ...roundProfile, costs: { ...costs, launch: 4 } };
    const on = (second: "caller" | "worker"): number =>
      microseconds(
        [
          1,
          (list) => {
            const worker = list.stream("worker");
            const [a, b] = [list.input([100]), list.input([100])];
            list.binary(0, "add", a, b, list.output([100]));
            list.binary(second === "caller" ? 0 : worker, "add", a, b, list.output([100]));
          },
        ],
        graph,
        profile,
      );
    expect(on("caller")).toBeCloseTo(2 * added);
    expect(on("worker")).toBeCloseTo(2 * added - 4);
  });

  it("takes an event to follow another stream", () => {
    const time = microseconds([
      1,
      (list) => {
        const worker = list.stream("worker");
        const [a, b, c] = [list.input([100]), list.input([100]), list.temporary([100])];
        list.alloc(0, c);
        list.binary(0, "add", a, b, c);
        list.synchronize(worker, 0);
        list.binary(worker, "add", c, c, list.output([100]));
      },
    ]);
    // The second addition reads c twice: 800 bytes are read once each operand, and 400 written.
    expect(time).toBeCloseTo(2 * added + costs.event);
  });

  it("starts a kernel later after another engine's work, while another stream's may run", () => {
    const profile = { ...roundProfile, costs: { ...costs, join: 3 } };
    const behind = (first: "copy" | "kernel"): number =>
      microseconds(
        [
          1,
          (list) => {
            const lane = list.stream("lane");
            const [a, b, c] = [list.input([100]), list.input([100]), list.output([100])];
            if (first === "copy") list.copy(lane, a, c);
            else list.binary(lane, "add", a, b, c);
            list.binary(0, "add", a, b, list.output([100]));
            list.synchronize(0, lane);
            list.binary(0, "add", c, b, list.output([100]));
          },
        ],
        graph,
        profile,
      );
    // The copy has long ended when the first addition has.
    expect(behind("copy")).toBeCloseTo(2 * added + 3);
    expect(behind("kernel")).toBeCloseTo(3 * added + costs.event);
  });

  it("waits for the host, which issues one command after the other, unless the run is a graph", () => {
    const copies: Parameters<typeof buildLists> = [
      1,
      (list) => {
        const [a, b] = [list.input([100]), list.output([100])];
        for (let i = 0; i < 4; i++) list.copy(0, a, b);
      },
    ];
    expect(microseconds(copies)).toBeCloseTo(4 * 1.8);
    expect(microseconds(copies, { graph: false })).toBeCloseTo(3 * costs.issue + 1.8);
  });
});

it("takes longer for GEMMs of a run that has many", () => {
  // Each takes 500 us alone; 4 in a run are 2,000 us of load.
  const products = roundProfile.products.map((grid) => ({ ...grid, teraflops: [0.008192 / 500] }));
  const time = (count: number): number => {
    const f = new Fusion();
    const [a, b] = [f.input([16, 16], "float"), f.input([16, 16], "float")];
    const results = Array.from({ length: count }, () => matmul(a, b));
    for (const tensor of [a, b, ...results]) tensor.setDeviceMesh(DeviceMesh.range(1));
    for (const result of results) f.output(result);
    const program = link([record(lower(f, { rank: 0 }), { rank: 0, sizes: new Map(), streams: 1 })]);
    return simulate(program, { ...roundProfile, products }, graph).milliseconds * 1000 - costs.run;
  };
  expect(time(1)).toBeCloseTo(500);
  expect(time(4)).toBeCloseTo(4 * 500 * 1.25);
});

describe("several ranks", () => {
  it("starts a collective when the last participant has arrived", () => {
    const time = microseconds([
      2,
      (list, rank) => {
        const worker = list.stream("NCCL", "communicator");
        const [a, all] = [list.input([2]), list.output([2, 2])];
        if (rank === 1) list.binary(0, "add", list.input([100]), list.input([100]), list.output([100]));
        list.synchronize(worker, 0);
        list.collective(worker, "Allgather", { team: [0, 1], input: a, output: all });
      },
    ]);
    expect(time).toBeCloseTo(added + costs.event + 20);
  });

  it("lets a transfer begin when the GEMM that runs has ended, before one that waits", () => {
    const f = new Fusion();
    const [a, b] = [f.input([3, 2, 4, 16], "float"), f.input([1, 2, 16, 16], "float")];
    const partial = matmul(a, b);
    const c = sum(partial, [1]);
    f.output(c);
    for (const tensor of [a, b, partial, c]) tensor.setDeviceMesh(DeviceMesh.range(2));
    for (const tensor of [a, b, partial]) tensor.axis(1).parallelize("DIDx");
    for (const tensor of [partial, c]) tensor.axis(0).parallelize("Stream");
    const options = { insertReshardingAfter: true };
    const lists = [0, 1].map((rank) => record(lower(f, { rank, ...options }), { rank, sizes: new Map(), streams: 3 }));
    const program = link(lists);
    // A product takes 30 us, reducing 8.
    const profile = {
      ...roundProfile,
      products: roundProfile.products.map((grid) => ({ ...grid, teraflops: [0.008192 / 30] })),
      transfers: [
        { type: "Allreduce", ranks: 2, timings: [0, 1e6].map((bytes) => ({ bytes, microseconds: 8 })) },
      ] as const,
    };
    const { trace } = simulate(program, profile, graph);
    const startsOf = (kind: string) =>
      trace
        .filter(({ rank, command }) => rank === 0 && program.ranks[0]?.commands[command]?.kind === kind)
        .map(({ start }) => Math.floor(start * 1000));
    // The first reduction could begin at 30; beside it, the third product loses 8.
    expect(startsOf("launch")).toEqual([0, 30, 60]);
    expect(startsOf("transfer")).toEqual([60, 98, 106]);
  });

  it.each([
    // The first sum has no room beside the second product, and begins before the third, which loses 8 beside it.
    ["holds a kernel in peers' memory up while a product leaves no room", {}, 0.2, [0, 30, 60], [60, 98, 106]],
    // Each but the first product takes 33.
    ["lets it begin beside a product that does", { smMargin: 8 }, 0, [0, 30, 63], [30.5, 63.5, 96.5]],
    // They take nothing of each other.
    ["lets it begin beside a product that does by itself", {}, 0.8, [0, 30, 60], [30.5, 60.5, 90.5]],
  ] as const)("%s", (_, margin, room, products, sums) => {
    const f = new Fusion();
    const [a, b] = [f.input([3, 2, 4, 16], "float"), f.input([2, 16, 16], "float")];
    const partial = matmul(a, b);
    const c = sum(partial, [1]);
    f.output(c);
    for (const tensor of [a, b, partial, c]) tensor.setDeviceMesh(DeviceMesh.range(2));
    for (const [tensor, axis] of [
      [a, 1],
      [b, 0],
      [partial, 1],
    ] as const)
      tensor.axis(axis).parallelize("DIDx");
    for (const tensor of [partial, c]) tensor.axis(0).parallelize("Stream");
    const recorded = [0, 1].map((rank) =>
      record(lower(f, { rank, backend: "cuda" }), { rank, sizes: new Map(), streams: 3 }),
    );
    const program = applySchedule(link(recorded), { computeStreams: 1, ...margin });
    const profile = {
      ...roundProfile,
      products: roundProfile.products.map((grid) => ({ ...grid, teraflops: [0.008192 / 30] })),
      reductionsInPeers: [0, 1e6].map((bytes) => ({ bytes, microseconds: 8 })),
      margins: { m: [4], n: [16], k: [16], factors: [1.1], room: [room] },
    };
    const starts = simulate(program, profile, graph).trace.flatMap(({ rank, stream, start }) =>
      rank === 0 ? [{ stream, start: Math.round(start * 1e4) / 10 }] : [],
    );
    const on = (wanted: number): readonly number[] =>
      starts.flatMap(({ stream, start }) => (stream === wanted ? [start] : []));
    expect([on(0), on(1)]).toEqual([products, sums]);
  });

  it("makes GEMMs longer that run beside a transfer", () => {
    const f = new Fusion();
    const a = f.input([2, 2, 4, 16], "float");
    const b = f.input([16, 16], "float");
    const c = matmul(a, b);
    f.output(c);
    for (const tensor of [a, b, c]) tensor.setDeviceMesh(DeviceMesh.range(2));
    a.axis(1).parallelize("DIDx");
    c.axis(0).parallelize("Stream");
    const lists = [0, 1].map((rank) => record(lower(f, { rank }), { rank, sizes: new Map(), streams: 2 }));
    const program = link(lists);
    // Gathering takes 20 us, a product 30: 8,192 operations.
    const profile = {
      ...roundProfile,
      products: roundProfile.products.map((grid) => ({ ...grid, teraflops: [0.008192 / 30] })),
      transfers: [
        { type: "Allgather", ranks: 2, timings: [0, 1e6].map((bytes) => ({ bytes, microseconds: 20 })) },
      ] as const,
    };
    const { trace } = simulate(program, profile, graph);
    const of = (kind: string) =>
      trace.filter(({ rank, command }) => rank === 0 && program.ranks[0]?.commands[command]?.kind === kind);
    const [, gathered] = of("transfer");
    const [first, second] = of("launch").map(({ start, end }) => ({ start: start * 1000, took: (end - start) * 1000 }));
    expect(gathered !== undefined && first !== undefined && second !== undefined).toBe(true);
    if (gathered === undefined || first === undefined || second === undefined) return;
    const beside = gathered.end * 1000 - first.start;
    expect(beside).toBeGreaterThan(15);
    // Half of what would be done beside the transfer is left.
    expect(first.took).toBeCloseTo(30 + beside / 2);
    expect(second.took).toBeCloseTo(30);
  });

  it("signals, and shares the links of a rank that two others read from", () => {
    const reading = (readers: readonly number[]): number =>
      microseconds([
        3,
        (list, rank) => {
          const own = list.input([100], "symmetric");
          if (rank === 0) {
            for (const reader of readers) {
              const send = list.pair("get", "send", reader, own);
              list.signalPeer(0, send, "ready");
            }
            for (const reader of readers) {
              const lane = list.stream(`lane ${reader}`);
              const send = list.pair("get", "send", reader, own);
              list.signalPeer(lane, send, "ready");
              list.waitPeer(lane, send, "done");
            }
            return;
          }
          if (!readers.includes(rank)) return;
          const first = list.pair("get", "recv", 0, list.output([100]));
          const second = list.pair("get", "recv", 0, list.output([100]));
          list.waitPeer(0, first, "ready");
          list.waitPeer(0, second, "ready");
          list.copyPeer(0, second);
          list.signalPeer(0, second, "done");
        },
      ]);
    // 400 bytes: 40 us on the link; a signal there and one back.
    expect(reading([1])).toBeCloseTo(2 * costs.signal + 40);
    expect(reading([1, 2])).toBeCloseTo(2 * costs.signal + 2 * 40);
  });
});

it("keeps what happens in order of time, and of equal times in the order of their coming", () => {
  const calendar = createCalendar<string>();
  for (const [time, what] of [
    [3, "d"],
    [1, "a"],
    [2, "b"],
    [2, "c"],
    [9, "f"],
    [3, "e"],
  ] as const) {
    calendar.add(time, what);
  }
  const order: string[] = [];
  for (let next = calendar.next(); next !== null; next = calendar.next()) order.push(next);
  expect(order.join("")).toBe("abcdef");
  expect(calendar.next()).toBeNull();
});

describe("between what was measured", () => {
  const timings = [
    { bytes: 100, microseconds: 5 },
    { bytes: 200, microseconds: 7 },
    { bytes: 400, microseconds: 17 },
  ];
  it.each([
    [1, 5],
    [100, 5],
    [150, 6],
    [200, 7],
    [300, 12],
    [800, 37],
  ])("%i bytes take %i us", (bytes, expected) => {
    expect(interpolatedTime(timings, bytes)).toBeCloseTo(expected);
  });
  it("has one timing, then bytes in proportion", () => {
    expect(interpolatedTime([{ bytes: 100, microseconds: 5 }], 200)).toBeCloseTo(10);
  });

  const grid = { dtype: "float", m: [10, 1000], n: [10], k: [10], teraflops: [1, 4] } as const;
  it("interpolates the rate of a GEMM in logarithms", () => {
    expect(gemmTime(grid, { m: 100, n: 10, k: 10 })).toBeCloseTo((2 * 100 * 10 * 10) / 2e6);
    expect(gemmTime(grid, { m: 2000, n: 10, k: 10 })).toBeCloseTo((2 * 2000 * 10 * 10) / 4e6);
  });
  it("has a factor of load between those that were measured, and the outermost beyond", () => {
    const sustained = [
      { microseconds: 1000, factor: 1 },
      { microseconds: 4000, factor: 1.5 },
    ];
    expect([10, 1000, 2000, 4000, 9000].map((time) => loadFactor(sustained, time))).toEqual([1, 1, 1.25, 1.5, 1.5]);
    expect(loadFactor([], 10)).toBe(1);
  });

  it("takes what a GEMM loses by a margin, and its free SMs, from the logarithms of its extents, at the edge beyond", () => {
    const grid = { m: [100, 400], n: [10, 1000], k: [64], factors: [1, 1.2, 1.4, 1.6], room: [0, 0, 1, 1] };
    const factors = [
      { m: 100, n: 10 },
      { m: 200, n: 10 },
      { m: 400, n: 100 },
      { m: 200, n: 100 },
      { m: 10, n: 9000 },
    ].map((shape) => marginOf(grid, { ...shape, k: 1000 }));
    for (const [i, expected] of [1, 1.2, 1.5, 1.3, 1.2].entries()) expect(factors[i]?.factor).toBeCloseTo(expected, 12);
    for (const [i, expected] of [0, 0.5, 1, 0.5, 0].entries()) expect(factors[i]?.room).toBeCloseTo(expected, 12);
  });
  it("takes as long for less than a tile as for the tile", () => {
    expect(gemmTime(grid, { m: 1, n: 3, k: 10 })).toBe(gemmTime(grid, { m: 10, n: 10, k: 10 }));
  });
});
