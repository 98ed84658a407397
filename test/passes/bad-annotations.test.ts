/** Each program with a bad annotation has one diagnostic, at the user's line, with a fix that works. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import {
  cat,
  compile,
  cummax,
  cumsum,
  DeviceMesh,
  type Diagnostic,
  embedding,
  Fusion,
  linear,
  relu,
  sdpa,
  type TensorView,
} from "@braid-compiler/braid";
import { annotationWarnings } from "@braid-compiler/braid/internals";
import { diagnosticOf } from "../ir/expect-diagnostic.ts";
import { expectOracle } from "../support/expect-oracle.ts";
import { at } from "../../src/support/invariant.ts";
import { type BadAnnotation, badAnnotations } from "./bad-annotations.ts";

const lines = readFileSync(new URL("bad-annotations.ts", import.meta.url), "utf8").split("\n");

function built({ program }: BadAnnotation, isFixed: boolean): Fusion {
  const f = new Fusion();
  f.output(program(f, isFixed));
  return f;
}

function warned(bad: BadAnnotation): Diagnostic {
  const fusion = built(bad, false);
  compile(fusion, { ...bad.options, devices: bad.devices });
  const warnings = annotationWarnings(fusion, bad.options);
  expect(warnings).toHaveLength(1);
  return at(warnings, 0);
}

/** The lines of this table that the diagnostic names. */
function namedLines({ source, tensors = [] }: Diagnostic): readonly string[] {
  const sources = [
    source,
    ...tensors.flatMap((each) => [each.source, ...(each.annotations ?? []).map((a) => a.source)]),
  ];
  return sources.flatMap((text) => {
    const [, line] = /bad-annotations\.ts:(\d+):/u.exec(text ?? "") ?? [];
    return line === undefined ? [] : [lines[Number(line) - 1] ?? ""];
  });
}

describe.each(badAnnotations)("$what", (bad) => {
  it("has one diagnostic, at its line, and a fix that works", async () => {
    const found = bad.isWarning
      ? warned(bad)
      : diagnosticOf(() => compile(built(bad, false), { ...bad.options, devices: bad.devices }));
    expect(found.code).toBe(bad.code);
    expect(found.help).toMatch(bad.help);
    expect(namedLines(found).filter((line) => line.endsWith("// here"))).not.toEqual([]);
    const options = { ...bad.options, ...bad.fixedOptions };
    const fixed = built(bad, true);
    expect(annotationWarnings(fixed, options)).toEqual([]);
    await expectOracle(fixed, { devices: bad.devices, ...options });
  });
});

describe("Stream on the contracted axis of a stage whose weight is on another mesh", () => {
  const stage = (): Fusion => {
    const f = new Fusion();
    const [x, w0, w1] = [f.input([64, 32]), f.input([48, 32]), f.input([16, 48])];
    for (const tensor of [x, w0]) tensor.setDeviceMesh(DeviceMesh.range(2));
    w0.outerSplit(0, 2).parallelize("DIDx");
    w1.setDeviceMesh(new DeviceMesh([2, 3]));
    w1.outerSplit(1, 2).parallelize("DIDx");
    const h = relu(linear(x, w0));
    const y = linear(h, w1);
    y.outerSplit(2, 4).parallelize("Stream");
    f.output(y);
    return f;
  };

  it("is refused for that axis, not for a copy in chunks of the weight", () => {
    expect(diagnosticOf(() => compile(stage(), { devices: 4 }))).toMatchObject({
      code: "stream-on-reduction-axis",
      place: { text: "T5 = linear(T4, T2)" },
    });
  });

  it("has a warning about its operand, not about a copy in chunks of that", () => {
    const [warning] = annotationWarnings(stage(), { accumulate: true });
    expect(warning?.help).toMatch(/^put set\(T4\) before the op/u);
  });
});

it("keys that an attention needs whole are no contradiction", () => {
  const f = new Fusion();
  const operands = [f.input([2, 8, 4]), f.input([2, 8, 4]), f.input([2, 8, 4])] as const;
  f.output(sdpa(...operands).output);
  for (const tensor of operands) {
    tensor.setDeviceMesh(DeviceMesh.range(2));
    tensor.outerSplit(1, 2).parallelize("DIDx");
  }
  expect(annotationWarnings(f)).toEqual([]);
});

it("says what equal annotations cut, of two operands and of a result", () => {
  const warnedOf = (isResult: boolean): Diagnostic | undefined => {
    const f = new Fusion();
    const [x, w] = [f.input([8, 4]), f.input([4, 4])];
    const y = linear(x, w);
    f.output(y);
    for (const tensor of isResult ? [x, w, y] : [x, w]) {
      tensor.setDeviceMesh(DeviceMesh.range(2));
      tensor.outerSplit(0, 2).parallelize("DIDx");
    }
    return annotationWarnings(f)[0];
  };
  const [w, x] = [
    "T1 DIDx on axis 0 on DeviceMesh{0 1}, which is axis 1 of T2",
    "T0 DIDx on axis 0 on DeviceMesh{0 1}",
  ];
  expect(warnedOf(false)).toMatchObject({
    message: "T1 and T0 are cut along different axes of the op, so T1 moves (Allgather)",
    found: `32 bytes to a device; ${w}; ${x}, which is axis 0 of T2`,
  });
  expect(warnedOf(true)?.found).toBe(`32 bytes to a device; ${w}; ${x.replace("T0", "T2")}`);
});

it("says of which axis no loop takes chunks, by the op's name", () => {
  const refusal = (make: (f: Fusion) => TensorView, axis: number): unknown => {
    const f = new Fusion();
    const y = make(f);
    f.output(y);
    y.outerSplit(axis, 2).parallelize("Stream");
    return diagnosticOf(() => compile(f, { devices: 1 }));
  };
  expect(refusal((f) => cumsum(f.input([8, 4]), 0), 0)).toMatchObject({
    message: "Stream is on the axis along which the op goes: a result needs other indices, too",
    place: { text: "T1 = cumsum(T0)" },
  });
  expect(refusal((f) => cummax(f.input([8, 4]), 0), 0)).toMatchObject({ place: { text: "T1 = cummax(T0)" } });
  const attention = (f: Fusion): TensorView => {
    const rows = (): TensorView => f.input([2, 8, 4]);
    return sdpa(rows(), rows(), rows(), { causal: "topLeft" }).output;
  };
  expect(refusal(attention, 1)).toMatchObject({
    message: "Stream is on the rows of a causal attention, of which each sees as many keys as its number allows",
  });
  expect(refusal((f) => cat([f.input([8, 4]), f.input([8, 4])], 0), 0)).toMatchObject({
    message: "Stream is on an axis that the op makes",
  });
});

describe("a table that is gathered", () => {
  const helpOf = (extent: number | null, shard: (table: TensorView) => void): readonly (string | undefined)[] => {
    const f = new Fusion();
    const [table, index] = [f.input([extent, 3]), f.input([6], "int64")];
    for (const tensor of [table, index]) tensor.setDeviceMesh(DeviceMesh.range(2));
    shard(table);
    f.output(embedding(table, index));
    return annotationWarnings(f).map(({ code, help }) => (code === "indexed-axis-gathered" ? help : code));
  };

  it("has its reason: unknown extents, and cuts that are not runs", () => {
    expect(helpOf(null, (table) => void table.outerSplit(0, 2).parallelize("DIDx"))).toEqual([
      "give it as a number: a multiple of 2",
    ]);
    const interleaved = (table: TensorView): void => {
      table.split(0, 2);
      table.axis(1).parallelize("DIDx");
    };
    expect(helpOf(64, interleaved)).toEqual(["cut it with outerSplit(0, devices) alone"]);
    expect(helpOf(99, (table) => void table.outerSplit(0, 2).parallelize("DIDx"))).toEqual([
      "give the inputs 100 instead of 99 (a pad() would gather it, too)",
    ]);
  });

  it("has no warning where the fix would move no fewer bytes: a small table is gathered anyway", () => {
    const interleaved = (table: TensorView): void => {
      table.split(0, 2);
      table.axis(1).parallelize("DIDx");
    };
    expect(helpOf(8, interleaved)).toEqual([]);
    expect(helpOf(9, (table) => void table.outerSplit(0, 2).parallelize("DIDx"))).toEqual([]);
  });
});
