/**
 * The single communication that turns one layout into another. If one DID type changes, by nvFuser's decision table
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
import { type Layout, sameShares } from "../../ir/layout.ts";
import { type OpLayouts, layoutsOf } from "./layouts.ts";
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

/** The step from one layout to another, or null if it takes several (resharding-route.ts). */
export function reshardingStep(from: Layout, to: Layout, nvfuserLimits: boolean): ReshardingStep | null {
  const step = collectiveStep(from, to);
  if (from.pending.length > 0 || nvfuserLimits) return step;
  return step === null || isRearranged(from, to) ? exchangeStep(from, to) : step;
}

/** Whether two meshes have the same devices, so that most have some of what a root would send them. */
function isRearranged({ mesh: from }: Layout, { mesh: to }: Layout): boolean {
  return (
    from.devices.length === to.devices.length && !from.equals(to) && from.devices.every((device) => to.has(device))
  );
}

function exchangeStep(from: Layout, to: Layout): ReshardingStep {
  if (!from.mesh.equals(to.mesh)) return { kind: "AllToAllV", type: null, kept: new Map() };
  const types = didTypes.filter((type) => from.mesh.hasAxis(type));
  const kept = types.filter((type) => sameShares(from.shares.get(type), to.shares.get(type)));
  const changed = types.filter((type) => !kept.includes(type));
  const [type = null] = changed.length === 1 ? changed : [];
  return { kind: "AllToAllV", type, kept: new Map(kept.map((each) => [each, each])) };
}

/** The step by one of nvFuser's collectives, or null. */
export function collectiveStep(from: Layout, to: Layout): ReshardingStep | null {
  return from.mesh.equals(to.mesh) ? stepOnMesh(from, to) : stepBetweenMeshes(from, to);
}

function stepOnMesh(from: Layout, to: Layout): ReshardingStep | null {
  const isPending = (type: DIDType): boolean => from.pending.includes(type);
  const changed = didTypes.filter((type) => isPending(type) || !sameShares(from.shares.get(type), to.shares.get(type)));
  const [type] = changed;
  if (type === undefined || changed.length > 1) return null;
  const [p, c] = [from.shares.get(type), to.shares.get(type)];
  const kept = new Map(didTypes.flatMap((other) => (other !== type && from.shares.has(other) ? [[other, other]] : [])));
  const step = (kind: CommunicationType): ReshardingStep => ({ kind, type, kept });
  if (isPending(type)) return step(c === undefined ? "Allreduce" : "ReduceScatter");
  if (c === undefined) return step("Allgather");
  if (p === undefined) return step("Scatter");
  // The same axis cut differently: devices would exchange unequal amounts.
  return p.axis === c.axis ? null : step("AllToAll");
}

function stepBetweenMeshes(from: Layout, to: Layout): ReshardingStep | null {
  const kept = new Map<DIDType, DIDType>();
  const lost = new Set([...from.shares.keys(), ...from.pending]);
  for (const [type, cut] of to.shares) {
    const same = [...from.shares.keys()].find((each) => lost.has(each) && sameShares(from.shares.get(each), cut));
    if (same === undefined) continue;
    kept.set(type, same);
    lost.delete(same);
  }
  const made = [...to.shares.keys()].filter((type) => !kept.has(type));
  const [gone, next] = [[...lost][0] ?? null, made[0] ?? null];
  if (lost.size + made.length > 1) return null;
  const step = (kind: CommunicationType): ReshardingStep => ({ kind, type: gone ?? next, kept });
  if (from.pending.length > 0) return gone !== null && from.pending.includes(gone) ? step("Reduce") : null;
  if (gone !== null) return step("Gather");
  if (next !== null) return step("Scatter");
  return step(from.shares.size === 0 ? "Broadcast" : "SendRecv");
}

/** How one communication makes the op, which does nothing else; null for an op that does not reshard. */
export function opStep(
  op: Op,
  tensors: readonly Tensor[],
  nvfuserLimits: boolean,
): (OpLayouts & { readonly step: ReshardingStep }) | null {
  const layouts = isResharding(op, tensors) ? layoutsOf(op, tensors) : null;
  if (layouts === null) return null;
  const step = reshardingStep(layouts.from, layouts.to, nvfuserLimits);
  return step === null ? null : { ...layouts, step };
}
