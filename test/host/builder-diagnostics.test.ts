/** Mistakes that the methods of HostProgramBuilder and `build` reject. */
import { describe, expect, it } from "vitest";
import {
  add,
  DeviceMesh,
  Fusion,
  HostProgramBuilder,
  type DiagnosticCode,
  type TensorView,
} from "@braid-compiler/braid";
import { diagnosticOf } from "../ir/expect-diagnostic.ts";

const mesh = DeviceMesh.range(2);

interface Case {
  readonly call: (h: HostProgramBuilder, x: TensorView) => unknown;
  readonly code: DiagnosticCode;
  readonly message: RegExp;
  /** The call that the diagnostic names. */
  readonly place: string;
}

/** x is T0 [4, 3]. */
const cases: { readonly [name: string]: Case } = {
  "an extent below 0": { call: (h) => h.input([-1]), code: "bad-extent", message: /extent/u, place: "input([-1])" },
  "a reduced extent below 0": {
    call: (h) => h.tensor([{ reduced: -1 }]),
    code: "bad-extent",
    message: /extent/u,
    place: "tensor([{ reduced }])",
  },
  "a dtype that does not exist": {
    call: (h) => h.tensor([2], { dtype: "real" as never }),
    code: "bad-argument",
    message: /dtype does not exist/u,
    place: 'tensor([2], { dtype: "real" })',
  },
  "too many parallel types": {
    call: (h) => h.tensor([2], { parallel: ["Serial", "DIDx"] }),
    code: "bad-argument",
    message: /more parallel types than axes/u,
    place: 'tensor([2], { parallel: ["Serial","DIDx"] })',
  },
  "a sharded axis of another size than the mesh": {
    call: (h) => h.input([3], { mesh, parallel: ["DIDx"] }),
    code: "size-contradicts-mesh",
    message: /and the mesh differ in size/u,
    place: "T1.setDeviceMesh(DeviceMesh{0 1})",
  },
  "Stream twice": {
    call: (h) => h.tensor([2, 2], { parallel: ["Stream", "Stream"] }),
    code: "stream-repeated",
    message: /Stream is on two axes/u,
    place: 'T1.axis(1).parallelize("Stream")',
  },
  "a tensor of a Fusion": {
    call: (h) => h.set(new Fusion().input([2])),
    code: "foreign-tensor",
    message: /the tensor belongs to another program/u,
    place: "set(a tensor of another program)",
  },
  "an output of another builder": {
    call: (h, x) => h.set(x, { out: new HostProgramBuilder().tensor([4, 3]) }),
    code: "foreign-tensor",
    message: /the tensor belongs to another program/u,
    place: "set(T0)",
  },
  "what is no tensor": {
    call: (h, x) => h.add(x, [1] as never),
    code: "bad-argument",
    message: /operand 1 of add is not a tensor/u,
    place: "add(...)",
  },
  "a stream of another builder": {
    call: (h) => {
      h.stream();
      h.synchronize(new HostProgramBuilder().stream());
    },
    code: "bad-argument",
    message: /stream belongs to another builder/u,
    place: "synchronize()",
  },
  "a type of communication that does not exist": {
    call: (h, x) => h.communication("AllGather" as never, { input: x, output: x }),
    code: "bad-argument",
    message: /type of communication does not exist/u,
    place: 'communication("AllGather", T0, T0)',
  },
  "a reduction op that does not exist": {
    call: (h, x) => h.communication("Allreduce", { input: x, output: x, reduceOp: "avg" as never }),
    code: "bad-argument",
    message: /reduction op does not exist/u,
    place: 'communication("Allreduce", T0, T0)',
  },
  "a communicator backend that does not exist": {
    call: (h, x) => h.send(x, { peer: 1, backend: "NCCL" as never }),
    code: "bad-argument",
    message: /communicator backend does not exist/u,
    place: "send(T0)",
  },
  "handles of what neither sends nor receives": {
    call: (h, x) => h.shareMemHandles({ type: "put" as never, buffer: x, peer: 1 }),
    code: "bad-argument",
    message: /type of point-to-point communication does not exist/u,
    place: "put(T0)",
  },
  "a communication without an output": {
    call: (h, x) => h.communication("Allreduce", { input: x } as never),
    code: "bad-argument",
    message: /operand 1 of communication is not a tensor/u,
    place: "communication(...)",
  },
  "a communication of another builder": {
    call: (h) => {
      h.wait(new HostProgramBuilder().endCoalescing());
    },
    code: "bad-argument",
    message: /communication belongs to another builder/u,
    place: "wait()",
  },
  "operands of different shapes": {
    call: (h, x) => h.add(x, h.tensor([4, 2])),
    code: "shape-mismatch",
    message: /different extents along axis 1/u,
    place: "add(T0, T1)",
  },
  "operands of different dtypes": {
    call: (h, x) => h.matmul(x, h.tensor([3, 2], { dtype: "half" })),
    code: "dtype-mismatch",
    message: /different dtypes/u,
    place: "matmul(T0, T1)",
  },
  "an axis that does not exist": {
    call: (h, x) => h.sum(x, [2]),
    code: "axis-out-of-range",
    message: /axis 2 does not exist/u,
    place: "sum(T0, [2])",
  },
  "a slice along an axis that does not exist": {
    call: (h, x) => h.select(x, -3, 0),
    code: "axis-out-of-range",
    message: /axis -3 does not exist/u,
    place: "select(T0, -3, 0)",
  },
  "an index outside its axis": {
    call: (h, x) => h.selectOp(x, 0, 4),
    code: "index-out-of-range",
    message: /index 4 is outside axis 0/u,
    place: "selectOp(T0, 0, 4)",
  },
  "a given output of another shape": {
    call: (h, x) => h.set(x, { out: h.tensor([4, 2]) }),
    code: "shape-mismatch",
    message: /given output does not fit/u,
    place: "set(T0)",
  },
  "a given output without the reduced axis": {
    call: (h, x) => h.sum(x, [1], { out: h.tensor([4]) }),
    code: "shape-mismatch",
    message: /given output does not fit/u,
    place: "sum(T0, [1])",
  },
  "a given output of another dtype": {
    call: (h, x) => h.cast(x, "int", { out: h.tensor([4, 3]) }),
    code: "dtype-mismatch",
    message: /given output does not fit/u,
    place: 'cast(T0, "int")',
  },
  "a slice into another shape": {
    call: (h, x) => h.select(x, 0, 1, { out: h.tensor([4]) }),
    code: "shape-mismatch",
    message: /given output does not fit/u,
    place: "select(T0, 0, 1)",
  },
  "an op of the Fusion API": {
    call: (h, x) => {
      add(x, x);
      h.build();
    },
    code: "bad-argument",
    message: /op of the Fusion API/u,
    place: "build()",
  },
  "building inside a loop": {
    call: (h) => {
      h.forLoop(2, () => h.build());
    },
    code: "bad-argument",
    message: /built inside a loop or branch/u,
    place: "build()",
  },
};

describe("a call", () => {
  it.each(Object.entries(cases))("refuses %s", (_, { call, code, message, place }) => {
    const h = new HostProgramBuilder();
    const x = h.input([4, 3]);
    const diagnostic = diagnosticOf(() => call(h, x));
    expect(diagnostic.code).toBe(code);
    expect(diagnostic.message).toMatch(message);
    expect(diagnostic.place).toEqual({ kind: "call", text: place });
    for (const part of [diagnostic.found, diagnostic.expected, diagnostic.help]) expect(part).toBeTruthy();
  });

  it("that fails changes nothing", () => {
    const h = new HostProgramBuilder();
    const x = h.input([4, 3]);
    const before = h.build();
    for (const failing of [
      () => h.add(x, x, { out: new Fusion().input([4, 3]) }),
      () => h.sum(x, [7]),
      () => h.select(x, 5, 0),
    ]) {
      expect(failing).toThrow();
    }
    expect(h.build()).toEqual(before);
  });
});

describe("build", () => {
  it("throws everything that validation finds", () => {
    const h = new HostProgramBuilder();
    const [x, y] = [h.tensor([2]), h.tensor([2])];
    h.set(x, { out: y });
    h.communication("Gather", { input: x, output: y, team: [] });
    let diagnostics: readonly { readonly message: string }[] = [];
    try {
      h.build();
    } catch (error) {
      ({ diagnostics } = error as { diagnostics: typeof diagnostics });
    }
    expect(diagnostics.map(({ message }) => message)).toEqual([
      "a team is empty",
      "Gather needs a root",
      "T0 takes part in a communication and has no mesh",
      "T0 is used before it is bound",
    ]);
  });

  it("may be called again after more statements, and leaves earlier programs alone", () => {
    const h = new HostProgramBuilder();
    const x = h.input([2]);
    const first = h.build();
    h.set(x);
    const second = h.build();
    expect([first, second].map(({ body, tensors }) => [body.length, tensors.length])).toEqual([
      [0, 1],
      [1, 2],
    ]);
  });
});
