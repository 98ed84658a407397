/** Printed Programs, which also show how link transforms one-sided pairs and transfers. */
import { compile, DeviceMesh, Fusion, iota } from "@braid-compiler/braid";
import { describe, expect, test } from "vitest";
import { kernelText, operandText } from "../../src/commands/command-text.ts";
import { link } from "../../src/commands/link/link.ts";
import { printProgram } from "../../src/commands/print-program.ts";
import type { Program } from "../../src/commands/program.ts";
import { buildLists } from "../machine/list-builder.ts";

/** Rank 0 sends to rank 1. */
function sendOver(protocol: "get" | "put"): Program {
  return link(
    buildLists(2, (list, rank) => {
      const view = rank === 0 ? list.input([2, 4]) : list.output([8]);
      const pair = list.pair(protocol, rank === 0 ? "send" : "recv", 1 - rank, view);
      list.statement(rank === 0 ? "P2PCommunication send" : "P2PCommunication recv");
      const copies = (protocol === "get") === (rank === 1);
      if (copies) {
        list.waitPeer(0, pair, "ready");
        list.copyPeer(0, pair);
        list.signalPeer(0, pair, "done");
      } else {
        list.signalPeer(0, pair, "ready");
        list.waitPeer(0, pair, "done");
      }
    }),
  );
}

describe("printProgram", () => {
  test("get: the receiver copies from the sender's buffer", () => {
    expect(printProgram(sendOver("get"))).toMatchInlineSnapshot(`
      "slots
        slot 0  rank 0 signals rank 1
        slot 1  rank 1 signals rank 0

      rank 0
        memory
          symmetric 256 bytes
        streams
          0 caller
        buffers
          b0  T0  input  float [2, 4]  32 bytes  at symmetric+0
        commands
          0  s0  signal      slot 0
          1  s0  waitSignal  slot 1

      rank 1
        memory
          output 256 bytes
        streams
          0 caller
        buffers
          b1  T0  output  float [8]  32 bytes  at output+0
        commands
          0  s0  waitSignal  slot 0
          1  s0  copy        b0 float [8] -> b1 float [8]
          2  s0  signal      slot 1
      "
    `);
  });

  test("put: the sender copies into the receiver's buffer", () => {
    expect(printProgram(sendOver("put"), { ranks: [0], origins: true })).toMatchInlineSnapshot(`
      "slots
        slot 0  rank 1 signals rank 0
        slot 1  rank 0 signals rank 1

      rank 0
        memory
          input 256 bytes
        streams
          0 caller
        buffers
          b0  T0  input  float [2, 4]  32 bytes  at input+0
        commands
          0  s0  waitSignal  slot 0                        P2PCommunication send
          1  s0  copy        b0 float [8] -> b1 float [8]  P2PCommunication send
          2  s0  signal      slot 1                        P2PCommunication send
      "
    `);
  });

  test("kernels, transfers, events, local copies and memory", () => {
    const program = link(
      buildLists(2, (list, rank) => {
        const side = list.stream("nccl", "communicator");
        const a = list.input([4, 8]);
        const [sum, got] = [list.temporary([4, 8]), list.temporary([4, 8])];
        const out = list.output([2, 4, 8]);
        list.alloc(0, sum);
        list.binary(0, "add", a, a, sum);
        list.synchronize(side, 0);
        list.collective(side, "Allgather", { team: [1, 0], input: sum, output: out });
        list.collective(side, "Reduce", {
          team: [1, 0],
          root: 1,
          reduceOp: "amax",
          input: sum,
          output: rank === 0 ? a : null,
        });
        list.group(side, [
          { type: "send", peer: 1 - rank, view: { ...a, shape: [4, 2] } },
          { type: "recv", peer: 1 - rank, view: { ...got, offset: 64, shape: [8], strides: [1] } },
        ]);
        list.synchronize(0, side);
        list.copy(0, { ...a, offset: 32, shape: [8], strides: [1] }, { ...got, shape: [8], strides: [1] });
        list.free(0, sum);
      }),
    );
    expect(printProgram(program)).toMatchInlineSnapshot(`
      "kernels
        k0  binary add: float [4, 8], float [4, 8] -> float [4, 8]

      rank 0
        memory
          input 256 bytes
          output 256 bytes
          temporary 512 bytes
        streams
          0 caller
          1 nccl
        buffers
          b0  T0  input      float [4, 8]     128 bytes  at input+0
          b1  T1  temporary  float [4, 8]     128 bytes  at temporary+0
          b2  T2  temporary  float [4, 8]     128 bytes  at temporary+256
          b3  T3  output     float [2, 4, 8]  256 bytes  at output+0
        commands
          0   s0  alloc        b1
          1   s0  launch       k0(b0, b0) -> b1
          2   s0  recordEvent  e0
          3   s1  waitEvent    e0
          4   s1  transfer     t0 on nccl:1,0: Allgather team [1, 0] b1 float [4, 8] -> b3 float [2, 4, 8]
          5   s1  transfer     t1 on nccl:1,0: Reduce amax team [1, 0] root 1 b1 float [4, 8] -> b0 float [4, 8]
          6   s1  transfer     t2 on nccl:world: send to 1 b0 float [4, 2] strides [8, 1]; recv from 1 b2+64 float [8]
          7   s1  recordEvent  e1
          8   s0  waitEvent    e1
          9   s0  copy         b0+32 float [8] -> b2 float [8]
          10  s0  free         b1

      rank 1
        memory
          input 256 bytes
          output 256 bytes
          temporary 512 bytes
        streams
          0 caller
          1 nccl
        buffers
          b4  T0  input      float [4, 8]     128 bytes  at input+0
          b5  T1  temporary  float [4, 8]     128 bytes  at temporary+0
          b6  T2  temporary  float [4, 8]     128 bytes  at temporary+256
          b7  T3  output     float [2, 4, 8]  256 bytes  at output+0
        commands
          0   s0  alloc        b5
          1   s0  launch       k0(b4, b4) -> b5
          2   s0  recordEvent  e0
          3   s1  waitEvent    e0
          4   s1  transfer     t0 on nccl:1,0: Allgather team [1, 0] b5 float [4, 8] -> b7 float [2, 4, 8]
          5   s1  transfer     t1 on nccl:1,0: Reduce amax team [1, 0] root 1 b5 float [4, 8] -> nothing
          6   s1  transfer     t2 on nccl:world: send to 0 b4 float [4, 2] strides [8, 1]; recv from 0 b6+64 float [8]
          7   s1  recordEvent  e1
          8   s0  waitEvent    e1
          9   s0  copy         b4+32 float [8] -> b6 float [8]
          10  s0  free         b5
      "
    `);
  });

  test("nothing", () => {
    expect(printProgram(link([]))).toBe("\n");
  });
});

test("kernels in one line each", () => {
  const a = { dtype: "float", shape: [4, 8], strides: [8, 1] } as const;
  const b = { dtype: "half", shape: [4], strides: [1] } as const;
  const lines = [
    kernelText({ kind: "unary", op: "relu", inputs: [a], outputs: [a] }),
    kernelText({ kind: "cast", inputs: [b], outputs: [b] }),
    kernelText({ kind: "binary", op: "mul", inputs: [a, { ...a, strides: [0, 1] }], outputs: [a] }),
    kernelText({ kind: "reduction", op: "amax", axes: [1], inputs: [a], outputs: [b] }),
    kernelText({ kind: "matmul", inputs: [a, { ...a, shape: [8, 4], strides: [1, 8] }], outputs: [a] }),
    kernelText({ kind: "linear", inputs: [a, a, b], outputs: [a] }),
    kernelText({ kind: "combine", op: "sum", inputs: [a, a], outputs: [a] }),
    kernelText({ kind: "fill", inputs: [], outputs: [b] }),
    kernelText({
      kind: "unit",
      inputs: [a],
      outputs: [a],
      values: [a, a, a],
      steps: [
        { kind: "Unary", op: "neg", inputs: [0], output: 1 },
        { kind: "Permute", order: [0, 1], inputs: [1], output: 2 },
      ],
      results: [2],
    }),
  ];
  expect(lines.join("\n")).toMatchInlineSnapshot(`
    "unary relu: float [4, 8] -> float [4, 8]
    cast: half [4] -> half [4]
    binary mul: float [4, 8], float [4, 8] strides [0, 1] -> float [4, 8]
    reduction amax over [1]: float [4, 8] -> half [4]
    matmul: float [4, 8], float [8, 4] strides [1, 8] -> float [4, 8]
    linear: float [4, 8], float [4, 8], half [4] -> float [4, 8]
    combine sum: float [4, 8], float [4, 8] -> float [4, 8]
    fill: nothing -> half [4]
    unit unary, permute: float [4, 8] -> float [4, 8]"
  `);
});

test("an iota prints its values, and its launches where they begin", () => {
  const f = new Fusion();
  const y = iota(f, 8, { start: 3, step: -5 });
  f.output(y);
  y.setDeviceMesh(DeviceMesh.range(2)).outerSplit(0, 2).parallelize("DIDx");
  const text = printProgram(compile(f, { devices: 2 }).recorded);
  expect(text).toContain("iota 3 by -5: nothing -> int64 [4]");
  expect(text.match(/k0\(\) -> \w+ from \d/gu)).toEqual(["k0() -> b0 from 0", "k0() -> b1 from 4"]);
});

test("a number is printed on its side of the op", () => {
  const a = { dtype: "float", shape: [4], strides: [1] } as const;
  const binary = { kind: "binary", op: "sub", inputs: [a], outputs: [a] } as const;
  expect(kernelText({ ...binary, scalar: { position: 0, text: "1" } })).toBe("binary 1 sub: float [4] -> float [4]");
  expect(kernelText({ ...binary, scalar: { position: 1, text: "0.5" } })).toBe(
    "binary sub 0.5: float [4] -> float [4]",
  );
});

test("strides are printed where they are not those of a whole tensor", () => {
  expect(operandText({ dtype: "float", shape: [1, 8], strides: [99, 1] })).toBe("float [1, 8]");
  expect(operandText({ dtype: "float", shape: [2, 8], strides: [0, 1] })).toBe("float [2, 8] strides [0, 1]");
  expect(operandText({ dtype: "bool", shape: [], strides: [] })).toBe("bool []");
});
