/**
 * Sizes that differ from the declared ones. A chunk of an axis is declared with the length of the longest chunk, but
 * the last ones may be shorter; so is what ops compute from a chunk. And a share of an axis may be shorter on some
 * devices. What a tensor holds follows from the views that ShardByStream bound.
 */
import { sameNumbers } from "../commands/view.ts";
import { type Tensor, withoutReductions } from "../ir/domain.ts";
import { axisMap } from "../ir/ops/axis-map.ts";
import type { Op } from "../ir/ops/op.ts";
import { at } from "../support/invariant.ts";
import type { Actual } from "./actual-sizes.ts";
import type { Recorder } from "./recorder.ts";
import { extentsOf, layoutOf, tensorOf } from "./tensors.ts";

/** The sizes of the op's output, if an input's differ from the declared ones; else null. */
export function actualOutput(recorder: Recorder, op: Op): Actual | null {
  const { actuals, program } = recorder;
  if (actuals.size === 0) return null;
  const output = tensorOf(recorder, op.output);
  const pairs = axisMap(op, program.tensors).flatMap(
    ({ operand, producer, consumer, broadcast, outermost }): readonly AxisSize[] => {
      const id = at(op.inputs, operand);
      const actual = actuals.get(id);
      if (broadcast || outermost || actual?.differs !== true) return [];
      const from = positionOf(tensorOf(recorder, id), producer.id);
      return [
        { axis: positionOf(output, consumer.id), extent: at(actual.extents, from), local: at(actual.local, from) },
      ];
    },
  );
  return withSizes(recorder, output, pairs);
}

/** The sizes of an axis; -1 for one that does not exist at run time. */
export interface AxisSize {
  readonly axis: number;
  readonly extent: number;
  readonly local: number;
}

/** The declared sizes of the tensor but for the given ones; null if there are none. */
export function withSizes(recorder: Recorder, tensor: Tensor, sizes: readonly AxisSize[]): Actual | null {
  if (sizes.length === 0) return null;
  const declared = { extents: extentsOf(recorder, tensor), local: layoutOf(recorder, tensor).shape };
  const [extents, local] = [[...declared.extents], [...declared.local]];
  for (const { axis, ...size } of sizes) {
    if (axis < 0) continue;
    extents[axis] = size.extent;
    local[axis] = size.local;
  }
  const differs = !sameNumbers(extents, declared.extents) || !sameNumbers(local, declared.local);
  return { extents, local, differs, chunk: null };
}

function positionOf({ domain }: Tensor, id: number): number {
  return withoutReductions(domain.logical).findIndex((axis) => axis.id === id);
}
