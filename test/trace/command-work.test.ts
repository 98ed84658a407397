/** Bytes and operations of commands: every kind of kernel, every side of a transfer. */
import { compile, dynamicUpdate, Fusion, softmax } from "@braid-compiler/braid";
import { describe, expect, it } from "vitest";
import { link } from "../../src/commands/link/link.ts";
import type { Kernel, Operand, UnitKernel } from "../../src/commands/kernel.ts";
import { contiguousStrides, partOf } from "../../src/commands/view.ts";
import { commandBytes, flopsOf, commandPeer } from "../../src/trace/command-work.ts";
import { at } from "../../src/support/invariant.ts";
import { buildLists } from "../machine/list-builder.ts";

const operand = (...shape: readonly number[]): Operand => ({
  dtype: "float",
  shape,
  strides: contiguousStrides(shape),
});

const value = (...shape: readonly number[]): UnitKernel["values"][number] => ({ dtype: "float", shape });

/** relu(x [4, 8] @ y [8, 2]) + its own linear by w [3, 2] and bias, then summed. */
const unit: UnitKernel = {
  kind: "unit",
  inputs: [operand(4, 8), operand(8, 2), operand(3, 2), operand(3)],
  outputs: [operand(4)],
  values: [value(4, 8), value(8, 2), value(3, 2), value(3), value(4, 2), value(4, 2), value(4, 3), value(4)],
  steps: [
    { kind: "Matmul", inputs: [0, 1], output: 4 },
    { kind: "Unary", op: "relu", inputs: [4], output: 5 },
    { kind: "Linear", inputs: [5, 2, 3], output: 6 },
    { kind: "Reduction", op: "sum", axes: [1], inputs: [6], output: 7 },
  ],
  results: [7],
};

const kernels: readonly (readonly [Kernel, number])[] = [
  [{ kind: "unary", op: "exp", inputs: [operand(4, 8)], outputs: [operand(4, 8)] }, 32],
  [{ kind: "cast", inputs: [operand(4)], outputs: [operand(4)] }, 0],
  [{ kind: "binary", op: "add", inputs: [operand(4), operand(4)], outputs: [operand(4)] }, 4],
  [{ kind: "reduction", op: "sum", axes: [0], inputs: [operand(4, 8)], outputs: [operand(8)] }, 24],
  [{ kind: "matmul", inputs: [operand(4, 8), operand(8, 2)], outputs: [operand(4, 2)] }, 128],
  [{ kind: "matmul", inputs: [operand(5, 4, 8), operand(5, 8, 2)], outputs: [operand(5, 4, 2)] }, 640],
  [{ kind: "matmul", inputs: [operand(8), operand(8)], outputs: [operand()] }, 16],
  [{ kind: "linear", inputs: [operand(4, 8), operand(2, 8)], outputs: [operand(4, 2)] }, 128],
  [{ kind: "linear", inputs: [operand(4, 8), operand(2, 8), operand(2)], outputs: [operand(4, 2)] }, 136],
  [{ kind: "combine", op: "sum", inputs: [operand(4), operand(4), operand(4)], outputs: [operand(4)] }, 8],
  [{ kind: "combine", op: "sum", inputs: [operand(4), operand(4)], outputs: [operand(4), operand(4)] }, 4],
  [{ kind: "fill", inputs: [], outputs: [operand(4)] }, 0],
  [unit, 128 + 8 + (4 * 3 * 2 * 2 + 12) + 8],
];

describe("flopsOf", () => {
  it.each(kernels.map(([kernel, flops]) => ({ kind: kernel.kind, kernel, flops })))(
    "$kind: $flops",
    ({ kernel, flops }) => {
      expect(flopsOf(kernel)).toBe(flops);
    },
  );
});

describe("bytesOf and peerOf", () => {
  const program = link(
    buildLists(3, (list, rank) => {
      const own = list.input([4], "symmetric");
      const sum = list.output([4]);
      const all = list.output([3, 4]);
      list.binary(0, "add", own, own, sum);
      list.copy(0, own, partOf(all, rank));
      list.collective(0, "Allgather", { team: [0, 1, 2], input: own, output: all });
      list.collective(0, "Broadcast", {
        team: [0, 1, 2],
        root: 0,
        input: rank === 0 ? own : null,
        output: sum,
      });
      list.collective(0, "Gather", { team: [0, 1, 2], root: 0, input: own, output: rank === 0 ? all : null });
      const [next, previous] = [(rank + 1) % 3, (rank + 2) % 3];
      list.group(0, [
        { type: "send", peer: next, view: own },
        { type: "recv", peer: previous, view: sum },
      ]);
      list.synchronize(list.stream("worker 0"), 0);
      for (const protocol of ["get", "put"] as const) {
        const send = list.pair(protocol, "send", next, own);
        const recv = list.pair(protocol, "recv", previous, sum);
        list.copyPeer(0, protocol === "get" ? recv : send);
      }
    }),
  );
  const bytes = (rank: number): readonly (number | null)[] =>
    at(program.ranks, rank).commands.map((_, index) => commandBytes(program, rank, index));

  it("counts operands of launches, both sides of collectives by the greater, all ops of groups", () => {
    expect(bytes(0)).toEqual([48, 16, 48, 16, 48, 32, null, null, 16, 16]);
    expect(bytes(1)).toEqual([48, 16, 48, 16, 16, 32, null, null, 16, 16]);
  });

  it("counts what a norm reads and writes once, and the operations of all its steps", () => {
    const f = new Fusion();
    f.output(softmax(f.input([64, 256], "bfloat16"), 1));
    const norm = compile(f, { devices: 1, verify: "off" }).program;
    const launches = at(norm.ranks, 0).commands.flatMap(({ kind }, i) => (kind === "launch" ? [i] : []));
    expect(launches.map((i) => commandBytes(norm, 0, i))).toEqual([2 * 64 * 256 * 2]);
    // amax and sum, the difference, exp and the quotient
    expect(norm.kernels.map(flopsOf)).toEqual([2 * 64 * 255 + 3 * 64 * 256]);
  });

  it("counts the rows that an update in place writes, and not the rest of the tensor", () => {
    const f = new Fusion();
    const [cache, position, row] = [f.input([4, 128, 8]), f.input([], "int64"), f.input([4, 1, 8])];
    f.output(dynamicUpdate(cache, 1, position, row), { alias: cache });
    const update = compile(f, { devices: 1, verify: "off" }).program;
    const launches = at(update.ranks, 0).commands.flatMap(({ kind }, i) => (kind === "launch" ? [i] : []));
    // The row's number is made. The row is read and written, and both numbers are read.
    expect(launches.map((i) => commandBytes(update, 0, i))).toEqual([8, 2 * 4 * 8 * 4 + 2 * 8]);
  });

  it("finds the peers of copies", () => {
    const peers = at(program.ranks, 1).commands.map((command) => commandPeer(program, 1, command));
    expect(peers.filter((peer) => peer !== null)).toEqual([
      { direction: "from", rank: 0 },
      { direction: "to", rank: 2 },
    ]);
  });
});
