/**
 * Which axis of a collective's unsharded side numbers the per-rank slices. The sharding of the other side determines
 * it.
 */
import { collectives, type SlicedType } from "../../commands/collectives.ts";
import { sameShare, type Shard, shardsOf } from "../../ir/shards.ts";
import { type DIDType, isDID, type IterDomain, type Tensor, withoutReductions } from "../../ir/domain.ts";

export interface PartAxis {
  /** The position among the axes that the unsharded side has at run time. */
  readonly axis: number;
  /** How the other side shards the axis; null if it has no DID type, as in some hand-built programs. */
  readonly shard: Shard | null;
}

/**
 * The axis of `whole` that is not sharded while its counterpart in `part` is; the outermost axis if there is none. If
 * `part` is the input of a reduction (`isReduced`), the sharded axis is one that `whole` lacks.
 */
export function partAxis(whole: Tensor, part: Tensor, type: SlicedType, isReduced = false): PartAxis {
  const shards = shardsOf(part);
  if (isReduced) {
    const axes = withoutReductions(part.domain.logical);
    const counterparts = alignAxes(part, whole, type);
    const shard = shards.find(({ axis }) => counterparts[axes.findIndex(({ id }) => id === axis.id)] === undefined);
    return { axis: 0, shard: shard ?? null };
  }
  const axes = withoutReductions(whole.domain.logical);
  const counterparts = alignAxes(whole, part, type);
  const own = shardsOf(whole);
  for (const [axis, { id }] of axes.entries()) {
    const shard = shards.find(
      (cut) =>
        cut.axis.id === counterparts[axis]?.id &&
        !own.some(
          (other) => other.axis.id === id && areAlike(whole, other.type, part, cut.type) && sameShare(other, cut),
        ),
    );
    if (shard !== undefined) return { axis, shard };
  }
  return { axis: 0, shard: null };
}

/** For each axis of `own`, the axis of `other` with the same index. A reduced axis has none. */
export function alignAxes(own: Tensor, other: Tensor, type: SlicedType): readonly (IterDomain | undefined)[] {
  const axes = withoutReductions(own.domain.logical);
  const kept: readonly (IterDomain | undefined)[] = withoutReductions(other.domain.logical);
  if (!collectives[type].reduces || kept.length === axes.length) return kept;
  // The reduced axis stays in the output's logical domain, as in nvFuser. If a squeeze dropped it, it was the sharded
  // axis.
  if (other.domain.logical.length === axes.length) {
    return other.domain.logical.map((axis) => (axis.iterType === "reduction" ? undefined : axis));
  }
  const shards = shardsOf(own);
  const without = (dropped: number): readonly (IterDomain | undefined)[] => kept.toSpliced(dropped, 0, undefined);
  const reduced = axes.findIndex(({ parallelType }, i) => {
    if (!isDID(parallelType)) return false;
    // All other sharded axes have the same cut on both sides. On another mesh their types may have other names.
    const counterparts = without(i);
    return shards.every(({ axis: { id }, type: cut }) => {
      const position = axes.findIndex((axis) => axis.id === id);
      const counterpart = counterparts[position]?.id;
      return (
        position === i ||
        shardsOf(other).some((shard) => shard.axis.id === counterpart && areAlike(own, cut, other, shard.type))
      );
    });
  });
  return reduced < 0 ? kept : without(reduced);
}

/** Whether two DID types may mean the same dimension: on another mesh, one of as many devices may have another name. */
function areAlike(a: Tensor, type: DIDType, b: Tensor, other: DIDType): boolean {
  if (a.mesh === null || b.mesh === null || a.mesh.equals(b.mesh)) return type === other;
  return a.mesh.size(type) === b.mesh.size(other);
}
