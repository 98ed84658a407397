/**
 * The single communication that turns one placement into another. If one DID type changes, by nvFuser's decision table
 * (getCommunicationInfo); p and c are the axes that it cuts in the producer and in the consumer:
 *
 *   Set                 p  c   same mesh       other mesh
 *                       -  -                   Broadcast
 *                       p  -   Allgather       Gather (one per receiver)
 *                       -  c   Scatter         Scatter
 *                       p  c   AllToAll        SendRecv (c is p's image)
 *   Reduction, Squeeze  p  -   Allreduce       Reduce (one per receiver)
 *                       p  c   ReduceScatter
 *
 * All other types cut both sides alike; between two meshes of several dimensions they may have other names. An
 * AllToAllV makes any other change of a Set.
 */
import { type DIDType, didTypes, type Tensor } from "../../ir/domain.ts";
import type { Op } from "../../ir/ops/op.ts";
import type { CommunicationType } from "../../host/collectives.ts";
import { type OpPlacements, type Placement, placementsOf, sameShares } from "./placement.ts";
import { isResharding } from "./sharding.ts";

export interface ReshardingStep {
  readonly kind: CommunicationType;
  /**
   * The type that changes: of the consumer's mesh for a Scatter, otherwise of the producer's. Null if several do, or
   * only the mesh.
   */
  readonly type: DIDType | null;
  /** Maps each type of the consumer's mesh to the type of the producer's mesh with the same cut. */
  readonly kept: ReadonlyMap<DIDType, DIDType>;
}

/**
 * The step from one placement to another, or null if it takes several (resharding-route.ts). `reduced` is the number of
 * the axis that the op reduces or squeezes; null for a Set.
 */
export function reshardingStep(
  from: Placement,
  to: Placement,
  reduced: number | null,
  nvfuserLimits: boolean,
): ReshardingStep | null {
  const step = collectiveStep(from, to, reduced);
  if (reduced !== null || nvfuserLimits) return step;
  return step === null || isRearranged(from, to) ? exchangeStep(from, to) : step;
}

/** Whether two meshes have the same devices, so that most have some of what a root would send them. */
function isRearranged({ mesh: from }: Placement, { mesh: to }: Placement): boolean {
  return (
    from.devices.length === to.devices.length && !from.equals(to) && from.devices.every((device) => to.has(device))
  );
}

function exchangeStep(from: Placement, to: Placement): ReshardingStep {
  if (!from.mesh.equals(to.mesh)) return { kind: "AllToAllV", type: null, kept: new Map() };
  const types = didTypes.filter((type) => from.mesh.hasAxis(type));
  const kept = types.filter((type) => sameShares(from.cuts.get(type), to.cuts.get(type)));
  const changed = types.filter((type) => !kept.includes(type));
  const [type = null] = changed.length === 1 ? changed : [];
  return { kind: "AllToAllV", type, kept: new Map(kept.map((each) => [each, each])) };
}

/** The step by one of nvFuser's collectives, or null. */
export function collectiveStep(from: Placement, to: Placement, reduced: number | null): ReshardingStep | null {
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
  // The same axis cut differently: devices would exchange unequal amounts.
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

/** How one communication makes the op, which does nothing else; null for an op that does not reshard. */
export function opStep(
  op: Op,
  tensors: readonly Tensor[],
  nvfuserLimits: boolean,
): (OpPlacements & { readonly step: ReshardingStep }) | null {
  const placements = isResharding(op, tensors) ? placementsOf(op, tensors) : null;
  if (placements === null) return null;
  const step = reshardingStep(placements.from, placements.to, placements.reduced, nvfuserLimits);
  return step === null ? null : { ...placements, step };
}
