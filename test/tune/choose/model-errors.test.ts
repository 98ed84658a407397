/** Corrections of predicted times: they depend on a program's commands, not on its sizes. */
import { describe, expect, it } from "vitest";
import { wholeBlock } from "../../../bench/compare/block/block-fusion.ts";
import { buildPrimitive, type Form, type Primitive } from "../../../bench/compare/primitives.ts";
import type { Program } from "../../../src/commands/program.ts";
import { compile } from "../../../src/compile/compile.ts";
import { choicesFor } from "../../../src/tune/choose/candidates.ts";
import { correction, marginOfRegions, marginToSerial } from "../../../src/tune/choose/decide.ts";

const usual = { names: [], schedule: {} };
const protocols = ["get", "put"] as const;

function linked(primitive: Primitive, form: Form, chunks = 4, protocol: "get" | "put" = "put"): Program {
  const problem = { primitive, devices: 4, m: 256, n: 64, k: 32, dtype: "bfloat16" } as const;
  const lowering = { backend: "cuda", insertReshardingAfter: primitive !== "tp-columnwise" } as const;
  return compile(buildPrimitive(form, problem, { chunks, outputs: 1 }), {
    ...lowering,
    devices: 4,
    streams: 8,
    protocol,
    verify: "off",
  }).program;
}

/** The half of a block after its attention: two linears, each followed by an all-reduce, in one loop over chunks. */
function staged(): Program {
  const problem = {
    primitive: "block",
    model: "small-llama",
    cut: "tp",
    pass: "forward",
    dtype: "bfloat16",
    devices: 2,
  } as const;
  const { fusion } = wholeBlock(problem, { chunks: 4, all: false });
  return compile(fusion, { backend: "cuda", devices: 2, streams: 8, verify: "off" }).program;
}

describe("a correction", () => {
  it("is nothing for the usual schedule of copies that hand on what they were given", () => {
    expect(correction(linked("tp-columnwise", "rotated"), usual)).toBe(1);
    expect(correction(linked("tp-rowwise", "rotated"), usual)).toBe(1);
  });

  it("grows with cuts and with each choice that is not the usual one", () => {
    const program = linked("tp-columnwise", "rotated");
    expect(correction(program, { names: ["GEMMs 2"], schedule: {} })).toBeCloseTo(1.015);
    expect(correction(program, { names: ["chunks in 4"], schedule: { splitChunks: 4 } })).toBeCloseTo(1.115);
  });

  it("counts copies of what a sum has made: the second half of an all-reduce", () => {
    expect(correction(linked("tp-allreduce", "rotated"), usual)).toBeCloseTo(1.05);
  });

  it("counts kernels in peers' memory beyond four", () => {
    expect(correction(linked("tp-allreduce", "collective", 4), usual)).toBe(1);
    expect(correction(linked("tp-allreduce", "collective", 8), usual)).toBeCloseTo(1.06);
  });

  it("counts the kernels of each communication of a loop by itself", () => {
    // Two all-reduces in four chunks.
    expect(correction(staged(), usual)).toBe(1);
  });
});

it("asks more of programs of kernels in peers' memory alone, and little where nothing runs beside these", () => {
  expect(marginToSerial(linked("tp-allreduce", "collective"), true)).toBe(0.05);
  expect(marginToSerial(linked("tp-allreduce", "serial"), false)).toBe(0.01);
  expect(marginToSerial(linked("tp-allreduce", "rotated"), true)).toBe(0.03);
  expect(marginToSerial(linked("tp-columnwise", "rotated"), true)).toBe(0.03);
});

it.each(protocols)(
  "puts products on two streams that wait for copies by %s, and on one where copies wait for them",
  (protocol) => {
    const streamsOf = (primitive: Primitive): readonly unknown[] => {
      const [[usually, ...others] = []] = choicesFor(linked(primitive, "rotated", 4, protocol), {});
      return [usually, ...others].map((choice) => choice?.schedule.computeStreams);
    };
    expect(streamsOf("tp-columnwise")).toEqual([2, 1]);
    expect(streamsOf("tp-rowwise")).toEqual([1]);
  },
);

it("gives each chunk a stream where a loop computes before and after a kernel in peers' memory", () => {
  const streamsOf = (program: Program): readonly unknown[] =>
    (choicesFor(program, {})[0] ?? []).map(({ schedule }) => schedule.computeStreams);
  expect(streamsOf(staged())).toEqual([undefined, 1]);
  expect(streamsOf(linked("tp-allreduce", "collective"))).toEqual([1]);
});

it("asks regions in chunks for more than others", () => {
  const [noLoop, chunks, devices] = [{ overlap: false }, {}, { deviceLoops: true }].map((lowering) => ({ lowering }));
  if (noLoop === undefined || chunks === undefined || devices === undefined) throw new Error("three candidates");
  expect(marginOfRegions([noLoop, devices])).toBe(0.01);
  expect(marginOfRegions([noLoop, devices, chunks])).toBe(0.05);
});
