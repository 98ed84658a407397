/** Every mistake that only recording can detect: its code, place and message. */
import { DeviceMesh, DiagnosticError, Fusion, HostProgramBuilder, relu, sum } from "@braid-compiler/braid";
import { describe, expect, it } from "vitest";
import type { Communication, HostProgram } from "../../src/host/nodes.ts";
import type { RecordOptions } from "../../src/compile/record.ts";
import { record } from "../../src/compile/record.ts";

type Build = (h: HostProgramBuilder) => void;

function programOf(build: Build): HostProgram {
  const h = new HostProgramBuilder();
  build(h);
  return h.build();
}

function messageOf(build: Build, options: Partial<RecordOptions> = {}): string {
  const program = programOf(build);
  try {
    record(program, { rank: 0, ...options });
  } catch (error) {
    // Lines of this file are not part of what is tested.
    if (error instanceof DiagnosticError) return `\n${error.message.replaceAll(/\n +where: T\d+ is from .*/gu, "")}\n`;
    throw error;
  }
  throw new Error("nothing was wrong");
}

const mesh = DeviceMesh.range(2);
const nothing: Build = () => {};

describe("options", () => {
  it.each<[string, Partial<RecordOptions>, string]>([
    ["a rank that is no device", { rank: -1 }, "bad-argument"],
    ["half a rank", { rank: 0.5 }, "bad-argument"],
    ["no streams", { streams: 0 }, "bad-option"],
    ["a fraction of streams", { streams: 1.5 }, "bad-option"],
    ["an axis shorter than empty", { sizes: { i0: -1 } }, "bad-extent"],
    ["a fractional size", { sizes: new Map([["i0", 2.5]]) }, "bad-extent"],
    ["a scalar that is no whole number", { scalars: { shift: Number.NaN } }, "bad-argument"],
  ])("%s", (_, options, code) => {
    expect(messageOf(nothing, options)).toContain(`error[${code}]`);
  });

  it("an unknown protocol, from JavaScript", () => {
    const options = JSON.parse('{ "protocol": "push" }') as Partial<RecordOptions>;
    expect(messageOf(nothing, options)).toMatchInlineSnapshot(`
      "
      error[bad-option]: option protocol has a bad value
        at: protocol (--schedule protocol)
        found: "push"
        expected: one of get, put
        fix: pass a value such as get, or leave the option out
      "
    `);
  });
});

describe("sizes", () => {
  it("missing: names the input that has the extent", () => {
    expect(messageOf((h) => void h.input([null, 4]))).toMatchInlineSnapshot(`
      "
      error[size-missing]: i0 has no size
        at: T0_g_float[iS0{i0}, iS1{4}]
        found: axis iS0{i0} without a size
        expected: a size for i0
        fix: give i0 a size: it is an extent of T0_g_float[iS0{i0}, iS1{4}]
      "
    `);
  });

  it("contradicting the mesh", () => {
    const text = messageOf((h) => void h.input([null], { mesh, parallel: ["DIDx"] }), { sizes: { i0: 3 } });
    expect(text).toMatchInlineSnapshot(`
      "
      error[size-contradicts-mesh]: axis ideviceIdx.x0{i0} and the mesh differ in size along DIDx
        at: T0_g_float[ideviceIdx.x0{i0}] (DeviceMesh{0 1})
        found: size 3, 2 devices along DIDx of a mesh of shape [DIDx 2]
        expected: size 2
        fix: give the sharded axis the size of the mesh
      "
    `);
  });

  it("of an extent that is computed and not a size", () => {
    const text = messageOf(
      (h) => {
        const n = h.input([null]).extents[0] ?? 0;
        h.input([h.scalars.sub(n, 4)]);
      },
      { sizes: { i0: 3 } },
    );
    expect(text).toContain("error[bad-extent]: axis iS1{( i0 - 4 )} does not have a whole number of elements");
  });

  it.each<[string, Build]>([
    ["of a sum's output", (h) => void h.sum(h.input([null, 4]), [1], { out: h.tensor([3, { reduced: 4 }]) })],
    ["of a binary op", (h) => void h.add(h.input([null]), h.input([3]))],
    ["of a copy", (h) => void h.set(h.input([null]), { out: h.allocate(h.tensor([3])) })],
    ["of an alias", (h) => void h.set(h.input([null]), { out: h.tensor([3]) })],
    ["of contracted axes", (h) => void h.matmul(h.input([4, null]), h.input([3, 4]))],
    ["of rows", (h) => void h.matmul(h.input([null, 4]), h.input([4, 4]), { out: h.tensor([3, 4, { reduced: 4 }]) })],
    ["of batches", (h) => void h.matmul(h.input([null, 4, 4]), h.input([3, 4, 4]))],
    ["of linear's contraction", (h) => void h.linear(h.input([4, null]), h.input([3, 3]))],
    ["of a bias", (h) => void h.linear(h.input([4, 4]), h.input([3, 4]), h.input([null]))],
    ["of a reshape", (h) => void h.reshape(h.input([null]), [3])],
    ["of a slice", (h) => void h.select(h.input([4, null]), 0, 0, { out: h.tensor([3]) })],
  ])("that do not agree: %s", (_, build) => {
    const text = messageOf(build, { sizes: { i0: 2, i2: 2, i3: 2, i4: 2, i5: 2 } });
    expect(text).toContain("error[size-mismatch]");
    expect(text).toMatch(/at: T\d+_[lg]_float/u);
  });

  it("of a host unit's inputs", () => {
    const fusion = new Fusion();
    fusion.output(relu(fusion.input([3])));
    const text = messageOf((h) => void h.postOnStream(fusion, [h.input([null])]), { sizes: { i0: 2 } });
    expect(text).toMatchInlineSnapshot(`
      "
      error[size-mismatch]: input 0 of HostUnit0 does not have the unit's size
        at: PostOnStream (HostUnit0, Inputs:{T0_g_float[iS0{i0}], }, Outputs:{T1_g_float[iS1{3}], })
        found: [2]
        expected: [3]
        fix: pass a tensor of the unit's shape; a sharded axis has size 1 on each device
        note: on rank 0
      "
    `);
  });

  it("of a host unit's outputs", () => {
    const fusion = new Fusion();
    fusion.output(relu(fusion.input([null])));
    const text = messageOf((h) => void h.postOnStream(fusion, [h.input([null])], [h.allocate(h.tensor([3]))]), {
      sizes: { i0: 2 },
    });
    expect(text).toContain("error[size-mismatch]: T1 and the value written to it differ in size");
  });
});

describe("axes", () => {
  it("sharded by a merge", () => {
    const text = messageOf((h) => {
      const x = h.input([2, 2], { mesh });
      x.merge(0).split(0, 2);
      x.axis(0).parallelize("DIDx");
    });
    expect(text).toContain("error[did-on-merged-axis]");
  });

  it("allocated after a split", () => {
    const text = messageOf((h) => {
      const x = h.input([8]);
      x.split(0, 4);
      x.setAllocationDomain([1, 0]);
    });
    expect(text).toContain("error[allocation-on-split-axis]");
  });

  it.each<[string, Build]>([
    ["reduces", (h) => void h.sum(h.input([2, 4], { mesh, parallel: ["DIDx"] }), [0])],
    ["selects from", (h) => void h.selectOp(h.input([2, 4], { mesh, parallel: ["DIDx"] }), 0, 0)],
    ["cuts", (h) => void h.slice(h.input([2, 4], { mesh, parallel: ["DIDx"] }), [0, 0], [1, 4])],
    [
      "contracts",
      (h) => void h.matmul(h.input([4, 2], { mesh, parallel: ["Serial", "DIDx"] }), h.input([2, 4], { mesh })),
    ],
    [
      "contracts, by linear,",
      (h) => void h.linear(h.input([4, 2], { mesh }), h.input([3, 2], { mesh, parallel: ["Serial", "DIDx"] })),
    ],
    [
      "reduces in a host unit",
      (h) => {
        const fusion = new Fusion();
        const x = fusion.input([2, 4]);
        x.setDeviceMesh(mesh).axis(0).parallelize("DIDx");
        fusion.output(sum(x, [0]));
        h.postOnStream(fusion, [h.input([2, 4], { mesh, parallel: ["DIDx"] })]);
      },
    ],
  ])("an op that %s a sharded axis", (_, build) => {
    expect(messageOf(build)).toContain("error[resharding-unsupported]: an op needs all of an axis");
  });

  it("a sharded axis on a mesh of one device is whole", () => {
    const program = programOf(
      (h) => void h.sum(h.input([1, 4], { mesh: DeviceMesh.range(1), parallel: ["DIDx"] }), [0]),
    );
    expect(() => record(program, { rank: 0 })).not.toThrow();
  });
});

describe("indices", () => {
  it.each<[string, Build]>([
    ["a slice past the end", (h) => h.forLoop(5, (i) => void h.select(h.input([4, 2]), 0, i))],
    ["a slice before the start", (h) => void h.select(h.input([4, 2]), 0, -1)],
    ["an op's index past the end", (h) => void h.selectOp(h.input([4, 2]), 0, h.scalars.add(2, 2))],
    [
      "a root outside the team",
      (h) => {
        const x = h.input([4], { mesh });
        h.communication("Broadcast", { input: x, output: x, root: h.scalars.add(h.scalars.rank, 2) });
      },
    ],
  ])("%s", (_, build) => {
    expect(messageOf(build)).toContain("error[index-out-of-range]");
  });

  it("says the iteration", () => {
    const text = messageOf((h) => {
      const x = h.input([4, 2]);
      h.forLoop(2, () => h.forLoop(5, (i) => void h.select(x, 0, i)));
    });
    expect(text).toMatchInlineSnapshot(`
      "
      error[index-out-of-range]: a slice is outside axis 0
        at: T1_l_float[iS2{2}] = HirAliasSelect( T0_g_float[iS0{4}, iS1{2}], axis = iS0{4}, index = i4 )
        found: index 4
        expected: indices from 0 to 3
        fix: correct the index, or the bounds of the loop that it comes from
        note: on rank 0, iteration 0.4
      "
    `);
  });

  it("a range that a symbolic extent does not have", () => {
    const text = messageOf((h) => void h.slice(h.input([null]), [0], [5]), { sizes: { i0: 4 } });
    expect(text).toContain("error[index-out-of-range]");
    expect(text).toContain("found: [0, 5)");
  });
});

describe("scalars", () => {
  it("without a value", () => {
    expect(messageOf((h) => h.forLoop(h.scalars.named("steps"), () => {}))).toMatchInlineSnapshot(`
      "
      error[scalar-missing]: steps has no value
        at: FOR i0 from 0 to steps:
        found: steps with no value for steps
        expected: a loop index in its loop, an extent, rank, numberOfStreams, or a scalar passed in the call
        fix: pass { scalars: { steps: ... } } (--scalar steps=VALUE), or correct the name
        note: on rank 0
      "
    `);
  });

  it("a loop's index after its loop", () => {
    const text = messageOf((h) => {
      const x = h.input([4, 2]);
      h.forLoop({ over: x.axis(0) }, () => {});
      h.select(x, 0, h.scalars.named("streamIdx"));
    });
    expect(text).toContain("error[scalar-missing]: streamIdx has no value");
  });

  it("divided by zero", () => {
    const text = messageOf((h) => h.ifThenElse(h.scalars.mod(4, h.scalars.rank), () => {}));
    expect(text).toContain("error[scalar-invalid]");
    expect(text).toContain("found: ( 4 % rank ) is NaN");
  });
});

describe("bindings", () => {
  it("a tensor of other ranks", () => {
    const text = messageOf((h) => {
      const x = h.input([4], { mesh: new DeviceMesh([1]) });
      h.add(x, x);
    });
    expect(text).toMatchInlineSnapshot(`
      "
      error[not-bound]: T0 is used on rank 0, where it is not bound
        at: T1_g_float[iS1{4}] = T0_g_float[iS0{4}] (DeviceMesh{1}) + T0_g_float[iS0{4}] (DeviceMesh{1});
        found: T0_g_float[iS0{4}] (DeviceMesh{1})
        expected: a tensor whose mesh has this rank
        fix: remove the statement from this rank's program, or add the rank to the mesh
        note: on rank 0
      "
    `);
  });

  it("a tensor without a mesh on a rank other than 0", () => {
    const text = messageOf(
      (h) => {
        const x = h.input([4]);
        h.add(x, x);
      },
      { rank: 1 },
    );
    expect(text).toContain("found: T0_g_float[iS0{4}] without a mesh, which is on device 0");
  });

  it("what only another branch binds", () => {
    const text = messageOf((h) => {
      const [x, y] = [h.input([4]), h.tensor([4])];
      h.ifThenElse(h.scalars.rank, () => void h.add(x, x, { out: y }));
      h.add(y, y);
    });
    expect(text).toContain("error[not-bound]: T1 is used on rank 0, where it is not bound");
    expect(text).toContain("found: no earlier statement that writes or allocates T1");
  });

  it("a communication's output without memory", () => {
    const text = messageOf((h) => {
      const [x, y] = [h.input([4], { mesh }), h.tensor([4], { mesh })];
      h.communication("Allreduce", { input: x, output: y });
    });
    expect(text).toContain("error[not-bound]: T1");
  });

  it("a slice of memory that was freed", () => {
    const text = messageOf((h) => {
      const x = h.input([2, 4]);
      const y = h.add(x, x);
      const row = h.select(y, 0, 1);
      h.deallocate(y);
      h.add(row, row);
    });
    expect(text).toContain("error[not-bound]: T2 is a slice of memory that was deallocated");
    expect(text).toContain("fix: move the Deallocate of T1 after the last use of T2");
  });

  it("freed twice, by two iterations", () => {
    const text = messageOf((h) => {
      const x = h.input([4]);
      const y = h.add(x, x);
      h.forLoop(2, () => h.deallocate(y));
    });
    expect(text).toContain("error[not-bound]: T1");
    expect(text).toContain("note: on rank 0, iteration 1");
  });
});

describe("communications", () => {
  it("a Wait before the first post of the run", () => {
    const text = messageOf((h) => {
      const x = h.input([4], { mesh });
      const posted: Communication[] = [];
      h.ifThenElse(h.scalars.rank, () => posted.push(h.communication("Allreduce", { input: x, output: x })));
      posted.forEach((each) => h.wait(each));
    });
    expect(text).toMatchInlineSnapshot(`
      "
      error[not-posted]: communication 0 has not been posted
        at: Wait Communication 0
        found: Wait before any post of 0 in this run
        expected: a post before the Wait
        fix: post the communication on the same path of branches and iterations, before the Wait
        note: on rank 0
      "
    `);
  });

  it.each<[string, Build]>([
    [
      "parts for another team",
      (h) => {
        const x = h.input([4], { mesh });
        h.communication("Allgather", { input: x, output: h.allocate(h.tensor([3, 4], { mesh })) });
      },
    ],
    [
      "parts of another size",
      (h) => {
        const x = h.input([4], { mesh });
        h.communication("Allgather", { input: x, output: h.allocate(h.tensor([2, 5], { mesh })) });
      },
    ],
    [
      "sides of another size",
      (h) => {
        const x = h.input([4], { mesh });
        h.communication("Allreduce", { input: x, output: h.allocate(h.tensor([5], { mesh })) });
      },
    ],
  ])("%s", (_, build) => {
    expect(messageOf(build)).toContain("error[size-mismatch]");
  });

  it.each<[string, Build]>([
    ["a peer before rank 0", (h) => void h.send(h.input([4], { mesh }), { peer: h.scalars.sub(h.scalars.rank, 1) })],
    [
      "itself as a one-sided peer",
      (h) => {
        const [send] = h.shareMemHandles({ type: "send", buffer: h.input([4], { mesh }), peer: h.scalars.rank });
        if (send !== undefined) h.post(send);
      },
    ],
  ])("%s", (_, build) => {
    expect(messageOf(build)).toContain("error[bad-peer]");
  });
});

it("a loop without end, named before anything of it is recorded", () => {
  const never = (h: HostProgramBuilder): void => h.setCurrentStream(h.stream(h.scalars.mod(1, 0)));
  const text = messageOf((h) => h.forLoop(h.scalars.named("steps"), () => never(h)), { scalars: { steps: 2 ** 40 } });
  expect(text).toContain("error[recording-too-long]");
  expect(text).toContain("at: FOR i0 from 0 to steps:");
});

it("a loop over more streams than can be verified", () => {
  const text = messageOf((h) => h.forLoop(100_000, (i) => h.setCurrentStream(h.stream(i))));
  expect(text).toContain("error[recording-too-long]");
  expect(text).toContain("more than 1024 streams on one rank");
});

it("a program that is not valid", () => {
  const valid = programOf(nothing);
  const [input] = programOf((h) => void h.input([4])).inputs;
  if (input === undefined) throw new Error("an input");
  expect(() => record({ ...valid, inputs: [input] }, { rank: 0 })).toThrow("host-program-invalid");
});
