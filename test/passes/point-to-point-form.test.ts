/** Loops over the devices that only hand-built programs, or a disabled pass, can request. */
import { describe, expect, it } from "vitest";
import {
  DeviceMesh,
  DiagnosticError,
  Fusion,
  HostProgramBuilder,
  lower,
  matmul,
  type LowerOptions,
  set,
} from "@braid-compiler/braid";
import { passes, runPass } from "@braid-compiler/braid/internals";

function messageOf(call: () => unknown): string {
  try {
    call();
  } catch (error) {
    if (error instanceof DiagnosticError) return error.message.replaceAll(/^ {2}where: T\d+ is from .*\n/gmu, "");
    throw error;
  }
  return "no diagnostic";
}

function gather(extent: number, mesh: DeviceMesh): HostProgramBuilder {
  const h = new HostProgramBuilder();
  const x = h.input([extent, 4], { mesh, parallel: ["DIDx"] });
  const y = h.tensor([extent, 4], { mesh, parallel: ["Stream"] });
  h.output(y);
  h.set(x, { out: y });
  return h;
}

describe("hand-built programs", () => {
  it("lower like Fusions", () => {
    const looped = runPass(passes.streamParallelType, gather(2, DeviceMesh.range(2)).build());
    expect(looped.body.map(({ kind }) => kind)).toEqual(["Allocate", "GetCurrentStream", "ForLoop", "ForLoop"]);
  });

  it("an extent that is not the number of devices, as in a dump", () => {
    const program = gather(2, DeviceMesh.range(2)).build();
    const mesh = DeviceMesh.range(3);
    const onThree = { ...program, tensors: program.tensors.map((tensor) => ({ ...tensor, mesh })) };
    expect(messageOf(() => runPass(passes.streamParallelType, onThree))).toMatchInlineSnapshot(`
      "error[size-contradicts-mesh]: axis 0 of T0 (DIDx) and the mesh differ in size along DIDx
        at: T1 = set(T0)
        found: size 2, 3 devices along DIDx of a mesh of shape [DIDx 3]
        expected: size 3
        fix: give the axis the size of the mesh along DIDx"
    `);
  });

  it("a second DID type that changes", () => {
    const mesh = new DeviceMesh([
      [0, 1],
      [2, 3],
    ]);
    const h = new HostProgramBuilder();
    const x = h.input([2, 2, 4], { mesh, parallel: ["DIDy", "DIDx"] });
    const y = h.tensor([2, 2, 4], { mesh, parallel: ["Stream"] });
    h.output(y);
    h.set(x, { out: y });
    expect(messageOf(() => runPass(passes.streamParallelType, h.build()))).toMatchInlineSnapshot(`
      "error[resharding-unsupported]: a tensor changes its sharding along DIDx where its DIDy axis becomes a Stream axis
        at: T1 = set(T0)
        found: changes along DIDy and DIDx
        expected: a change along DIDy alone
        fix: put set() between the two tensors and give it the sharding after the first change"
    `);
  });

  it("statements that are no ops stay where they are, and no op moves past them", () => {
    const h = new HostProgramBuilder();
    const x = h.input([2, 4]);
    const [a, b] = [h.tensor([2, 4], { parallel: ["Stream"] }), h.tensor([2, 4], { parallel: ["Stream"] })];
    h.output(b);
    h.set(x, { out: a });
    h.setCurrentStream(h.stream(3));
    h.set(a, { out: b });
    const looped = runPass(passes.streamParallelType, h.build());
    const loop = ["Allocate", "GetCurrentStream", "ForLoop", "ForLoop"];
    expect(looped.body.map(({ kind }) => kind)).toEqual([...loop, "SetCurrentStream", ...loop]);
  });
});

describe("hand-built programs that overwrite", () => {
  it("an op that overwrites what a loop reads whole has a loop of its own", () => {
    const h = new HostProgramBuilder();
    const x = h.tensor([2, 2], { parallel: ["Stream"] });
    const [w, y] = [h.input([2, 2]), h.tensor([2, 2, { reduced: 2 }], { parallel: ["Stream"] })];
    h.output(x);
    h.output(y);
    // Every row of the result reads all rows of x.
    h.matmul(w, x, { out: y });
    h.set(w, { out: x });
    const loop = ["Allocate", "GetCurrentStream", "ForLoop", "ForLoop"];
    const looped = runPass(passes.streamParallelType, h.build());
    expect(looped.body.map(({ kind }) => kind)).toEqual([...loop, ...loop]);
  });
});

describe("without the passes that insert Sets", () => {
  const options: LowerOptions = { disablePass: ["insert-routes"] };

  it("an op that computes cannot exchange", () => {
    const f = new Fusion();
    const a = f.input([2, 3, 4]);
    const b = f.input([4, 5]);
    const c = matmul(a, b);
    f.output(c);
    for (const tensor of [a, b, c]) tensor.setDeviceMesh(DeviceMesh.range(2));
    a.axis(0).parallelize("DIDx");
    c.axis(0).parallelize("Stream");
    expect(messageOf(() => lower(f, options))).toMatchInlineSnapshot(`
      "error[point-to-point-unsupported]: axis 0 of T0 (DIDx) becomes axis 0 of T2 (Stream), and the op has no point-to-point form
        at: T2 = matmul(T0, T1)
        found: matmul
        expected: a set, or a reduction of the sharded axis
        fix: put set() before the op and give it the Stream axis"
    `);
  });

  it("a set can", () => {
    const f = new Fusion();
    const x = f.input([2, 3]);
    const y = set(x);
    f.output(y);
    for (const tensor of [x, y]) tensor.setDeviceMesh(DeviceMesh.range(2));
    x.axis(0).parallelize("DIDx");
    y.axis(0).parallelize("Stream");
    expect(lower(f, options)).toEqual(lower(f));
  });
});
