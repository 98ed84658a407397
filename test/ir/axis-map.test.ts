/**
 * Which axes map to which: pairs are written `operand.axis->output axis`, positions in logical domains, `~` for
 * broadcast.
 */
import { describe, expect, it } from "vitest";
import { Fusion } from "../../src/ir/api/fusion.ts";
import {
  add,
  amax,
  broadcast,
  cast,
  linear,
  matmul,
  permute,
  relu,
  reshape,
  select,
  set,
  slice,
  squeeze,
  sum,
} from "../../src/ir/api/ops.ts";
import type { TensorView } from "../../src/ir/api/tensor-view.ts";
import { axisMap } from "../../src/ir/ops/axis-map.ts";
import { withoutReductions } from "../../src/ir/domain.ts";
import { at } from "../../src/support/invariant.ts";

const f = new Fusion();
const input = (...extents: readonly (number | null)[]): TensorView => f.input(extents);

function pairs(result: TensorView): string {
  const { ops, tensors } = f.data();
  const op = at(
    ops.filter((candidate) => candidate.output === result.id),
    0,
  );
  const output = at(tensors, op.output).domain.logical;
  return axisMap(op, tensors)
    .map(({ operand, producer, consumer, broadcast: stretched }) => {
      const axes = withoutReductions(at(tensors, at(op.inputs, operand)).domain.logical);
      expect(axes).toContain(producer);
      expect(output).toContain(consumer);
      return `${operand}.${axes.indexOf(producer)}->${output.indexOf(consumer)}${stretched ? "~" : ""}`;
    })
    .join(" ");
}

describe("axis map", () => {
  it("joins pointwise axes by position", () => {
    expect(pairs(set(input(2, 3)))).toBe("0.0->0 0.1->1");
    expect(pairs(relu(input(2, 3)))).toBe("0.0->0 0.1->1");
    expect(pairs(cast(input(2), "half"))).toBe("0.0->0");
    expect(pairs(set(input()))).toBe("");
    expect(pairs(add(input(2, 3), input(2, 3)))).toBe("0.0->0 0.1->1 1.0->0 1.1->1");
  });

  it("marks the operand that is stretched", () => {
    expect(pairs(add(input(2, 1), input(1, 3)))).toBe("0.0->0 0.1->1~ 1.0->0~ 1.1->1");
    expect(pairs(add(input(1), input(1)))).toBe("0.0->0 1.0->0");
    expect(pairs(add(input(null), input(1)))).toBe("0.0->0 1.0->0~");
    // The same program for one device: a broadcast stays a broadcast even if the other operand has extent 1.
    expect(pairs(add(broadcast(input(), [true]), input(1)))).toBe("0.0->0~ 1.0->0");
  });

  it("skips axes that the operand has reduced, and pairs reduced ones with the output's", () => {
    const x = sum(input(2, 3, 4), [1]);
    expect(pairs(x)).toBe("0.0->0 0.1->1 0.2->2");
    expect(pairs(set(x))).toBe("0.0->0 0.1->1");
    expect(pairs(amax(x, [0]))).toBe("0.0->0 0.1->1");
  });

  it("follows rearrangements", () => {
    expect(pairs(broadcast(input(2, 3), [true, false, true, false]))).toBe("0.0->1 0.1->3");
    expect(pairs(squeeze(input(1, 2, 1, 3), [0, 2]))).toBe("0.1->0 0.3->1");
    expect(pairs(permute(input(2, 3, 4), [2, 0, 1]))).toBe("0.0->1 0.1->2 0.2->0");
    expect(pairs(select(input(2, 3, 4), 1, 0))).toBe("0.0->0 0.2->1");
    expect(pairs(slice(input(4, 5, null), [0, 1, 0], [4, 5, 3]))).toBe("0.0->0");
  });

  it("keeps an axis through reshape only where its index stays", () => {
    expect(pairs(reshape(input(2, 3, 4), [2, 12]))).toBe("0.0->0");
    expect(pairs(reshape(input(2, 3, 4), [6, 4]))).toBe("0.2->1");
    expect(pairs(reshape(input(8, 4), [2, 4, 4]))).toBe("0.1->2");
    expect(pairs(reshape(input(8, 4), [8, 2, 2]))).toBe("0.0->0");
    expect(pairs(reshape(input(4, 1, 8), [4, 8]))).toBe("0.0->0 0.2->1");
    expect(pairs(reshape(input(6), [2, 3]))).toBe("");
    expect(pairs(reshape(input(2, 2), [2, 2]))).toBe("0.0->0 0.1->1");
    const x = input(null, 6);
    expect(pairs(reshape(x, [at(x.extents, 0), 2, 3]))).toBe("0.0->0");
  });

  it("joins batch, row, column and contracted axes of matmul", () => {
    expect(pairs(matmul(input(4, 5), input(5, 6)))).toBe("0.0->0 0.1->2 1.0->2 1.1->1");
    expect(pairs(matmul(input(2, 3, 4, 5), input(5, 6)))).toBe("0.0->0 0.1->1 0.2->2 0.3->4 1.0->4 1.1->3");
    expect(pairs(matmul(input(2, 1, 4, 5), input(3, 5, 6)))).toBe("0.0->0 0.1->1~ 0.2->2 0.3->4 1.0->1 1.1->4 1.2->3");
    expect(pairs(matmul(input(5), input(5)))).toBe("0.0->0 1.0->0");
    expect(pairs(matmul(input(4, 5), input(5)))).toBe("0.0->0 0.1->1 1.0->1");
    expect(pairs(matmul(input(5), input(3, 5, 6)))).toBe("0.0->2 1.0->0 1.1->2 1.2->1");
  });

  it("joins the axes of linear", () => {
    expect(pairs(linear(input(2, 4, 5), input(6, 5), input(6)))).toBe("0.0->0 0.1->1 0.2->3 1.0->2 1.1->3 2.0->2");
    expect(pairs(linear(input(5), input(6, 5)))).toBe("0.0->1 1.0->0 1.1->1");
    expect(pairs(linear(input(4, 5), input(5), input()))).toBe("0.0->0 0.1->1 1.0->1");
  });
});
