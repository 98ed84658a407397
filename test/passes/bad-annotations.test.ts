/** Each program with a bad annotation has one diagnostic, at the user's line, with a fix that works. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import {
  compile,
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
    expect(helpOf(8, interleaved)).toEqual(["cut it with outerSplit(0, devices) alone"]);
  });
});
