/**
 * An op works on what its device holds. What needs the whole of a sharded axis (reduces it, contracts it, cuts it) is a
 * communication; as an op it would silently give a part of the result.
 */
import { axisShards } from "../ir/axis-shards.ts";
import type { Tensor } from "../ir/domain.ts";
import { partialAxes, wholeAxes } from "../ir/ops/axis-map.ts";
import type { Op } from "../ir/ops/op.ts";
import { printIterDomain, printTensor } from "../ir/print-tensor.ts";
import { at } from "../support/invariant.ts";
import { fail, type Recorder } from "./recorder.ts";

/** Throws `resharding-unsupported`. `tensors` is the table of the program or host unit that `op` stands in. */
export function requireWholeAxes(recorder: Recorder, op: Op, tensors: readonly Tensor[]): void {
  const partial = partialAxes(op, tensors);
  for (const { operand, axis } of wholeAxes(op, tensors)) {
    const tensor = at(tensors, at(op.inputs, operand));
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
