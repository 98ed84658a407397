/** Checks of sizes at record time: shapes agree, indices are in range, and no op needs all of a sharded axis. */
import type { SliceRange } from "../commands/kernel.ts";
import { sameNumbers } from "../commands/view.ts";
import { shardsOf } from "../ir/shards.ts";
import type { IterDomain, Tensor, TensorId } from "../ir/domain.ts";
import { partialAxes, wholeAxes } from "../ir/ops/axis-map.ts";
import type { Op, SliceOp } from "../ir/ops/op.ts";
import { printIterDomain, printTensor } from "../ir/print-tensor.ts";
import type { Scalar } from "../ir/scalar/scalar.ts";
import { at } from "../support/invariant.ts";
import { failRecording, type Recorder } from "./recorder.ts";
import { localLayoutOf, tensorOf } from "./tensors.ts";

/** Throws `size-mismatch` if `shape` is not the local shape of tensor `id`. */
export function requireDeclaredShape(recorder: Recorder, id: TensorId, shape: readonly number[]): void {
  requireShape(recorder, `T${id}`, localLayoutOf(recorder, tensorOf(recorder, id)).shape, shape);
}

/** Throws `size-mismatch` if `shape` is not `expected`. */
export function requireShape(
  recorder: Recorder,
  what: string,
  shape: readonly number[],
  expected: readonly number[],
): void {
  if (sameNumbers(shape, expected)) return;
  failRecording(recorder, "size-mismatch", `${what} and the value written to it differ in size`, {
    found: localShapeText(shape),
    expected: localShapeText(expected),
    help: "give equal sizes, or correct the shapes; a sharded axis has size 1 on each device",
  });
}

export function localShapeText(shape: readonly number[]): string {
  return `[${shape.join(", ")}]`;
}

/**
 * The index to select along an axis of `size` elements, axis `position` of the tensor. As in nvFuser, a broadcast
 * axis and an axis of one element are read at 0, whatever the index. Throws `index-out-of-range`.
 */
export function indexInto(recorder: Recorder, axis: IterDomain, size: number, index: number, position: number): number {
  if (axis.iterType === "broadcast" || size === 1) return 0;
  if (index >= 0 && index < size) return index;
  return outOfRange(recorder, `index ${index}`, position, size);
}

/** The range of a slice along an axis of `size` elements. Throws `index-out-of-range`. */
export function rangeInto(
  recorder: Recorder,
  range: SliceOp["ranges"][number],
  position: number,
  size: number,
  valueOf: (bound: Scalar) => number,
): SliceRange {
  const [start, stop] = [valueOf(range.start), valueOf(range.stop)];
  const { step } = range;
  if (0 <= start && start <= stop && stop <= size) return { start, stop, ...(step === undefined ? {} : { step }) };
  return outOfRange(recorder, `[${start}, ${stop})`, position, size);
}

export function outOfRange(recorder: Recorder, found: string, position: number, size: number): never {
  return failRecording(recorder, "index-out-of-range", `a slice is outside axis ${position}`, {
    found,
    expected: `indices from 0 to ${size - 1}`,
    help: "correct the index, or the bounds of the loop that it comes from",
  });
}

/**
 * An op works on its device's shard. An op that needs all of a sharded axis (it reduces, contracts or cuts the axis) is
 * a communication. Recorded as an op, it would compute a partial result. `tensors` is the table of the program or host
 * unit that contains `op`. Throws `resharding-unsupported`.
 */
export function requireWholeAxes(recorder: Recorder, op: Op, tensors: readonly Tensor[]): void {
  const partial = partialAxes(op, tensors);
  for (const { operand, axis } of wholeAxes(op, tensors)) {
    const tensor = at(tensors, at(op.inputs, operand));
    const shard = shardsOf(tensor).find((cut) => cut.axis.id === axis.id && (tensor.mesh?.size(cut.type) ?? 1) > 1);
    // Each device's partial result is a separate element: the output has an axis with an index per device.
    if (shard === undefined || partial.some(({ parallelType }) => parallelType === shard.type)) continue;
    failRecording(recorder, "resharding-unsupported", "an op needs all of an axis that is sharded over devices", {
      found: `${printIterDomain(axis)} of ${printTensor(tensor)}`,
      expected: "an axis that every device holds in full",
      help: "gather or reduce it with a communication: run the pass convert-op-to-communication",
    });
  }
}
