/** The ops between the inputs and outputs of compositions. */
import { at } from "../../support/invariant.ts";
import type { TensorId } from "../domain.ts";
import type { FusionData } from "../fusion-data.ts";
import type { Marker } from "../marker.ts";
import { outputsOf } from "../ops/op.ts";

export interface Region {
  readonly marker: Marker;
  /** The tensors that the composition made. */
  readonly made: readonly TensorId[];
}

/**
 * The compositions by the tensor that each made last, where the sweep has all cotangents from outside. Of those that
 * share it, the outermost comes first.
 */
export function regionsOf({ ops, markers = [] }: FusionData): ReadonlyMap<TensorId, readonly Region[]> {
  const producers = new Map(ops.flatMap((op) => outputsOf(op).map((id) => [id, op.inputs] as const)));
  const regions = new Map<TensorId, Region[]>();
  for (const marker of markers.toReversed()) {
    const made: TensorId[] = [];
    const open = [...marker.outputs];
    const seen = new Set([...Object.values<TensorId>(marker.operands), ...open]);
    for (let id = open.pop(); id !== undefined; id = open.pop()) {
      made.push(id);
      for (const input of producers.get(id) ?? []) {
        if (seen.has(input)) continue;
        seen.add(input);
        open.push(input);
      }
    }
    const last = at(
      made.toSorted((a, b) => b - a),
      0,
    );
    regions.set(last, [...(regions.get(last) ?? []), { marker, made }]);
  }
  return regions;
}
