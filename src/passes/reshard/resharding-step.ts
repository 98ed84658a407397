/**
 * Which one kind of communication turns a placement into another, by nvFuser's decision table (getCommunicationInfo): p and c are the
 * axes that the DID type in question cuts in the producer and the consumer.
 *
 *   Set                 p  c   same mesh       other mesh
 *                       -  -                   Broadcast
 *                       p  -   Allgather       Gather (one per receiver)
 *                       -  c   Scatter         Scatter
 *                       p  c   AllToAll        SendRecv (c is p's image)
 *   Reduction, Squeeze  p  -   Allreduce       Reduce (one per receiver)
 *                       p  c   ReduceScatter
 *
 * One DID type changes; the others cut both sides alike. Between meshes of several dimensions that holds whatever the types are called.
 */
import { type DIDType, didTypes } from "../../ir/domain.ts";
import type { CommunicationType } from "../../host/collectives.ts";
import { type Placement, sameShares } from "./placement.ts";

export interface ReshardingStep {
  readonly kind: CommunicationType;
  /** The type that changes: of the producer's mesh, but of the consumer's for a Scatter; null where only the mesh does. */
  readonly type: DIDType | null;
  /** Types of the consumer's mesh that cut as a type of the producer's does. */
  readonly kept: ReadonlyMap<DIDType, DIDType>;
}

/**
 * The step from one placement to another; null where no one step leads. `reduced` is the number of the axis that the op reduces (or
 * squeezes); null for a Set. Throws nothing: what is not one step can be several (resharding-route.ts).
 */
export function reshardingStep(from: Placement, to: Placement, reduced: number | null): ReshardingStep | null {
  return from.mesh.equals(to.mesh) ? stepOnMesh(from, to, reduced) : stepBetweenMeshes(from, to, reduced);
}

function stepOnMesh(from: Placement, to: Placement, reduced: number | null): ReshardingStep | null {
  const changed = didTypes.filter((type) => !sameShares(from.cuts.get(type), to.cuts.get(type)));
  const [type] = changed;
  if (type === undefined || changed.length > 1) return null;
  const [p, c] = [from.cuts.get(type), to.cuts.get(type)];
  const kept = new Map(didTypes.flatMap((other) => (other !== type && from.cuts.has(other) ? [[other, other]] : [])));
  const step = (kind: CommunicationType): ReshardingStep => ({ kind, type, kept });
  if (reduced !== null) {
    if (p?.axis !== reduced) return null;
    return step(c === undefined ? "Allreduce" : "ReduceScatter");
  }
  if (c === undefined) return step("Allgather");
  if (p === undefined) return step("Scatter");
  // The same axis cut otherwise: no two devices exchange equally much.
  return p.axis === c.axis ? null : step("AllToAll");
}

function stepBetweenMeshes(from: Placement, to: Placement, reduced: number | null): ReshardingStep | null {
  const kept = new Map<DIDType, DIDType>();
  const lost = new Set(from.cuts.keys());
  for (const [type, cut] of to.cuts) {
    const same = [...lost].find((candidate) => sameShares(from.cuts.get(candidate), cut));
    if (same === undefined) continue;
    kept.set(type, same);
    lost.delete(same);
  }
  const made = [...to.cuts.keys()].filter((type) => !kept.has(type));
  const [gone, next] = [[...lost][0] ?? null, made[0] ?? null];
  if (lost.size + made.length > 1) return null;
  const step = (kind: CommunicationType): ReshardingStep => ({ kind, type: gone ?? next, kept });
  if (reduced !== null) return gone !== null && from.cuts.get(gone)?.axis === reduced ? step("Reduce") : null;
  if (gone !== null) return step("Gather");
  if (next !== null) return step("Scatter");
  return step(from.cuts.size === 0 ? "Broadcast" : "SendRecv");
}
