/**
 * Contractions that add to their output or read an operand permuted, in hand-written programs: results, printed text
 * and diagnostics.
 */
import {
  DiagnosticError,
  HostProgramBuilder,
  link,
  parse,
  print,
  record,
  type TensorView,
  verify,
} from "@braid-compiler/braid";
import { describe, expect, it } from "vitest";
import type { HostProgram } from "../../src/host/nodes.ts";
import type { MatmulOp } from "../../src/ir/ops/op.ts";
import { validateHostProgram } from "../../src/host/validate/validate.ts";
import { expectRoundTrip } from "../support/round-trip.ts";
import { counted, runPrograms } from "./run-programs.ts";

const rank = { rank: 0 };

/** c = sum over s of a[s] b[s], in `chunks` statements. */
function chunked(chunks: number, bias = false): HostProgram {
  const h = new HostProgramBuilder();
  const a = h.input([chunks, 2, 3]);
  const b = h.input([chunks, ...(bias ? [4, 3] : [3, 4])]);
  const c = h.tensor([2, 4, { reduced: 3 * chunks }]);
  const offset = bias ? h.input([4]) : null;
  h.output(c);
  h.allocate(c);
  for (let s = 0; s < chunks; s++) {
    const [x, y] = [h.select(a, 0, s), h.select(b, 0, s)];
    const options = { out: c, accumulate: s > 0 };
    if (bias) h.linear(x, y, s === 0 ? offset : null, options);
    else h.matmul(x, y, options);
  }
  return h.build();
}

async function outputOf(program: HostProgram, shapes: readonly (readonly number[])[]): Promise<readonly number[]> {
  const [[output] = []] = await runPrograms([program], { inputs: [shapes.map((shape) => counted([...shape]))] });
  return Array.from(output?.data ?? [], Number);
}

function diagnosticsOf(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    if (error instanceof DiagnosticError) return error.message;
    throw error;
  }
  return "";
}

/** The program with its last matmul changed. */
function changed(program: HostProgram, change: (op: MatmulOp) => MatmulOp): HostProgram {
  const last = program.body.findLastIndex(({ kind }) => kind === "Matmul");
  return {
    ...program,
    body: program.body.map((each, i) => (i === last && each.kind === "Matmul" ? change(each) : each)),
  };
}

function matmulProgram(): HostProgram {
  const h = new HostProgramBuilder();
  h.output(h.matmul(h.input([3, 3]), h.input([3, 3])));
  return h.build();
}

describe("chunks of a contraction", () => {
  it("are added in the output", async () => {
    const [a, b] = [Array.from({ length: 18 }, (_, i) => i), Array.from({ length: 36 }, (_, i) => i)];
    const expected = Array.from({ length: 8 }, (_, i) => {
      const [m, n] = [Math.floor(i / 4), i % 4];
      let sum = 0;
      for (let s = 0; s < 3; s++)
        for (let k = 0; k < 3; k++) sum += (a[s * 6 + m * 3 + k] ?? 0) * (b[s * 12 + k * 4 + n] ?? 0);
      return sum;
    });
    expect(
      await outputOf(chunked(3), [
        [3, 2, 3],
        [3, 3, 4],
      ]),
    ).toEqual(expected);
  });

  it("take a bias once, with the first", async () => {
    const withBias = await outputOf(chunked(2, true), [[2, 2, 3], [2, 4, 3], [4]]);
    const shapes = [[2, 2, 3], [2, 4, 3], [4]];
    const zero = shapes.map((shape, i) => (i === 2 ? counted([4], () => 0) : counted([...shape])));
    const [[without] = []] = await runPrograms([chunked(2, true)], { inputs: [zero] });
    const rows = Array.from(without?.data ?? [], Number);
    expect(withBias).toEqual(rows.map((value, i) => value + (i % 4)));
  });

  it("read what the output holds: without a first chunk that is nothing", () => {
    const whole = chunked(1);
    const program = link([
      record(
        changed(whole, (op) => ({ ...op, accumulate: true })),
        rank,
      ),
    ]);
    const { findings } = verify(program);
    expect(findings.map(({ code }) => code)).toEqual(["unwritten-read"]);
    expect(verify(link([record(whole, rank)])).ok).toBe(true);
  });

  it("may multiply the output itself, which is copied first", async () => {
    const h = new HostProgramBuilder();
    const c = h.input([2, 2]);
    const out = h.tensor([2, 2, { reduced: 2 }]);
    h.output(out);
    h.allocate(out);
    h.matmul(c, c, { out, accumulate: false });
    h.matmul(out, c, { out, accumulate: true });
    // c = [[0, 1], [2, 3]]: c^2 + c^3.
    expect(await outputOf(h.build(), [[2, 2]])).toEqual([8, 14, 28, 50]);
  });

  it("need one output that they are given", () => {
    const h = new HostProgramBuilder();
    const [a, b] = [h.input([2, 3]), h.input([3, 4])];
    const message = diagnosticsOf((): TensorView => h.matmul(a, b, { accumulate: true }));
    expect(message).toContain("error[bad-argument]: chunks of a contraction have one output");
  });
});

describe("dumps", () => {
  it("say what is added and what is permuted, and are read again", () => {
    const program = changed(chunked(2), (op) => op);
    expect(print(program)).toContain(", accumulate = false)");
    expect(print(program)).toContain(", accumulate = true)");
    expectRoundTrip(program, [rank]);
    expectRoundTrip(chunked(2, true), [rank]);
    const permuted = changed(matmulProgram(), (op) => ({ ...op, orders: [[1, 0], null] }));
    expect(print(permuted)).toContain("matmul(permute( T0_g_float[iS0{3}, iS1{3}], order = {1, 0} ),");
    expectRoundTrip(permuted, [rank]);
  });

  it.each([
    ["accumulate = true", "accumulate = maybe", "dump-syntax"],
    ["accumulate = true", "beta = 1", "dump-syntax"],
  ])("with %s as %s are refused", (from, to, code) => {
    const text = print(chunked(2)).replace(from, to);
    expect(diagnosticsOf(() => parse(text))).toContain(`error[${code}]`);
  });
});

describe("an order", () => {
  it.each([[[0]], [[0, 0]], [[1, 2]], [[0, 1, 2]]])("%j of two axes is refused", (order) => {
    const broken = changed(matmulProgram(), (op) => ({ ...op, orders: [order, null] }));
    expect(validateHostProgram(broken).map(({ message }) => message)).toEqual([
      "operand 0 of Matmul is read in an order that is not a permutation of its axes",
    ]);
  });

  it("reads the operand by its strides", async () => {
    const values = [0, 1, 2, 3, 4, 5, 6, 7, 8];
    const at = (row: number, column: number): number => values[row * 3 + column] ?? 0;
    const expected = values.map((_, i) =>
      [0, 1, 2].reduce((sum, k) => sum + at(k, Math.floor(i / 3)) * at(i % 3, k), 0),
    );
    const both = changed(matmulProgram(), (op) => ({
      ...op,
      orders: [
        [1, 0],
        [1, 0],
      ],
    }));
    expect(
      await outputOf(both, [
        [3, 3],
        [3, 3],
      ]),
    ).toEqual(expected);
    const { commands } = record(both, rank);
    expect(commands.filter(({ kind }) => kind === "copy")).toEqual([]);
  });
});
