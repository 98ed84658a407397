/**
 * GEMMs that add what has arrived to their own result: where they replace a sum of two partial results, with the
 * oracle's results, and where the sum has to stay.
 */
import { type DType, type Program, verify } from "@braid-compiler/braid";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { gemmSums } from "../../src/schedule/rewrites/gemm-sums.ts";
import { applySchedule, type ScheduleOptions } from "../../src/schedule/schedule.ts";
import { at } from "../../src/support/invariant.ts";
import { expectOracle } from "../support/expect-oracle.ts";
import { combinations } from "../support/split-cases.ts";
import {
  type Exchange,
  exchange,
  exchangeFusion,
  exchangeOptions,
  hosted,
  type HostTensors,
  inGemms,
  kindsOf,
  launched,
  pair,
  send,
  summed,
} from "./exchanges.ts";
import { outputsOf } from "./programs.ts";
import { draws, runs, sample } from "../support/suite.ts";

// By get and in one output an all-reduce keeps its sum: see below.
const cases = combinations<Required<Omit<Exchange, "devices">>>({
  primitive: ["tp-allreduce", "tp-rowwise"],
  protocol: ["get", "put"],
  outputs: [1, 2],
  dtype: ["bfloat16", "float"],
}).filter(({ primitive, protocol, outputs }) => primitive === "tp-rowwise" || protocol === "put" || outputs === 2);

describe.each(sample(cases, 6))("$dtype $primitive by $protocol in $outputs outputs", (each) => {
  it("has a GEMM for each sum, after the GEMMs of what is sent, and verifies", () => {
    const program = exchange(each, inGemms);
    for (const { rank } of program.ranks) {
      const sent = Array.from({ length: each.outputs }, () => "matmul");
      expect(kindsOf(program, rank).toSorted()).toEqual([...sent, ...sent.map((kind) => `${kind} +`)]);
    }
    expect(verify(program, { notes: false, full: true }).findings).toEqual([]);
  });

  it("has the oracle's results, the same in every order", async () => {
    const program = exchange(each, inGemms);
    await expectOracle(exchangeFusion(each), { ...exchangeOptions(each), schedule: inGemms });
    const expected = await outputsOf(program, "seed:1");
    for (const seed of [2, 3]) expect(await outputsOf(program, `seed:${seed}`)).toBe(expected);
    expect(await outputsOf(program, "seed:4", { queues: "ranks" })).toBe(expected);
  });
});

describe("random schedules of exchanges between two devices", () => {
  const options: fc.Arbitrary<ScheduleOptions> = fc.record(
    {
      dropSignals: fc.boolean(),
      inPlace: fc.boolean(),
      ownLast: fc.boolean(),
      splitChunks: fc.constant(2),
      gemmSums: fc.boolean(),
      computeStreams: fc.integer({ min: 1, max: 2 }),
      batchSignals: fc.boolean(),
      copyStream: fc.constant("dedicated"),
    },
    { requiredKeys: [] },
  );
  const exchanges: fc.Arbitrary<Exchange> = fc.record({
    primitive: fc.constantFrom("tp-allreduce", "tp-rowwise", "tp-columnwise"),
    protocol: fc.constantFrom("get", "put"),
    outputs: fc.constantFrom(1, 2, 4),
    dtype: fc.constantFrom<DType[]>("int", "int64"),
  });

  const counts = { quick: 24, long: 60 };

  it("verify, and have the recorded Program's results", async () => {
    const [adding, dropping] = [new Set<Program>(), new Set<Program>()];
    await fc.assert(
      fc.asyncProperty(exchanges, options, async (each, schedule) => {
        const before = exchange(each);
        const program = applySchedule(before, schedule);
        if (program.kernels.some((kernel) => "addend" in kernel)) adding.add(program);
        if (program.slots.length < before.slots.length) dropping.add(program);
        expect(verify(program, { notes: false, full: true }).findings).toEqual([]);
        const expected = await outputsOf(before, "seed:1");
        expect(await outputsOf(program, "seed:2")).toBe(expected);
        expect(await outputsOf(program, "seed:3", { queues: "ranks" })).toBe(expected);
      }),
      draws(counts),
    );
    expect(Math.min(adding.size, dropping.size)).toBeGreaterThanOrEqual(runs(counts) / 12);
  });
});

describe("a sum stays", () => {
  it.each(["get", "put"] as const)("of three and more parts, by %s", (protocol) => {
    for (const devices of [4, 8]) {
      const program = exchange({ primitive: "tp-rowwise", protocol, devices }, { inPlace: true, ownLast: true });
      expect(gemmSums.run(program, true)).toBe(program);
      expect(gemmSums.applies(program, true)).toBe(false);
    }
  });

  it("where the own partial result is copied to its place, which a peer reads afterwards", () => {
    const program = exchange({ primitive: "tp-allreduce", protocol: "get" }, { inPlace: true, ownLast: true });
    expect(gemmSums.run(program, true)).toBe(program);
  });

  /** `a` [6, 6] by a weight into the first of two parts, an input into the second, then what `between` does, then the sum. */
  function summing(
    between: (
      tensors: HostTensors,
      a: ReturnType<HostTensors["input"]>,
      both: ReturnType<HostTensors["input"]>,
    ) => void,
    reduce: "sum" | "amax" = "sum",
  ): Program {
    return hosted((tensors) => {
      const { h, input, output, temporary } = tensors;
      const [x, w, both, a] = [input(), input(), temporary(pair), temporary()];
      h.add(x, x, { out: a });
      h.matmul(a, w, { out: h.select(both, 0, 0) });
      h.matmul(w, w, { out: h.select(both, 0, 1) });
      between(tensors, a, both);
      h[reduce](both, [0], { out: output(summed) });
      h.deallocate(a);
      h.deallocate(both);
    });
  }

  it("and is left out of the same host program without what is in between", async () => {
    const program = summing(() => {});
    expect(kindsOf(program)).toEqual(["binary", "matmul", "matmul", "reduction"]);
    const after = gemmSums.run(program, true);
    expect(kindsOf(after)).toEqual(["binary", "matmul", "matmul +"]);
    expect(verify(after, { notes: false }).findings).toEqual([]);
    expect(await outputsOf(after, "seed:1")).toBe(await outputsOf(program, "seed:1"));
  });

  it("if it is no sum", () => {
    const program = summing(() => {}, "amax");
    expect(gemmSums.run(program, true)).toBe(program);
  });

  it("where another kernel reads both partial results, before or after", () => {
    const program = summing(({ h, output }, _, both) => {
      for (const part of [0, 1]) h.sum(h.select(both, 0, part), [0], { out: output([{ reduced: 6 }, 6]) });
    });
    expect(gemmSums.run(program, true)).toBe(program);
    const later = hosted(({ h, input, output, temporary }) => {
      const [x, w, both] = [input(), input(), temporary(pair)];
      for (const part of [0, 1]) h.matmul(x, w, { out: h.select(both, 0, part) });
      for (const _ of [0, 1]) h.sum(both, [0], { out: output(summed) });
      h.deallocate(both);
    });
    expect(gemmSums.run(later, true)).toBe(later);
  });

  it("of the GEMM whose operand is overwritten before, and is in the other GEMM", async () => {
    const program = summing(({ h, input }, a) => {
      const y = input();
      h.add(y, y, { out: a });
    });
    const after = gemmSums.run(program, true);
    const inputsOf = (each: Program): readonly (readonly number[])[] =>
      at(each.ranks, 0).commands.flatMap((c) => (c.kind === "launch" ? [c.inputs.map(({ buffer }) => buffer)] : []));
    const [, first, second] = inputsOf(program);
    expect(inputsOf(after).slice(1)).toContainEqual(first);
    expect(inputsOf(after).at(-1)?.slice(0, 2)).toEqual(second);
    expect(await outputsOf(after, "seed:1")).toBe(await outputsOf(program, "seed:1"));
  });

  it("where the GEMM accumulates", () => {
    const program = hosted(({ h, input, output, temporary }) => {
      const [x, w, both] = [input(), input(), temporary(pair)];
      for (const part of [0, 1]) h.matmul(x, w, { out: h.select(both, 0, part) });
      for (const part of [0, 1]) h.matmul(w, x, { out: h.select(both, 0, part), accumulate: true });
      h.sum(both, [0], { out: output(summed) });
      h.deallocate(both);
    });
    expect(gemmSums.run(program, true)).toBe(program);
  });

  it("where the result has other strides than the parts", () => {
    const program = hosted(({ h, input, output, temporary }) => {
      const [x, w, both] = [input(), input(), temporary(pair)];
      for (const part of [0, 1]) h.matmul(x, w, { out: h.select(both, 0, part) });
      h.sum(both, [0], { out: h.select(output([{ reduced: 2 }, 6, 6, 2]), 3, 1) });
      h.deallocate(both);
    });
    expect(kindsOf(program)).toEqual(["matmul", "matmul", "reduction"]);
    expect(gemmSums.run(program, true)).toBe(program);
  });

  it("where the sum reads the result otherwise than the GEMM writes it", () => {
    const program = hosted(({ h, input, output, temporary }) => {
      const [x, w, both] = [input(), input(), temporary(pair)];
      for (const part of [0, 1]) h.matmul(x, w, { out: h.select(both, 0, part) });
      h.sum(both, [0], { out: output(summed) });
      h.deallocate(both);
    });
    expect(kindsOf(gemmSums.run(program, true))).toEqual(["matmul", "matmul +"]);
    // The same bytes, by columns.
    const columns = program.kernels.map((kernel) =>
      kernel.kind === "matmul" ? { ...kernel, outputs: [{ ...at(kernel.outputs, 0), strides: [1, 6] }] } : kernel,
    );
    const byColumns = { ...program, kernels: columns };
    expect(gemmSums.run(byColumns, true)).toBe(byColumns);
  });

  it("where the partial results are outputs too", () => {
    const program = hosted(({ h, input, output }) => {
      const [x, w, both] = [input(), input(), output(pair)];
      for (const part of [0, 1]) h.matmul(x, w, { out: h.select(both, 0, part) });
      h.sum(both, [0], { out: output(summed) });
    });
    expect(gemmSums.run(program, true)).toBe(program);
  });

  it("where it is written over an operand of both GEMMs", () => {
    const program = hosted(({ h, input, output, temporary }) => {
      const [x, w, both, a] = [input([2, 6, 6]), input(), temporary(pair), temporary(summed)];
      h.sum(x, [0], { out: a });
      for (const part of [0, 1]) h.matmul(a, w, { out: h.select(both, 0, part) });
      h.sum(both, [0], { out: a });
      h.set(a, { out: output() });
      h.deallocate(a);
      h.deallocate(both);
    });
    expect(gemmSums.run(program, true)).toBe(program);
  });

  it.each(["get", "put"] as const)("where the own partial result is sent as well, by %s", (protocol) => {
    const program = hosted(
      ({ h, rank, input, output, temporary }) => {
        const [x, w, both] = [input(), input(), temporary(pair)];
        const [own, other] = [h.select(both, 0, 0), h.select(both, 0, 1)];
        h.matmul(x, w, { out: own });
        for (const from of [0, 1]) send(h, rank, from, 1 - from, rank === from ? own : other);
        h.sum(both, [0], { out: output(summed) });
        h.deallocate(both);
      },
      { world: 2, protocol },
    );
    expect(verify(program, { notes: false }).findings).toEqual([]);
    expect(gemmSums.run(program, true)).toBe(program);
  });

  it.each(["get", "put"] as const)("in the first GEMM if a peer sends its operand anew, by %s", async (protocol) => {
    const program = hosted(
      ({ h, rank, input, output, temporary }) => {
        const [x, y, w, both, a] = [input(), input(), input(), temporary(pair), temporary()];
        for (const part of [0, 1]) {
          send(h, rank, 0, 1, rank === 0 ? (part === 0 ? x : y) : a);
          h.matmul(rank === 0 ? x : a, w, { out: h.select(both, 0, part) });
        }
        h.sum(both, [0], { out: output(summed) });
        h.deallocate(a);
        h.deallocate(both);
      },
      { world: 2, protocol },
    );
    expect(verify(program, { notes: false }).findings).toEqual([]);
    const after = gemmSums.run(program, true);
    expect(kindsOf(after, 1)).toEqual(["matmul", "matmul +"]);
    expect(verify(after, { notes: false }).findings).toEqual([]);
    expect(await outputsOf(after, "seed:1")).toBe(await outputsOf(program, "seed:1"));
  });
});

it("a linear adds its bias and the other partial result", async () => {
  const program = hosted(({ h, input, output, temporary }) => {
    const [x, w, bias, both] = [input(), input(), input([6]), temporary(pair)];
    h.linear(x, w, bias, { out: h.select(both, 0, 0) });
    h.linear(w, x, bias, { out: h.select(both, 0, 1) });
    h.sum(both, [0], { out: output(summed) });
    h.deallocate(both);
  });
  const after = gemmSums.run(program, true);
  expect(launched(after).map(({ kind, inputs }) => [kind, inputs.length])).toEqual([
    ["linear", 3],
    ["linear", 4],
  ]);
  expect(verify(after, { notes: false }).findings).toEqual([]);
  expect(await outputsOf(after, "seed:1")).toBe(await outputsOf(program, "seed:1"));
});
