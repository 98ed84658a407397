/**
 * Sizes that differ from the declared ones. A chunk of an axis is declared with the length of the longest chunk, but
 * the last ones may be shorter; so is what ops compute from a chunk. And a share of an axis may be shorter on some
 * devices. What a tensor holds follows from the views that ShardByStream bound.
 */
import { sameNumbers } from "../commands/view.ts";
import { cutOf } from "../ir/parts.ts";
import type { Runs } from "../ir/runs.ts";
import { isUnitAxis, type IterDomain, type Tensor, withoutReductions } from "../ir/domain.ts";
import { axisMap } from "../ir/ops/axis-map.ts";
import { type Op, outputsOf } from "../ir/ops/op.ts";
import { at } from "../support/invariant.ts";
import type { Actual } from "./actual-sizes.ts";
import type { Recorder } from "./recorder.ts";
import { localExtents, localLayoutOf, tensorOf } from "./tensors.ts";
import { didTypesOf } from "../ir/shards.ts";

/** The sizes of output `which` of the op, if an input's differ from the declared ones; else null. */
export function actualOutput(recorder: Recorder, op: Op, which = 0): Actual | null {
  const { actuals, program } = recorder;
  if (actuals.size === 0) return null;
  const output = tensorOf(recorder, at(outputsOf(op), which));
  const pairs = axisMap(op, program.tensors, which).flatMap(
    ({ operand, producer, consumer, broadcast, outermost }): readonly AxisSize[] => {
      const id = at(op.inputs, operand);
      const actual = actuals.get(id);
      if (broadcast || outermost || actual?.differs !== true) return [];
      const source = tensorOf(recorder, id);
      // Of one element that every device has, each takes what its share of the output's axis has.
      if (isUnitAxis(producer) && isCutByDevices(output, consumer) && !isCutByDevices(source, producer)) return [];
      const from = positionOf(source, producer.id);
      return [
        {
          axis: positionOf(output, consumer.id),
          extent: at(actual.extents, from),
          local: at(actual.local, from),
          exists: actual.exists.get(from),
        },
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
  /** As in `Actual`. */
  readonly exists: ((rank: number) => Runs) | undefined;
}

/** The declared sizes of the tensor but for the given ones; null if there are none. */
export function withSizes(recorder: Recorder, tensor: Tensor, sizes: readonly AxisSize[]): Actual | null {
  if (sizes.length === 0) return null;
  const declared = { extents: localExtents(recorder, tensor), local: localLayoutOf(recorder, tensor).shape };
  const [extents, local] = [[...declared.extents], [...declared.local]];
  const existing = new Map<number, (rank: number) => Runs>();
  for (const { axis, extent, local: own, exists } of sizes) {
    if (axis < 0) continue;
    extents[axis] = extent;
    local[axis] = own;
    if (exists !== undefined) existing.set(axis, exists);
  }
  const differs = !sameNumbers(extents, declared.extents) || !sameNumbers(local, declared.local);
  return { extents, local, differs, exists: existing, chunk: null };
}

/** Whether a DID type cuts the axis. */
export function isCutByDevices({ domain }: Tensor, axis: IterDomain): boolean {
  return didTypesOf(cutOf(domain, axis)).length > 0;
}

function positionOf({ domain }: Tensor, id: number): number {
  return withoutReductions(domain.logical).findIndex((axis) => axis.id === id);
}
