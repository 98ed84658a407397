/** Each rule that keeps communication out of a loop, planted alone, is the one that is reported. */
import { describe, expect, it } from "vitest";
import {
  add,
  broadcast,
  DeviceMesh,
  Fusion,
  linear,
  lower,
  type LowerOptions,
  relu,
  set,
  sum,
  type TensorView,
} from "@braid-compiler/braid";
import { refusedLoops } from "../../../src/compile/reshardings.ts";
import { resolveLoweringOptions } from "../../../src/compile/lower.ts";
import type { HostProgram } from "../../../src/host/nodes.ts";
import { axisClasses } from "../../../src/passes/stream-loops/group/axis-classes.ts";
import { loopMembers } from "../../../src/passes/stream-loops/stream-parallel-type.ts";
import { fusionObstacle } from "../../../src/passes/stream-loops/group/group-loops.ts";
import { type LoopRule, loopRules } from "../../../src/passes/stream-loops/loop-refusals.ts";
import { keysOf } from "../../../src/support/invariant.ts";

interface Planted {
  readonly rule: LoopRule;
  /** Of the op that moves a tensor and the op beside it. */
  readonly ops: readonly [op: string, beside: string];
  readonly fusion: () => Fusion;
  readonly options?: LowerOptions;
}

const mesh = DeviceMesh.range(2);

function placed(f: Fusion, tensors: readonly TensorView[], output: TensorView): Fusion {
  f.output(output);
  for (const tensor of tensors) tensor.setDeviceMesh(mesh);
  return f;
}

/** y = linear(x, w), where x has its rows on two devices, in chunks if `chunks`. */
function gathering(chunks: number | null, annotate: (y: TensorView) => void): Fusion {
  const f = new Fusion();
  const [x, w] = [f.input([16, 8]), f.input([4, 8])];
  const y = linear(x, w);
  if (chunks === null) x.outerSplit(0, 2).parallelize("DIDx");
  else {
    x.outerSplit(0, chunks);
    x.outerSplit(1, 2).parallelize("DIDx");
  }
  annotate(y);
  return placed(f, [x, w, y], y);
}

/** z = set(x), which gathers the rows of x in chunks, and what `read` makes of it. */
function setBefore(
  read: (f: Fusion, z: TensorView) => { readonly made: TensorView; readonly also?: readonly TensorView[] },
  annotate: (z: TensorView) => void,
): Fusion {
  const f = new Fusion();
  const x = f.input([16, 8]);
  const z = set(x);
  x.outerSplit(0, 4);
  x.outerSplit(1, 2).parallelize("DIDx");
  annotate(z);
  const { made, also = [] } = read(f, z);
  return placed(f, [x, z, made, ...also], made);
}

function streamed(tensor: TensorView, axis = 0, chunks = 4): TensorView {
  tensor.outerSplit(axis, chunks).parallelize("Stream");
  return tensor;
}

function linearOf(f: Fusion, z: TensorView, annotate: (y: TensorView) => void): { readonly made: TensorView } {
  const y = linear(z, f.input([4, 8]));
  annotate(y);
  return { made: y };
}

const none = (): void => {};

const planted: readonly Planted[] = [
  {
    rule: "overlap",
    ops: ["T3 = set(T0)", "T2 = linear(T0, T1)"],
    fusion: () => gathering(4, streamed),
    options: { overlap: false },
  },
  {
    rule: "stream",
    ops: ["T3 = set(T0)", "T2 = linear(T0, T1)"],
    fusion: () => gathering(null, none),
  },
  {
    // A sum that nothing reads.
    rule: "stream",
    ops: ["T2 = sum(T3)", "T3 = linear(T0, T1)"],
    fusion: () => {
      const f = new Fusion();
      const [x, w] = [f.input([16, 8]), f.input([4, 8])];
      for (const tensor of [x, w]) tensor.outerSplit(1, 2).parallelize("DIDx");
      return placed(f, [x, w], linear(x, w));
    },
  },
  {
    rule: "whole",
    ops: ["T3 = set(T0)", "T2 = linear(T0, T1)"],
    fusion: () => gathering(null, (y) => streamed(y, 1, 2)),
  },
  {
    rule: "neighbour",
    ops: ["T1 = set(T0)", "T3 = linear(T1, T2)"],
    fusion: () => setBefore((f, z) => linearOf(f, z, none), streamed),
  },
  {
    rule: "annotated",
    ops: ["T1 = set(T0)", "T3 = linear(T1, T2)"],
    fusion: () => setBefore((f, z) => linearOf(f, z, streamed), none),
  },
  {
    rule: "axis",
    ops: ["T1 = set(T0)", "T3 = linear(T1, T2)"],
    fusion: () =>
      setBefore(
        (f, z) => linearOf(f, z, streamed),
        (z) => streamed(z, 1),
      ),
  },
  {
    rule: "chunks",
    ops: ["T1 = set(T0)", "T3 = linear(T1, T2)"],
    fusion: () => setBefore((f, z) => linearOf(f, z, (y) => streamed(y, 0, 2)), streamed),
  },
  {
    rule: "otherChunk",
    ops: ["T1 = set(T0)", "T2 = linear(T1, T1)"],
    fusion: () => setBefore((_, z) => ({ made: streamed(linear(z, z)) }), streamed),
  },
  {
    rule: "path",
    ops: ["T1 = set(T0)", "T4 = add(T1, T3)"],
    fusion: () =>
      setBefore((_, z) => {
        const [total] = [sum(z, [0])];
        const spread = broadcast(total, [true, false]);
        return { made: streamed(add(z, spread)), also: [total, spread] };
      }, streamed),
  },
  {
    rule: "extent",
    ops: ["T1 = set(T0)", "T3 = add(T1, T2)"],
    fusion: () => {
      const f = new Fusion();
      const [x, z] = [f.input([1, 8])].flatMap((input) => [input, set(input)]);
      if (x === undefined || z === undefined) throw new Error("two tensors");
      const other = f.input([4, 8]);
      const y = add(z, other);
      for (const tensor of [z, y]) tensor.axis(0).parallelize("Stream");
      placed(f, [z, other, y], y);
      x.setDeviceMesh(DeviceMesh.range(1));
      return f;
    },
  },
  {
    rule: "peers",
    ops: ["T1 = set(T0)", "T2 = set(T1)"],
    fusion: () => {
      const f = new Fusion();
      const x = f.input([2, 8]);
      const z = set(x);
      const y = set(z);
      x.axis(0).parallelize("DIDx");
      for (const tensor of [z, y]) tensor.axis(0).parallelize("Stream");
      placed(f, [x, z], y);
      y.setDeviceMesh(DeviceMesh.range(4));
      return f;
    },
  },
  {
    // The loop's exchange is that of another op: x arrives in turn, and the sums of z need one chunk on both devices.
    rule: "peers",
    ops: ["T4 = sum(T6)", "T6 = linear(T3, T2)"],
    fusion: () => {
      const f = new Fusion();
      const [x, up, down] = [f.input([16, 8]), f.input([4, 8]), f.input([8, 4])];
      const z = linear(linear(x, up), down);
      for (const tensor of [x, up]) tensor.outerSplit(0, 2).parallelize("DIDx");
      down.outerSplit(1, 2).parallelize("DIDx");
      return placed(f, [x, up, down], streamed(z, 0, 2));
    },
  },
  {
    rule: "alone",
    ops: ["T1 = set(T0)", "T2 = set(T1)"],
    fusion: () => {
      const f = setBefore((_, z) => ({ made: streamed(set(z)) }), streamed);
      f.outputs[0]?.setDeviceMesh(DeviceMesh.range(4));
      return f;
    },
  },
  {
    rule: "inserted",
    ops: ["T4 = set(T0)", "T2 = linear(T0, T1)"],
    fusion: () => {
      const f = gathering(null, streamed);
      const grid = new DeviceMesh([
        [0, 1],
        [2, 3],
      ]);
      for (const tensor of [...f.inputs, ...f.outputs]) tensor.setDeviceMesh(grid);
      f.inputs[0]?.outerSplit(1, 2).parallelize("DIDy");
      return f;
    },
  },
];

describe("a rule that keeps communication out of a loop", () => {
  it.each(planted)("$rule", ({ rule, ops: [op, beside], fusion, options = {} }) => {
    const found = refusedLoops(fusion(), options);
    const own = found.find((each) => each.op === op);
    expect(own, JSON.stringify(found)).toMatchObject({ rule, beside });
    expect(own?.source).toContain("loop-refusals.test.ts:");
  });

  it("does not report what shares a loop", () => {
    expect(refusedLoops(gathering(4, streamed))).toEqual([]);
    expect(refusedLoops(setBefore((f, z) => linearOf(f, z, streamed), streamed))).toEqual([]);
  });

  it("calls copies by the user's tensor, and says what to do", () => {
    const streamedHidden = (): Fusion => {
      const f = new Fusion();
      const [h, w] = [f.input([16, 8]).named("h"), f.input([4, 8]).named("w")];
      const z = relu(h).named("z");
      const y = linear(z, w).named("y");
      for (const tensor of [h, w]) tensor.outerSplit(1, 2).parallelize("DIDx");
      streamed(z, 1, 2);
      return placed(f, [h, w], y);
    };
    expect(refusedLoops(streamedHidden()).filter(({ rule }) => rule === "neighbour")).toMatchObject([
      {
        op: "copy of z = set(z)",
        beside: "partial sum of y = linear(z, w)",
        because:
          "z has Stream, and partial sum of y has not, because the op sums over that axis: " +
          "put Stream on another axis of z",
      },
    ]);
    const byIndex = gathering(null, (y) => y.named("y").axis(0).parallelize("Stream"));
    byIndex.inputs[0]?.named("x");
    byIndex.inputs[1]?.outerSplit(0, 2).parallelize("DIDx");
    byIndex.inputs[1]?.named("w");
    expect(refusedLoops(byIndex).filter(({ rule }) => rule === "inserted")).toMatchObject([
      {
        op: "copy of x = set(x)",
        beside: "y = linear(x, w)",
        because:
          "the compiler moves x as a whole, not by chunks of axis 0 of y (Stream), of one index each: " +
          "call y.outerSplit(0, chunks) and put Stream on the chunks",
      },
    ]);
  });

  it("overwrites, in a program built by hand", () => {
    let segmented: HostProgram | null = null;
    lower(gathering(4, streamed), {
      onPass: ({ pass, program }) => {
        if (pass === "segment" && "body" in program) segmented = program;
      },
    });
    if (segmented === null) throw new Error("segmented");
    const [producer, consumer] = loopMembers(segmented, resolveLoweringOptions({})).filter((member) => member !== null);
    if (producer === undefined || consumer === undefined) throw new Error("two members");
    const classes = axisClasses(segmented);
    expect(fusionObstacle(producer, consumer, classes)).toBeNull();
    expect(fusionObstacle(producer, { ...consumer, outputs: producer.inputs }, classes)).toBe("overwrites");
  });

  it("has a test for each rule", () => {
    const tested = new Set<LoopRule>([...planted.map(({ rule }) => rule), "overwrites"]);
    expect(keysOf(loopRules).filter((rule) => !tested.has(rule))).toEqual([]);
  });
});
