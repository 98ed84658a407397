/**
 * `parse` is the inverse of `print` for every fixture of a pass, the programs of nvFuser's dumps, and hand-built
 * programs of everything that prints.
 */
import path from "node:path";
import { describe, expect, it } from "vitest";
import {
  add,
  DeviceMesh,
  DiagnosticError,
  exp,
  lt,
  where,
  Fusion,
  HostProgramBuilder,
  lower,
  parse,
  print,
} from "@braid-compiler/braid";
import { passes } from "@braid-compiler/braid/internals";
import { binaryFunctions } from "../../../src/ir/ops/functions/binary.ts";
import { unaryFunctions } from "../../../src/ir/ops/functions/unary.ts";
import { keysOf } from "../../../src/support/invariant.ts";
import type { Fixtures } from "../../support/fixture.ts";
import { dumpPrograms } from "../dump-programs.ts";
import { expectRoundTrip } from "../../support/round-trip.ts";
import { everyNth } from "../../support/suite.ts";

const root = path.resolve(import.meta.dirname, "../../..");

describe("fixtures of passes", async () => {
  const folder = path.join(root, "test/fixtures");
  const tables = [...Object.values(passes).map(({ name }) => name), "checked"];
  const loaded = await Promise.all(
    tables.map(async (name) => {
      const { default: fixtures } = (await import(path.join(folder, name, "fixtures.ts"))) as { default: Fixtures };
      return Object.entries(fixtures).map(([key, fixture]) => [`${name}/${key}`, fixture] as const);
    }),
  );
  it.each(everyNth(loaded.flat(), 24))("%s", (name, fixture) => {
    try {
      lower(fixture.build(), {
        ...fixture.options,
        onPass: ({ program }) => {
          // A dump does not say which outputs lie over inputs: what is parsed gives them memory of their own.
          if (program.kind === "HostProgram") expectRoundTrip({ ...program, aliases: [] }, [{ rank: 0 }, { rank: 1 }]);
        },
      });
    } catch (error) {
      if (!(error instanceof DiagnosticError)) throw error;
      expect(path.basename(name)).toMatch(/^error-/u);
    }
  });
});

describe("hand-built programs of nvFuser's dumps", () => {
  it.each(dumpPrograms)("$name", ({ build }) => {
    const sizes = [
      { i0: 8, i2: 6, i3: 4, i4: 5, i5: 5, i6: 3 },
      { i0: 8, i2: 8, i3: 1, i4: 1, i5: 1, i6: 7 },
    ];
    const runs = [0, 3, 7].flatMap((rank) => sizes.map((own) => ({ rank, sizes: own, streams: 3 })));
    expectRoundTrip(build(), runs);
  });
});

describe("hand-built", () => {
  it("streams with a constant index, without one, and with an expression", () => {
    const h = new HostProgramBuilder();
    const caller = h.getCurrentStream();
    h.setCurrentStream(h.stream(2));
    h.synchronize(caller);
    h.setCurrentStream(h.stream());
    h.setCurrentStream(h.stream(h.scalars.mod(h.scalars.rank, h.scalars.numberOfStreams)));
    const { body, streams } = expectRoundTrip(h.build(), [{ rank: 1 }]);
    expect(body.map((statement) => ("stream" in statement ? streams[statement.stream]?.index?.kind : null))).toEqual([
      undefined,
      "constant",
      undefined,
      undefined,
      "binary",
    ]);
  });

  it("loops with other bounds, and branches with an empty side", () => {
    const h = new HostProgramBuilder();
    const x = h.input([12, 3]);
    const y = h.tensor([12, 3], { parallel: ["Stream"] });
    h.output(y);
    h.allocate(y, { zeroInit: true });
    h.forLoop({ start: 1, stop: 12, step: 4 }, (i) => h.set(h.select(x, 0, i), { out: h.select(y, 0, i) }));
    h.forLoop({ over: y.axis(0), start: 2, stop: 9, step: 3 }, (i) => {
      h.ifThenElse(
        h.scalars.and(h.scalars.ge(i, 3), h.scalars.ne(i, h.scalars.min(i, 7))),
        () => {},
        () => h.set(h.select(x, 0, i), { out: h.select(y, 0, i) }),
      );
    });
    h.forLoop({ over: y.axis(0), start: 0, stop: 12 }, () => h.ifThenElse(h.scalars.named("again"), () => {}));
    expectRoundTrip(h.build(), [{ rank: 0, scalars: { again: 1 } }]);
  });

  it("names: defined in terms of one another, of extents, of unnamed values and of loops", () => {
    const h = new HostProgramBuilder();
    const { add: plus, sub, mod, ceilDiv, div, mul } = h.scalars;
    const x = h.input([null, null]);
    const [rows] = x.extents;
    if (rows === undefined) throw new Error("two axes");
    h.forLoop(rows, (i) => {
      const half = ceilDiv(rows, 2);
      const unnamed = { kind: "binary", op: "add", lhs: half, rhs: i } as const;
      h.select(x, 0, mod(plus(unnamed, half), rows));
      h.select(x, 0, unnamed.rhs);
      h.select(x, 0, mod(unnamed, rows));
      h.select(x, 0, { kind: "binary", op: "mod", lhs: unnamed, rhs: rows });
      h.select(x, 0, div(mul(sub(rows, 1), half), rows));
      h.selectOp(x, 0, mod(half, rows));
    });
    expectRoundTrip(
      h.build(),
      [3, 4].map((i0) => ({ rank: 0, sizes: { i0, i2: 2 } })),
    );
  });

  it("every op, in the container and in a host unit", () => {
    const h = new HostProgramBuilder();
    const x = h.input([4, 4, 4]);
    const w = h.input([4, 4]);
    const b = h.input([4]);
    h.output(h.permute(x, [2, 0, 1]));
    // Numbers that do not tell the order.
    h.output(h.permute(x, [1, 2, 0], { out: h.tensor([4, 4, 4]) }));
    h.output(h.permute(x, [0, 2, 1], { out: h.tensor([4, 4, 4]) }));
    h.output(h.reshape(h.broadcast(h.cast(h.linear(x, w, b), "half"), [false, true, false, false]), [8, 8]));
    h.output(h.div(h.sub(h.mul(h.matmul(x, w), x), x), h.add(x, x)));
    const flags = h.cast(w, "bool");
    for (const op of keysOf(unaryFunctions)) h.output(h.unary(op, unaryFunctions[op].operand === "bool" ? flags : w));
    const operands = { number: w, float: w, any: w, integer: h.cast(w, "int"), bool: flags } as const;
    for (const op of keysOf(binaryFunctions)) {
      const operand = operands[binaryFunctions[op].operand];
      h.output(h.binary(op, operand, operand));
      if (binaryFunctions[op].operand !== "bool") h.output(h.binary(op, 2, operand));
    }
    for (const dtype of ["int", "int64", "bool", "double", "bfloat16"] as const) {
      const converted = h.cast(x, dtype);
      if (dtype !== "bool") h.output(h.sum(converted, [0, 2]));
      h.output(h.amax(converted, [1]));
      h.output(h.amin(converted, [0]));
      if (dtype !== "bool") h.output(h.prod(converted, [2]));
    }
    h.output(h.slice(x, [0, 1, 2], [4, 3, 4]));
    h.output(h.selectOp(x, 1, -1));
    h.output(h.squeeze(h.slice(w, [1, 0], [2, 4]), [0]));
    const f = new Fusion();
    const [p, q] = [f.input([4, 4]), f.input([4, 4])];
    f.output(add(exp(p), q));
    const isLess = lt(p, q);
    for (const y of [where(isLess, p, q), where(isLess, 0.5, q), where(isLess, p, -1)]) f.output(y);
    for (const y of h.postOnStream(f, [w, w])) h.output(y);
    expectRoundTrip(h.build(), [{ rank: 0 }]);
  });

  it("communications of every type, on meshes that are not 0 to n-1, with roots of every kind", () => {
    const h = new HostProgramBuilder();
    const mesh = new DeviceMesh([2, 1]);
    const [pair, one] = [{ mesh, parallel: ["DIDx"] as const }, { mesh: new DeviceMesh([1]) }];
    const whole = h.input([2, 3], { mesh });
    const sharded = h.input([2, 3], pair);
    const out = h.tensor([2, 3], { mesh });
    h.allocate(out);
    const all = { input: sharded, output: out, team: [2, 1] };
    h.wait(h.communication("Allgather", { ...all, backend: "ucc" }));
    h.wait(h.communication("Gather", { ...all, root: 0 }));
    h.wait(h.communication("Gather", { ...all, root: 1 }));
    h.wait(h.communication("Broadcast", { input: whole, output: out, team: [2, 1], root: 1 }));
    h.forLoop(2, (i) => h.wait(h.communication("Broadcast", { input: whole, output: out, team: [1, 2], root: i })));
    for (const reduceOp of ["sum", "prod", "min", "max"] as const) {
      h.wait(h.communication("Allreduce", { input: whole, output: out, team: [2, 1], reduceOp }));
    }
    h.wait(
      h.communication("Reduce", {
        input: whole,
        output: h.tensor([2, 3], one),
        team: [2, 1],
        root: 1,
        reduceOp: "max",
      }),
    );
    const program = h.build();
    const text = print(program);
    expect(text).toContain("type=Gather, team=(2 1), root=2,");
    expect(text).toContain("type=Broadcast, team=(2 1), root=1,");
    expect(text).toContain("type=Reduce, team=(2 1), root=1, op=MAX,");
    const read = expectRoundTrip(
      program,
      [1, 2].map((rank) => ({ rank })),
    );
    expect(read.body).toEqual(program.body);
  });

  it("splits, merges, memory order, symmetric memory and meshes of two dimensions", () => {
    const h = new HostProgramBuilder();
    const mesh = new DeviceMesh([
      [0, 1],
      [2, 3],
    ]);
    const x = h.input([8, 6, 4], { mesh });
    x.split(0, 2, { inner: false });
    x.axis(0).parallelize("DIDx");
    x.split(1, 2);
    const y = h.tensor([null, 6, 4], { mesh, memory: "symmetric" });
    y.split(0, 2, { inner: false }).split(2, 3).axis(0).parallelize("DIDy");
    const z = h.tensor([2, 2, 4], { mesh, parallel: ["DIDy", "DIDx"] });
    z.setAllocationDomain([2, 0, 1]);
    const merged = h.tensor([2, 3]);
    merged.merge(0);
    for (const tensor of [y, z, merged]) h.allocate(tensor);
    const program = h.build();
    const text = print(program);
    expect(text).toContain("TransformPrinter :");
    const read = expectRoundTrip(
      program,
      [0, 3].map((rank) => ({ rank, sizes: { i3: 10 } })),
    );
    expect(read.tensors.map(({ domain }) => domain)).toEqual(program.tensors.map(({ domain }) => domain));
    expect(() => parse(print(program, { transforms: false }))).toThrow("dump-incomplete");
  });
});
