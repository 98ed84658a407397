/** The guarantees of each stage: a program that breaks one is rejected, whichever pass made it. */
import { describe, expect, it } from "vitest";
import { DeviceMesh, type HostProgram, HostProgramBuilder, type TensorView } from "@braid-compiler/braid";
import { validate } from "../../src/passes/pipeline.ts";
import type { Stage } from "../../src/passes/pass.ts";
import { diagnosticOf } from "../ir/expect-diagnostic.ts";

function built(body: (h: HostProgramBuilder, x: TensorView) => TensorView): HostProgram {
  const h = new HostProgramBuilder();
  h.output(body(h, h.input([4, 8])));
  return h.build();
}

const streamed = built((h, x) => {
  const y = h.set(x);
  y.axis(0).parallelize("Stream");
  return y;
});

const looped = built((h, x) => {
  const y = h.allocate(h.tensor([4, 8]));
  h.forLoop(4, (i) => h.set(h.select(x, 0, i), { out: h.select(y, 0, i) }));
  return y;
});

const resharding = built((h, x) => {
  const y = h.set(x);
  for (const tensor of [x, y]) tensor.setDeviceMesh(DeviceMesh.range(4));
  x.axis(0).parallelize("DIDx");
  return y;
});

const broken: readonly (readonly [stage: Exclude<Stage, "fusion">, program: HostProgram, message: string])[] = [
  ["segmented", looped, "a segmented program has a scope"],
  ["looped", streamed, "a Stream axis is left"],
  ["communicating", streamed, "a Stream axis is left"],
  ["communicating", resharding, "an op changes the sharding"],
];

describe("a program that breaks a promise", () => {
  it.each(broken)("%s: %#", (stage, program, message) => {
    const { code, message: said } = diagnosticOf(() => {
      validate(stage, program);
    });
    expect([code, said]).toEqual(["pass-validation", message]);
  });

  it("keeps those of earlier stages", () => {
    expect(() => {
      validate("segmented", streamed);
      validate("segmented", resharding);
      validate("communicating", looped);
    }).not.toThrow();
  });
});
