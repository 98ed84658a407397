/** The statements that HostProgramBuilder's methods append, as printed. */
import { describe, expect, it } from "vitest";
import { abs, add, DeviceMesh, Fusion, HostProgramBuilder, print, relu, type TensorView } from "@braid-compiler/braid";

/** The statements, without the container's lines. */
function body(h: HostProgramBuilder): readonly string[] {
  return print(h.build(), { indexDefinitions: false })
    .split("\n")
    .filter((line) => line.startsWith("  "))
    .map((line) => line.slice(2));
}

const mesh = DeviceMesh.range(2);

describe("tensors", () => {
  it("take extents of every kind", () => {
    const h = new HostProgramBuilder();
    const x = h.input([null, 4, null], { dtype: "half" });
    const y = h.tensor([...x.extents, null, "broadcast", { reduced: 3 }, { reduced: x.extents[0] ?? 1 }]);
    expect(String(x)).toBe("T0_g___half[iS0{i0}, iS1{4}, iS2{i3}]");
    expect(String(y)).toBe("T1_g_float[iS3{i0}, iS4{4}, iS5{i3}, iS6{i4}, bS7{1}, rS8{3}, rS9{i0}]");
  });

  it("take the Fusion API's annotations, as options or later", () => {
    const h = new HostProgramBuilder();
    const x = h.input([2, 4], { mesh, parallel: ["DIDx"], memory: "symmetric" });
    const y = h.tensor([2, 4]).setDeviceMesh(mesh).setMemoryType("symmetric");
    y.axis(0).parallelize("DIDx");
    expect(String(x)).toBe("T0_sym_float[ideviceIdx.x0{2}, iS1{4}] (DeviceMesh{0 1})");
    expect(String(y)).toBe("T1_sym_float[ideviceIdx.x2{2}, iS3{4}] (DeviceMesh{0 1})");
  });

  it("number extents as the Fusion API does", () => {
    const h = new HostProgramBuilder();
    const f = new Fusion();
    for (const extents of [[null, null, 3], [null]]) expect(String(h.input(extents))).toBe(String(f.input(extents)));
  });

  it("make the program's inputs and outputs, in order", () => {
    const h = new HostProgramBuilder();
    const [a, b, c] = [h.input([2]), h.tensor([2]), h.input([2])];
    h.output(b);
    h.output(a);
    const program = h.build();
    expect(program.inputs).toEqual([a.id, c.id]);
    expect(program.outputs).toEqual([b.id, a.id]);
  });
});

describe("streams and memory", () => {
  it("print as nvFuser prints them", () => {
    const h = new HostProgramBuilder();
    const x = h.tensor([2, 3, { reduced: 4 }]);
    const caller = h.getCurrentStream();
    const [second, third] = [h.stream(), h.stream(h.scalars.add(1, h.scalars.numberOfStreams))];
    h.setCurrentStream(second);
    h.synchronize(caller);
    h.getCurrentStream();
    h.setCurrentStream(third);
    h.allocate(x, { zeroInit: true });
    h.deallocate(x);
    const text = "T0_g_float[iS0{2}, iS1{3}, rS2{4}]";
    expect(body(h)).toEqual([
      "GetCurrentStream into Stream 0",
      "SetCurrentStream to Stream 1",
      "Synchronize Stream 0",
      "GetCurrentStream into Stream 3",
      "SetCurrentStream to Stream ( 1 + numberOfStreams )",
      `${text} = ALLOCATE(buffer=${text}, mem_type=global, size=6, zero_init=true, resets_to_zero=false)`,
      "Deallocate {",
      `  ${text}`,
      "}",
    ]);
  });

  it("allocate in the tensor's memory", () => {
    const h = new HostProgramBuilder();
    h.allocate(h.tensor([2], { memory: "symmetric" }));
    expect(h.build().body).toMatchObject([{ kind: "Allocate", memory: "symmetric" }]);
  });
});

describe("scopes", () => {
  it("nest", () => {
    const h = new HostProgramBuilder();
    const x = h.tensor([4, 2], { parallel: ["Stream"] });
    const streams = [h.stream(), h.stream(), h.stream(), h.stream()];
    const [a, b, c, d] = streams;
    if (!a || !b || !c || !d) throw new Error("four streams");
    h.forLoop(3, (i) => {
      h.ifThenElse(
        h.scalars.lt(i, h.scalars.rank),
        () => {
          h.forLoop({ over: x.axis(0) }, () => {
            h.setCurrentStream(a);
          });
        },
        () => {
          h.setCurrentStream(b);
        },
      );
      h.setCurrentStream(c);
    });
    h.ifThenElse(1, () => {});
    h.setCurrentStream(d);
    expect(body(h)).toEqual([
      "FOR i0 from 0 to 3:",
      "  IF Manual ( i0 < rank ):",
      "    FOR streamIdx in istreamIdx0{4}:",
      "      SetCurrentStream to Stream 0",
      "  ELSE:",
      "    SetCurrentStream to Stream 1",
      "  SetCurrentStream to Stream 2",
      "IF Manual 1:",
      "SetCurrentStream to Stream 3",
    ]);
  });

  it("loop over ranges", () => {
    const h = new HostProgramBuilder();
    const x = h.tensor([4], { parallel: ["Stream"] });
    const nothing = (): void => {};
    h.forLoop({ start: 1, stop: h.scalars.numberOfStreams, step: 2 }, nothing);
    h.forLoop({ over: x.axis(0), start: 1, stop: 3 }, nothing);
    h.forLoop(h.scalars.rank, nothing);
    const [first, second, third] = h.build().body;
    const value = (number: number): object => ({ kind: "constant", value: number });
    expect(first).toMatchObject({
      iterDomain: null,
      start: value(1),
      stop: { name: "numberOfStreams" },
      step: value(2),
    });
    expect(second).toMatchObject({ index: { name: "streamIdx" }, start: value(1), stop: value(3), step: value(1) });
    expect(third).toMatchObject({ start: value(0), stop: { name: "rank" } });
    expect(first).not.toMatchObject({ index: { name: (third as { index: { name: string } }).index.name } });
  });

  it("close when their body throws", () => {
    const h = new HostProgramBuilder();
    const stream = h.stream();
    expect(() => {
      h.forLoop(2, () => {
        throw new Error("mine");
      });
    }).toThrow("mine");
    h.setCurrentStream(stream);
    expect(body(h)).toEqual(["SetCurrentStream to Stream 0"]);
  });
});

describe("index arithmetic", () => {
  it("names every result and prints it by name in slices, in full elsewhere", () => {
    const h = new HostProgramBuilder();
    const x = h.input([8, 2]);
    const { add: plus, mod, rank } = h.scalars;
    const index = mod(plus(rank, 3), 8);
    h.select(x, 0, index);
    h.setCurrentStream(h.stream(index));
    expect(body(h)).toEqual([
      "T1_l_float[iS2{2}]",
      "   = HirAliasSelect( T0_g_float[iS0{8}, iS1{2}], axis = iS0{8}, index = i4 )",
      "SetCurrentStream to Stream ( ( rank + 3 ) % 8 )",
    ]);
    expect(print(h.build())).toContain("Index definitions:\n  i3 = rank + 3;\n  i4 = i3 % 8;\n");
  });

  it("has every operation", () => {
    const h = new HostProgramBuilder();
    const { add: plus, sub, mul, div, mod, ceilDiv, eq, ne, lt, le, gt, ge, and, or, rank, named } = h.scalars;
    const results = [plus, sub, mul, div, mod, ceilDiv, eq, ne, lt, le, gt, ge, and, or].map((op) =>
      op(rank, named("n")),
    );
    for (const result of results) h.ifThenElse(result, () => {});
    expect(body(h)).toEqual([
      ..."+ - * / %".split(" ").map((symbol) => `IF Manual ( rank ${symbol} n ):`),
      "IF Manual ( ceilDiv(rank, n) ):",
      ..."== != < <= > >= && ||".split(" ").map((symbol) => `IF Manual ( rank ${symbol} n ):`),
    ]);
  });
});

describe("slices", () => {
  it("keep the annotations of what is left", () => {
    const h = new HostProgramBuilder();
    const x = h.input([4, 2, 3], { mesh, parallel: ["Stream", "DIDx"] });
    expect(String(h.select(x, 0, 1))).toBe("T1_l_float[ideviceIdx.x3{2}, iS4{3}] (DeviceMesh{0 1})");
    expect(String(h.select(x, -1, 1))).toBe("T2_l_float[istreamIdx5{4}, ideviceIdx.x6{2}] (DeviceMesh{0 1})");
  });

  it("count reduced axes, which selecting removes", () => {
    const h = new HostProgramBuilder();
    const x = h.input([4, { reduced: 2 }, 3]);
    expect(String(h.select(x, 2, 0))).toBe("T1_l_float[iS3{4}, rS4{2}]");
    expect(String(h.select(x, 1, 0))).toBe("T2_l_float[iS5{4}, iS6{3}]");
  });
});

describe("computations", () => {
  interface Case {
    readonly call: (h: HostProgramBuilder, a: TensorView, b: TensorView, out?: TensorView) => TensorView;
    /** The value that the statement prints; a is T0 [4, 3], b is T1 [4, 3]. */
    readonly prints: string;
    /** The output's axes. */
    readonly axes: string;
    readonly dtype?: string;
  }
  const a = "T0_g_float[iS0{4}, iS1{3}]";
  const b = "T1_g_float[iS2{4}, iS3{3}]";
  const reduction = (op: string, initial: string): string =>
    `= reduction( ${a}, op = ${op}, initial value = ${initial}, allreduce = false )`;
  const cases: { readonly [name: string]: Case } = {
    set: {
      call: (h, x, _, out) => h.set(x, { out }),
      prints: `= Set( ${a}, cache_op=Streaming )`,
      axes: "iS{4}, iS{3}",
    },
    add: { call: (h, x, y, out) => h.add(x, y, { out }), prints: `= ${a} + ${b};`, axes: "iS{4}, iS{3}" },
    sub: { call: (h, x, y, out) => h.sub(x, y, { out }), prints: `= ${a} - ${b};`, axes: "iS{4}, iS{3}" },
    mul: { call: (h, x, y, out) => h.mul(x, y, { out }), prints: `= ${a} * ${b};`, axes: "iS{4}, iS{3}" },
    div: { call: (h, x, y, out) => h.div(x, y, { out }), prints: `= ${a} / ${b};`, axes: "iS{4}, iS{3}" },
    unary: { call: (h, x, _, out) => h.unary("relu", x, { out }), prints: `= relu(${a});`, axes: "iS{4}, iS{3}" },
    cast: {
      call: (h, x, _, out) => h.cast(x, "int", { out }),
      prints: `= __cast( ${a}, int )`,
      axes: "iS{4}, iS{3}",
      dtype: "int",
    },
    sum: {
      call: (h, x, _, out) => h.sum(x, [-1], { out }),
      prints: reduction("add", "float(0)"),
      axes: "iS{4}, rS{3}",
    },
    prod: {
      call: (h, x, _, out) => h.prod(x, [0], { out }),
      prints: reduction("mul", "float(1)"),
      axes: "rS{4}, iS{3}",
    },
    amax: { call: (h, x, _, out) => h.amax(x, [0], { out }), prints: reduction("fmax", "-inf"), axes: "rS{4}, iS{3}" },
    amin: {
      call: (h, x, _, out) => h.amin(x, [0, 1], { out }),
      prints: reduction("fmin", "inf"),
      axes: "rS{4}, rS{3}",
    },
    matmul: {
      call: (h, x, y, out) => h.matmul(x, h.select(y, 0, 0), { out }),
      prints: `= matmul(${a}, T2_l_float[iS4{3}])`,
      axes: "iS{4}, rS{3}",
    },
    linear: {
      call: (h, x, y, out) => h.linear(x, y, null, { out }),
      prints: `= linear(${a}, ${b} )`,
      axes: "iS{4}, iS{4}, rS{3}",
    },
    broadcast: {
      call: (h, x, _, out) => h.broadcast(x, [false, true, false], { out }),
      prints: `= broadcast( ${a}, flags = {false, true, false} )`,
      axes: "iS{4}, bS{1}, iS{3}",
    },
    squeeze: {
      call: (h, x, _, out) => h.squeeze(h.broadcast(x, [true, false, false]), [0], { out }),
      prints: "= squeeze( T2_g_float[bS4{1}, iS5{4}, iS6{3}], flags = {true, false, false} )",
      axes: "iS{4}, iS{3}",
    },
    permute: {
      call: (h, x, _, out) => h.permute(x, [1, 0], { out }),
      prints: `= Set.Permute( ${a}, cache_op=Streaming )`,
      axes: "iS{3}, iS{4}",
    },
    reshape: { call: (h, x, _, out) => h.reshape(x, [2, -1], { out }), prints: `= view( ${a} )`, axes: "iS{2}, iS{6}" },
    slice: {
      call: (h, x, _, out) => h.slice(x, [1, 0], [3, 3], { out }),
      prints: `= slice( ${a}, { {1, 3, 1} {0, 3, 1} } )`,
      axes: "iS{2}, iS{3}",
    },
    "selectOp, a constant from the end": {
      call: (h, x, _, out) => h.selectOp(x, 1, -1, { out }),
      prints: `= select( ${a}, axis = iS1{3}, index = 2 )`,
      axes: "iS{4}",
    },
    "selectOp, a scalar": {
      call: (h, x, _, out) => h.selectOp(x, -2, h.scalars.rank, { out }),
      prints: `= select( ${a}, axis = iS0{4}, index = rank )`,
      axes: "iS{3}",
    },
  };

  const lastOf = (h: HostProgramBuilder): string => {
    const lines = body(h);
    const start = lines.findLastIndex((line) => !line.startsWith(" "));
    return lines.slice(start).join(" ").replaceAll(/\s+/gu, " ");
  };
  const withoutNumbers = (tensor: TensorView): string =>
    /\[(?<axes>.*)\]/u.exec(String(tensor))?.groups?.["axes"]?.replaceAll(/(?<=S)\d+/gu, "") ?? "";

  it.each(Object.entries(cases))("%s", (_, { call, prints, axes, dtype = "float" }) => {
    const h = new HostProgramBuilder();
    const output = call(h, h.input([4, 3]), h.input([4, 3]));
    expect(lastOf(h)).toBe(`${String(output)} ${prints}`);
    expect(withoutNumbers(output)).toBe(axes);
    expect(output.dtype).toBe(dtype);
  });

  it.each(Object.entries(cases))("%s into a given output", (_, { call, dtype = "float" }) => {
    const like = new HostProgramBuilder();
    const { domain } = call(like, like.input([4, 3]), like.input([4, 3])).data();
    const h = new HostProgramBuilder();
    const [x, y] = [h.input([4, 3]), h.input([4, 3])];
    const axes = domain.logical.map(({ extent, iterType }) =>
      iterType === "reduction" ? { reduced: extent } : extent,
    );
    const out = h.tensor(axes, { dtype: dtype === "int" ? "int" : "float" });
    expect(call(h, x, y, out)).toBe(out);
    expect(h.build().body.at(-1)).toMatchObject({ output: out.id });
  });

  it("iota counts the elements of an axis", () => {
    const h = new HostProgramBuilder();
    h.iota(4);
    h.iota(3, { dtype: "int" });
    expect(body(h)).toEqual([
      "T0_g_int64_t[iS0{4}]",
      "   = iota(4, 0, 1, int64_t);",
      "T1_g_int[iS1{3}]",
      "   = iota(3, 0, 1, int);",
    ]);
  });

  it("linear takes a bias", () => {
    const h = new HostProgramBuilder();
    h.linear(h.input([4, 3]), h.input([5, 3]), h.input([5]));
    expect(lastOf(h)).toMatch(/linear\(T0_g_float\[.*\], T1_g_float\[.*\] , T2_g_float\[iS4\{5\}\] \)$/u);
  });
});

describe("host units", () => {
  const unit = (extents: readonly (number | null)[]): Fusion => {
    const f = new Fusion();
    f.output(abs(f.input(extents)));
    return f;
  };

  it("take their symbols' extents from the tensors that they are given, and are made once per Fusion and extents", () => {
    const h = new HostProgramBuilder();
    const f = unit([null, null]);
    const [y] = h.postOnStream(f, [h.input([4, null])]);
    h.postOnStream(f, [h.input([4, 2])]);
    if (y !== undefined) h.postOnStream(f, [y]);
    const program = h.build();
    expect(program.body.map((statement) => (statement.kind === "PostOnStream" ? statement.unit : -1))).toEqual([
      0, 1, 0,
    ]);
    const printed = print(program);
    expect(printed).toContain("HostUnit0: Inputs={T0_g_float[iS0{4}, iS1{i2}], }");
    expect(printed).toContain("HostUnit1: Inputs={T0_g_float[iS0{4}, iS1{2}], }");
    expect(String(y)).toBe("T1_g_float[iS2{4}, iS3{i2}]");
    expect(f.data().inputs).toEqual([0]);
  });

  it("see the local extent of an axis that they do not shard", () => {
    const h = new HostProgramBuilder();
    const x = h.input([null, 3], { mesh, parallel: ["DIDx"] });
    const y = h.tensor(x.extents, { mesh, parallel: ["DIDx"] });
    h.postOnStream(unit([null, 3]), [x], [y]);
    expect(print(h.build())).toContain("HostUnit0: Inputs={T0_g_float[iS0{1}, iS1{3}], }");
  });

  it("keep the annotations of their outputs", () => {
    const h = new HostProgramBuilder();
    const f = new Fusion();
    const x = f.input([2, 3]);
    const y = relu(add(x, x));
    f.output(y);
    for (const tensor of [x, y]) tensor.setDeviceMesh(mesh).axis(0).parallelize("DIDx");
    const [made] = h.postOnStream(f, [h.input([2, 3], { mesh, parallel: ["DIDx"] })]);
    expect(String(made)).toBe("T1_g_float[ideviceIdx.x2{2}, iS3{3}] (DeviceMesh{0 1})");
  });
});

describe("communications", () => {
  const two = (): { h: HostProgramBuilder; x: TensorView; y: TensorView } => {
    const h = new HostProgramBuilder();
    const x = h.input([2, 3], { mesh, parallel: ["DIDx"] });
    const y = h.tensor([2, 3], { mesh });
    h.output(y);
    return { h, x, y };
  };
  const x = "T0_g_float[ideviceIdx.x0{2}, iS1{3}] (DeviceMesh{0 1})";
  const y = "T1_g_float[iS2{2}, iS3{3}] (DeviceMesh{0 1})";

  it("print and are numbered in order", () => {
    const { h, x: input, y: output } = two();
    const gather = h.communication("Allgather", { input, output });
    h.communication("Gather", { input, output, team: [1, 0], root: 1, backend: "ucc" });
    h.communication("Reduce", { input, output, root: h.scalars.rank, reduceOp: "max" });
    h.communication("Allreduce", { input, output });
    h.wait(gather);
    h.post(gather);
    expect(body(h)).toEqual([
      `Communication 0 (type=Allgather, team=(0 1), input=${x}, output=${y}, backend=NCCL)`,
      `Communication 1 (type=Gather, team=(1 0), root=0, input=${x}, output=${y}, backend=UCC)`,
      `Communication 2 (type=Reduce, team=(0 1), root=rank, op=MAX, input=${x}, output=${y}, backend=NCCL)`,
      `Communication 3 (type=Allreduce, team=(0 1), input=${x}, output=${y}, backend=NCCL)`,
      "Wait Communication 0",
      `Communication 0 (type=Allgather, team=(0 1), input=${x}, output=${y}, backend=NCCL)`,
    ]);
    expect(h.build().exprCount).toBe(4);
  });

  it("point to point: coalesced, and one-sided", () => {
    const { h, x: input, y: output } = two();
    h.startCoalescing();
    h.recv(output, { peer: 1 });
    h.send(input, { peer: h.scalars.sub(1, h.scalars.rank) });
    h.wait(h.endCoalescing());
    const [recv, send] = h.shareMemHandles(
      { type: "recv", buffer: output, peer: 1 },
      { type: "send", buffer: input, peer: 1 },
    );
    if (recv === undefined || send === undefined) throw new Error("two handles");
    h.post(send);
    h.post(recv);
    h.wait(send);
    const sendText = `P2PCommunication 4 (type=send, buffer=${x}, peer=1, backend=CUDA)`;
    const recvText = `P2PCommunication 3 (type=recv, buffer=${y}, peer=1, backend=CUDA)`;
    expect(body(h)).toEqual([
      "StartCoalescing",
      `P2PCommunication 0 (type=recv, buffer=${y}, peer=1, backend=NCCL)`,
      `P2PCommunication 1 (type=send, buffer=${x}, peer=i3, backend=NCCL)`,
      "EndCoalescing 2",
      "Wait Communication 2",
      `ShareMemHandles(${recvText}, ${sendText},`,
      sendText,
      recvText,
      "Wait Communication 4",
    ]);
  });
});
