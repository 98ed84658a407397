/**
 * Stream on a contracted axis itself (nvFuser's HirLowerStreamTest.Matmul_K, which had to refuse it): every iteration
 * adds the product of one index. On one device and with either operand sharded along the axis, against the oracle.
 */
import { describe, expect, it } from "vitest";
import {
  DeviceMesh,
  DiagnosticError,
  Fusion,
  linear,
  lower,
  matmul,
  permute,
  set,
  sum,
  type TensorView,
} from "@braid-compiler/braid";
import { expectOracle } from "../support/expect-oracle.ts";

type Shape = readonly number[];

function product(a: Shape, b: Shape, transposed = false): Fusion {
  const f = new Fusion();
  const [left, right] = [f.input([...a], "float"), f.input([...b], "float")];
  const c = matmul(left, transposed ? permute(right, [1, 0]) : right);
  f.output(c);
  c.axis(-1).parallelize("Stream");
  return f;
}

const products: readonly (readonly [name: string, a: Shape, b: Shape, transposed: boolean])[] = [
  ["matrices", [8, 4], [4, 2], false],
  ["a transposed operand", [8, 4], [2, 4], true],
  ["a vector and a matrix", [4], [4, 3], false],
  ["a matrix and a vector", [3, 4], [4], false],
  ["vectors", [5], [5], false],
  ["a batched operand", [2, 3, 4], [4, 5], false],
  ["batched operands", [2, 3, 4], [2, 4, 5], false],
  ["one index", [3, 1], [1, 2], false],
];

describe("a Stream contraction axis", () => {
  it.each(products)("of %s", async (_, a, b, transposed) => {
    for (const streams of [1, 2, 3, 5]) {
      await expectOracle(product(a, b, transposed), { devices: 1, streams, accumulate: true });
    }
  });

  it.each([true, false])("of linear, with a bias: %s", async (hasBias) => {
    const f = new Fusion();
    const [x, weight, bias] = [f.input([2, 6, 4], "float"), f.input([3, 4], "float"), f.input([3], "float")];
    const y = hasBias ? linear(x, weight, bias) : linear(x, weight);
    f.output(y);
    y.axis(-1).parallelize("Stream");
    await expectOracle(f, { devices: 1, accumulate: true });
  });

  it.each(["left", "right", "both"] as const)("gathered from the devices: %s", async (side) => {
    for (const devices of [1, 2, 3, 5]) {
      for (const options of [{}, { backend: "cuda" }, { p2p: "broadcast" }] as const) {
        const f = new Fusion();
        const [a, b] = [f.input([6, devices], "float"), f.input([devices, 5], "float")];
        const c = matmul(a, b);
        f.output(c);
        for (const tensor of [a, b, c]) tensor.setDeviceMesh(DeviceMesh.range(devices));
        if (side !== "right") a.axis(1).parallelize("DIDx");
        if (side !== "left") b.axis(0).parallelize("DIDx");
        c.axis(-1).parallelize("Stream");
        await expectOracle(f, { devices, accumulate: true, ...options });
      }
    }
  });

  it("with rows that are split over the devices", async () => {
    for (const devices of [1, 2, 4]) {
      const f = new Fusion();
      const [a, b] = [f.input([3, 2 * devices], "float"), f.input([3, 5], "float")];
      const left = permute(a, [1, 0]);
      const c = matmul(left, b);
      f.output(c);
      for (const tensor of [a, b, left, c]) tensor.setDeviceMesh(DeviceMesh.range(devices));
      for (const [tensor, rows] of [
        [a, 1],
        [left, 0],
        [c, 0],
      ] as const) {
        tensor.split(rows, devices, { inner: false }).axis(rows).parallelize("DIDx");
      }
      c.axis(-1).parallelize("Stream");
      await expectOracle(f, { devices, accumulate: true });
    }
  });

  it("of a sharded output: every device adds to its own part", async () => {
    const devices = 4;
    const f = new Fusion();
    const x = f.input([devices, 3, 8], "float");
    const gradient = f.input([devices, 3, 6], "float");
    const [rows, all] = [permute(x, [0, 2, 1]), [] as TensorView[]];
    const parts = matmul(rows, gradient);
    const weight = sum(parts, [0]);
    f.output(weight);
    all.push(x, gradient, rows, parts, weight);
    for (const tensor of all) tensor.setDeviceMesh(DeviceMesh.range(devices));
    for (const tensor of [x, rows, parts, weight]) {
      const axis = tensor === x ? 2 : 1;
      tensor.split(axis, devices, { inner: false }).axis(axis).parallelize("DIDx");
    }
    gradient.axis(0).parallelize("DIDx");
    weight.axis(0).parallelize("Stream");
    for (const backend of ["nccl", "cuda"] as const) {
      await expectOracle(f, { devices, accumulate: true, backend });
    }
  });

  it("shares a loop with another sum over the same chunks, each added in order", async () => {
    const f = new Fusion();
    const [x, b, d] = [f.input([4, 3, 2], "float"), f.input([4, 2, 5], "float"), f.input([4, 2, 6], "float")];
    const a = set(x);
    const [c, e] = [sum(matmul(a, b), [0]), sum(matmul(a, d), [0])];
    for (const output of [c, e]) f.output(output);
    for (const looped of [a, c, e]) looped.axis(0).parallelize("Stream");
    const host = lower(f, { accumulate: true });
    // One loop that makes the workers wait for the caller, and one over the chunks.
    expect(host.body.filter(({ kind }) => kind === "ForLoop")).toHaveLength(2);
    await expectOracle(f, { devices: 1, streams: 3, accumulate: true });
  });

  it("is refused without accumulate, and the message names it", () => {
    const refused = (build: () => Fusion): string => {
      try {
        lower(build());
      } catch (error) {
        if (error instanceof DiagnosticError) return error.message;
      }
      return "";
    };
    const summed = (): Fusion => {
      const f = new Fusion();
      const c = sum(matmul(f.input([4, 3, 2], "float"), f.input([4, 2, 5], "float")), [0]);
      f.output(c);
      c.axis(0).parallelize("Stream");
      return f;
    };
    for (const build of [() => product([8, 4], [4, 2]), summed]) {
      expect(refused(build)).toContain("error[stream-on-reduction-axis]");
      expect(refused(build)).toContain("set accumulate to true (--schedule accumulate)");
    }
  });
});

it("a contraction of a permuted operand that devices share, row by row: the bias is added once, after it", async () => {
  const f = new Fusion();
  const [x, weight, bias] = [f.input([4, 3, 2], "half"), f.input([5, 4], "half"), f.input([5], "half")];
  const rows = permute(x, [1, 2, 0]);
  const y = linear(rows, weight, bias);
  f.output(y);
  for (const tensor of [x, weight, bias, rows, y]) tensor.setDeviceMesh(DeviceMesh.range(4));
  x.axis(0).parallelize("DIDx");
  rows.axis(2).parallelize("DIDx");
  weight.axis(1).parallelize("DIDx");
  y.axis(0).parallelize("Stream");
  await expectOracle(f, { devices: 4 });
});
