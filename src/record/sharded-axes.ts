/**
 * An op works on what its device holds. What needs the whole of a sharded axis (reduces it, contracts it, cuts it) is a
 * communication; as an op it would silently give a part of the result.
 */
import { partialAxes } from "../ir/ops/axis-map.ts";
import { axisShards } from "../ir/axis-shards.ts";
import type { IterDomain, Tensor, TensorId } from "../ir/domain.ts";
import { operandAxes } from "../ir/ops/operand-axes.ts";
import type { Op } from "../ir/ops/op.ts";
import { printIterDomain, printTensor } from "../ir/print-tensor.ts";
import { isConstant } from "../ir/scalar/fold.ts";
import { at } from "../support/invariant.ts";
import { fail, type Recorder } from "./recorder.ts";

/** Throws `resharding-unsupported`. `tensors` is the table of the program or host unit that `op` stands in. */
export function requireWholeAxes(recorder: Recorder, op: Op, tensors: readonly Tensor[]): void {
  const partial = partialAxes(op, tensors);
  for (const { operand, axis } of wholeAxes(op, tensors)) {
    const tensor = at(tensors, operand);
    const shard = axisShards(tensor).find((cut) => cut.axis.id === axis.id && (tensor.mesh?.size(cut.type) ?? 1) > 1);
    // What the op makes of a device's own part stays apart, with an index per device.
    if (shard === undefined || partial.some(({ parallelType }) => parallelType === shard.type)) continue;
    fail(recorder, {
      code: "resharding-unsupported",
      message: "an op needs the whole of an axis that is sharded over devices",
      found: `${printIterDomain(axis)} of ${printTensor(tensor)}`,
      expected: "an axis that every device holds whole",
      help: "gather or reduce it with a communication: run the pass convert-op-to-communication",
    });
  }
}

interface OperandAxis {
  readonly operand: TensorId;
  readonly axis: IterDomain;
}

/** The axes that an op reduces, contracts or cuts. */
function wholeAxes(op: Op, tensors: readonly Tensor[]): readonly OperandAxis[] {
  const axesOf = (position: number): readonly IterDomain[] => operandAxes(op, position, tensors);
  const take = (position: number, axis: IterDomain): OperandAxis => ({ operand: at(op.inputs, position), axis });
  const fromEnd = (position: number, back: number): OperandAxis => {
    const axes = axesOf(position);
    return take(position, at(axes, Math.max(axes.length - back, 0)));
  };
  switch (op.kind) {
    case "Reduction":
      return op.axes.map((axis) => take(0, at(axesOf(0), axis)));
    case "Select":
      return [take(0, at(axesOf(0), op.axis))];
    case "Slice":
      return axesOf(0).flatMap((axis, i) => {
        const { start, stop } = at(op.ranges, i);
        return start === 0 && isConstant(axis.extent, stop) ? [] : [take(0, axis)];
      });
    case "Matmul":
      return [fromEnd(0, 1), fromEnd(1, 2)];
    case "Linear":
      return [fromEnd(0, 1), fromEnd(1, 1)];
    case "Set":
    case "Unary":
    case "Cast":
    case "Binary":
    case "Broadcast":
    case "Squeeze":
    case "Permute":
    case "Reshape":
      return [];
  }
}
