/** The CUDA back end's plans: copies, transfers, layouts of GEMMs, edges of streams, encoded structs. */
import { describe, expect, it } from "vitest";
import { writeOperation, writePlaneCopy } from "../../../src/backends/cuda/bind/bind-op.ts";
import { gemmLayout, scaleElements } from "../../../src/backends/cuda/matmul/gemm-layout.ts";
import { smTarget } from "../../../src/backends/cuda/matmul/gemms.ts";
import { config } from "../../../src/backends/cuda/nccl/communicators.ts";
import { planCollective, planGroup } from "../../../src/backends/cuda/nccl/transfer-plan.ts";
import { planCopy } from "../../../src/backends/cuda/ops/copy-ops.ts";
import { missingEdges } from "../../../src/backends/cuda/ops/device-ops.ts";
import { memoryOperations } from "../../../src/backends/cuda/ops/memory-operations.ts";
import type { BufferId } from "../../../src/commands/buffer.ts";
import type { Collective, Command, CommandStreamId, EventId, SlotId } from "../../../src/commands/command.ts";
import { contiguousStrides, type View } from "../../../src/commands/view.ts";
import type { Contraction, ScaledOperand } from "../../../src/kernels/gemm/contraction.ts";
import { makeId } from "../../../src/support/invariant.ts";

function view(shape: readonly number[], strides = contiguousStrides(shape), dtype: View["dtype"] = "bfloat16"): View {
  return { buffer: makeId<BufferId>(0), offset: 0, dtype, shape, strides };
}

describe("a copy", () => {
  it("is one run where both sides are contiguous, whatever the axes", () => {
    expect(planCopy(view([4, 1, 8]), view([4, 1, 8]), true)).toEqual({ kind: "run", bytes: 64 });
    expect(planCopy(view([]), view([]), true)).toEqual({ kind: "run", bytes: 2 });
    expect(planCopy(view([0, 8]), view([0, 8]), true)).toEqual({ kind: "none" });
  });

  it("of long rows over a link is done by the copy engine, by a kernel inside one GPU", () => {
    const source = view([3, 16, 512], [20_000, 1000, 1]);
    const plan = planCopy(source, view([3, 16, 512]), true);
    expect(plan).toEqual({
      kind: "planes",
      width: 1024,
      height: 16,
      pitch: { source: 2000, destination: 1024 },
      offsets: [0, 1, 2].map((i) => ({ source: i * 40_000, destination: i * 16_384 })),
    });
    expect(planCopy(source, view([3, 16, 512]), false)).toEqual({ kind: "kernel" });
  });

  it("of short rows, many planes or spread elements is done by a kernel", () => {
    expect(planCopy(view([9, 8], [16, 1]), view([9, 8]), true)).toEqual({ kind: "kernel" });
    expect(planCopy(view([40, 4, 512], [9000, 1000, 1]), view([40, 4, 512]), true)).toEqual({ kind: "kernel" });
    expect(planCopy(view([64, 64], [1, 64]), view([64, 64]), true)).toEqual({ kind: "kernel" });
  });
});

function collective(type: Collective["type"], rest: Partial<Collective>): Collective {
  return { kind: "collective", type, team: [2, 5, 7], root: null, reduceOp: null, input: null, output: null, ...rest };
}

describe("a transfer", () => {
  it("packs what is not contiguous and unpacks it on the other side", () => {
    const input = view([8, 4], [6, 1], "half");
    const output = view([3, 8, 4], [4, 12, 1], "half");
    const members = [0, 1, 2].map(() => collective("Allgather", { input, output }));
    const plan = planCollective(members, 1);
    expect(plan.packs).toEqual([{ view: input, offset: 0 }]);
    expect(plan.unpacks).toEqual([{ view: output, offset: 256 }]);
    expect(plan.calls).toEqual([
      { kind: "allGather", from: { kind: "scratch", offset: 0 }, to: { kind: "scratch", offset: 256 }, bytes: 64 },
    ]);
    expect(plan.scratchBytes).toBe(512);
  });

  it("gathers at the root by receiving from every participant that has an input", () => {
    const input = view([4]);
    const [sender, root] = [
      collective("Gather", { root: 2, input }),
      collective("Gather", { root: 2, output: view([2, 4]) }),
    ];
    const members = [sender, sender, root];
    const sends = planCollective(members, 0).calls;
    expect(sends).toEqual([{ kind: "send", piece: { kind: "view", view: input }, bytes: 8, peer: 7 }]);
    expect(planCollective(members, 2).calls.map((call) => ("peer" in call ? [call.kind, call.peer] : call))).toEqual([
      ["recv", 2],
      ["recv", 5],
    ]);
  });

  it("gives a root without an input neutral elements to contribute", () => {
    const [member, root] = [
      collective("Reduce", { root: 2, reduceOp: "amax", input: view([6]) }),
      collective("Reduce", { root: 2, reduceOp: "amax", output: view([6]) }),
    ];
    const plan = planCollective([member, member, root], 2);
    expect(plan.identities).toEqual([{ offset: 0, count: 6, dtype: "bfloat16", op: "amax" }]);
    expect(plan.calls).toMatchObject([{ kind: "reduce", from: { kind: "scratch", offset: 0 }, root: 2, count: 6 }]);
  });

  it("scatters and exchanges part by part", () => {
    const parts = view([3, 4]);
    const scatter = [0, 1, 2].map((i) =>
      collective("Scatter", { root: 1, input: i === 1 ? parts : null, output: view([4]) }),
    );
    expect(planCollective(scatter, 1).calls.map((call) => call.kind)).toEqual(["send", "send", "send", "recv"]);
    const all = [0, 1, 2].map(() => collective("AllToAll", { input: parts, output: view([3, 4]) }));
    expect(planCollective(all, 0).calls.map((call) => ("peer" in call ? call.peer : -1))).toEqual([2, 2, 5, 5, 7, 7]);
  });

  it("of a group keeps its sends and receives, bytes counted", () => {
    const { calls } = planGroup({
      kind: "group",
      ops: [
        { type: "send", peer: 1, view: view([4], [1], "double") },
        { type: "recv", peer: 3, view: view([2]) },
      ],
    });
    expect(calls).toMatchObject([
      { kind: "send", peer: 1, bytes: 32 },
      { kind: "recv", peer: 3, bytes: 4 },
    ]);
  });

  it("reads the configuration of NCCL as version 2.18 lays it out", () => {
    const bytes = new DataView(config().buffer);
    expect(Number(bytes.getBigUint64(0, true))).toBe(48);
    expect(bytes.getUint32(8, true)).toBe(0xcafebeef);
    expect([12, 16, 20, 40].map((offset) => bytes.getInt32(offset, true))).toEqual([21_801, 0, -(2 ** 31), -(2 ** 31)]);
  });
});

const product: Contraction = {
  dtype: "bfloat16",
  m: 5,
  n: 7,
  k: 3,
  batch: [],
  a: { row: 3, column: 1 },
  b: { row: 7, column: 1 },
  c: { row: 7, column: 1 },
  bias: null,
};

describe("a GEMM", () => {
  it("of row-major operands is the column-major GEMM of the operands in the other order", () => {
    expect(gemmLayout(product)).toMatchObject({
      swapped: true,
      left: { rows: 7, columns: 3, leading: 7, transposed: false },
      right: { rows: 3, columns: 5, leading: 3, transposed: false },
      result: { rows: 7, columns: 5, leading: 7 },
      batchCount: 1,
    });
  });

  it("reads a transposed operand where it lies, and a column-major result without a swap", () => {
    expect(gemmLayout({ ...product, b: { row: 1, column: 3 } })).toMatchObject({
      left: { rows: 3, columns: 7, leading: 3, transposed: true },
    });
    expect(gemmLayout({ ...product, c: { row: 1, column: 5 } })).toMatchObject({
      swapped: false,
      left: { rows: 3, columns: 5, leading: 3, transposed: true },
      result: { rows: 5, columns: 7, leading: 5 },
    });
  });

  it("of floats of 8 bits reads both operands along k, with scales of one kind", () => {
    const eight = (strideA: number, strideB: number, by: Partial<Contraction> = {}): Contraction => ({
      ...product,
      m: 5,
      n: 32,
      k: 64,
      a: { row: 64, column: 1 },
      b: { row: 1, column: 64 },
      c: { row: 32, column: 1 },
      scaled: { a: { dtype: "float8_e5m2", stride: strideA }, b: { dtype: "float8_e4m3fn", stride: strideB } },
      ...by,
    });
    expect(gemmLayout(eight(1, 1))).toMatchObject({
      left: { rows: 64, columns: 32, transposed: true },
      right: { rows: 64, columns: 5, transposed: false },
      scaled: { left: "float8_e4m3fn", right: "float8_e5m2", vectors: true },
    });
    expect(gemmLayout(eight(0, 0))?.scaled?.vectors).toBe(false);
    expect(gemmLayout(eight(1, 0))).toBeNull();
    expect(gemmLayout(eight(1, 1, { n: 40 }))).toBeNull();
    expect(gemmLayout(eight(1, 1, { b: { row: 32, column: 1 } }))).toBeNull();
    expect(gemmLayout(eight(1, 1, { a: { row: 1, column: 5 } }))).toBeNull();
  });

  it("of floats of 8 bits reads scales of blocks in lines along rows or along k, which begin at multiples of 4", () => {
    const blocks = (rows: number, line: number): ScaledOperand => ({
      dtype: "float8_e4m3fn",
      ...(rows === 1 ? { stride: 1, blocks: { rows, stride: line } } : { stride: line, blocks: { rows, stride: 1 } }),
    });
    const layoutOf = (a: ScaledOperand, b: ScaledOperand) =>
      gemmLayout({
        ...product,
        m: 5,
        n: 320,
        k: 640,
        a: { row: 640, column: 1 },
        b: { row: 1, column: 640 },
        c: { row: 320, column: 1 },
        scaled: { a, b, fastAccumulation: true },
      });
    const [whole, vectors] = [layoutOf(blocks(1, 8), blocks(128, 8)), layoutOf(blocks(1, 8), blocks(1, 320))];
    const operands = { left: "float8_e4m3fn", right: "float8_e4m3fn", vectors: true };
    expect(whole?.scaled).toEqual({ ...operands, blocks: { left: 128, right: 1 } });
    expect(whole && scaleElements(whole)).toEqual([2 * 8 + 5, 4 * 8 + 5]);
    expect(vectors?.scaled).toEqual({ ...operands, blocks: { left: 1, right: 1 } });
    expect(vectors && scaleElements(vectors)).toEqual([320 * 5, 4 * 8 + 5]);
    expect(layoutOf(blocks(1, 8), blocks(128, 5))).toBeNull();
    expect(layoutOf(blocks(1, 5), blocks(1, 320))).toBeNull();
    expect(layoutOf({ ...blocks(1, 8), stride: 5 }, blocks(1, 320))).toBeNull();
  });

  it("adds to its result where it accumulates, with a bias or without", () => {
    expect(gemmLayout({ ...product, accumulate: true })).toMatchObject({ accumulate: true, hasBias: false });
    expect(gemmLayout({ ...product, accumulate: true, bias: 1 })).toMatchObject({ accumulate: true, hasBias: true });
    expect(gemmLayout(product)).not.toHaveProperty("accumulate");
  });

  it("joins batch axes that step evenly, and makes GEMMs of their own of the others", () => {
    const even = [
      { extent: 4, a: 30, b: 42, c: 70 },
      { extent: 2, a: 15, b: 21, c: 35 },
    ];
    expect(gemmLayout({ ...product, batch: even })).toMatchObject({
      batchCount: 8,
      offsets: [{ a: 0, b: 0, c: 0 }],
    });
    const uneven = [
      { extent: 2, a: 0, b: 210, c: 350 },
      { extent: 5, a: 15, b: 21, c: 70 },
    ];
    expect(gemmLayout({ ...product, batch: uneven })).toMatchObject({
      batchCount: 5,
      offsets: [
        { a: 0, b: 0, c: 0 },
        { a: 0, b: 210, c: 350 },
      ],
    });
  });

  it.each([
    ["integers", { dtype: "int" as const }],
    ["a bias that repeats", { bias: 0 }],
    ["a bias along the rows of a column-major result", { bias: 1, c: { row: 1, column: 5 } }],
    ["an operand without a contiguous axis", { a: { row: 6, column: 2 } }],
  ])("is left to the generated kernel for %s", (_, change) => {
    expect(gemmLayout({ ...product, ...change })).toBeNull();
  });
});

describe("a margin", () => {
  it("is the number of SMs without the margin, and 0 without a margin", () => {
    expect([0, 8, 131].map((margin) => smTarget(132, margin))).toEqual([0, 124, 1]);
  });

  it("of all SMs is refused", () => {
    expect(() => smTarget(132, 132)).toThrow("fewer than 132");
  });
});

describe("edges of streams", () => {
  const [caller, first, second] = [0, 1, 2].map((id) => makeId<CommandStreamId>(id)) as [
    CommandStreamId,
    CommandStreamId,
    CommandStreamId,
  ];
  const event = (id: number): EventId => makeId<EventId>(id);
  const slot = makeId<SlotId>(0);

  it("are added where a stream does not begin after the caller's, or does not end before it", () => {
    const commands: readonly Command[] = [
      { kind: "recordEvent", stream: caller, event: event(0) },
      { kind: "waitEvent", stream: first, event: event(0) },
      { kind: "signal", stream: second, slot },
      { kind: "recordEvent", stream: second, event: event(1) },
      { kind: "waitEvent", stream: caller, event: event(1) },
      { kind: "waitSignal", stream: first, slot },
    ];
    expect(missingEdges(commands)).toEqual({ forks: [second], joins: [first] });
  });

  it("see through chains of streams", () => {
    const commands: readonly Command[] = [
      { kind: "recordEvent", stream: caller, event: event(0) },
      { kind: "waitEvent", stream: first, event: event(0) },
      { kind: "recordEvent", stream: first, event: event(1) },
      { kind: "waitEvent", stream: second, event: event(1) },
      { kind: "recordEvent", stream: second, event: event(2) },
      { kind: "waitEvent", stream: caller, event: event(2) },
    ];
    expect(missingEdges(commands)).toEqual({ forks: [], joins: [] });
  });
});

describe("a pitched copy", () => {
  it("is encoded as cuda.h lays CUDA_MEMCPY2D out: device to device, addresses, pitches, then the extent", () => {
    const bytes = new DataView(new ArrayBuffer(128));
    writePlaneCopy(bytes, {
      source: 0x7f00_0000_1000,
      sourcePitch: 4096,
      destination: 0x7f00_0000_2000,
      destinationPitch: 1024,
      width: 1000,
      height: 7,
    });
    const words = [16, 72].map((offset) => bytes.getUint32(offset, true));
    const longs = [32, 48, 88, 104, 112, 120].map((offset) => Number(bytes.getBigUint64(offset, true)));
    expect([words, longs]).toEqual([
      [2, 2],
      [0x7f00_0000_1000, 4096, 0x7f00_0000_2000, 1024, 1000, 7],
    ]);
  });
});

describe("a signal", () => {
  it("writes 1; its wait says so, waits for 1, writes 0 and says that it is past, as cuda.h lays the operations out", () => {
    const wordAt = (index: number) => ({ space: "word", rank: 0, index }) as const;
    const operations = memoryOperations([
      { kind: "signal", word: wordAt(0x1000) },
      { kind: "wait", word: wordAt(0x2000), progress: { space: "progress", stream: 0 }, says: 41 },
    ]).map((operation) => {
      const { address } = operation;
      return { ...operation, address: address.space === "word" ? 0x7f00_0000_0000 + address.index : 0x7e00_0000_0010 };
    });
    const bytes = new DataView(new ArrayBuffer(5 * 48));
    operations.forEach((operation, i) => writeOperation(bytes, 48 * i, operation));
    const read = (i: number) => ({
      type: bytes.getUint32(48 * i, true),
      address: Number(bytes.getBigUint64(48 * i + 8, true)),
      value: bytes.getUint32(48 * i + 16, true),
      flags: bytes.getUint32(48 * i + 24, true),
    });
    expect([0, 1, 2, 3, 4].map(read)).toEqual([
      { type: 2, address: 0x7f00_0000_1000, value: 1, flags: 0 },
      { type: 2, address: 0x7e00_0000_0010, value: 41, flags: 0 },
      { type: 1, address: 0x7f00_0000_2000, value: 1, flags: 1 },
      { type: 2, address: 0x7f00_0000_2000, value: 0, flags: 0 },
      { type: 2, address: 0x7e00_0000_0010, value: 41 + 0x8000_0000, flags: 0 },
    ]);
  });
});
