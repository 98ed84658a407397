/**
 * The steps of a route: single communications that turn one layout into another. If one DID type changes, it is that of
 * the table of collectives (src/host/collectives.ts) whose `change` this is, as in nvFuser's decision table
 * (getCommunicationInfo); p and c are the axes that the type cuts in the producer and in the consumer:
 *
 *   Set                 p  c   same mesh       other mesh
 *                       -  -                   Broadcast; Braid: SendRecv if each receiver has a counterpart
 *                       p  -   Allgather       Gather (one per receiver)
 *                       -  c   Scatter         Scatter
 *                       p  c   AllToAll        SendRecv (c is p's image)
 *   Reduction, Squeeze  p  -   Allreduce       Reduce (one per receiver)
 *                       p  c   ReduceScatter
 *
 * All other types cut both sides alike; between two meshes of several dimensions they may have other names. Of the other
 * changes of a Set, a CollectivePermute makes those in which each device gets all that another one has, and an
 * AllToAllV the rest.
 */
import { collectives, type CommunicationType, type StepType } from "../../../host/collectives.ts";
import { type DeviceMesh, sameMeshShape } from "../../../ir/device-mesh.ts";
import { type DIDType, didTypes, isDID, type Tensor } from "../../../ir/domain.ts";
import { type Layout, sameShares } from "../../../ir/layout.ts";
import type { Op } from "../../../ir/ops/op.ts";
import { sameScalar } from "../../../ir/scalar/fold.ts";
import { at, keysOf } from "../../../support/invariant.ts";
import { layoutsOf, type OpLayouts, isResharding } from "../layouts.ts";

export interface ReshardingStep {
  readonly kind: StepType;
  /**
   * The type that changes: of the consumer's mesh for a Scatter, otherwise of the producer's. Null if several do, or
   * only the mesh.
   */
  readonly type: DIDType | null;
  /** Maps each type of the consumer's mesh to the type of the producer's mesh with the same cut. */
  readonly kept: ReadonlyMap<DIDType, DIDType>;
}

/** The step from one layout to another, or null if it takes several (route.ts). */
export function reshardingStep(from: Layout, to: Layout, nvfuserLimits: boolean): ReshardingStep | null {
  const step = collectiveStep(from, to);
  if (from.pending.length > 0 || nvfuserLimits) return step;
  if (step?.kind === "Broadcast" && isPaired(from.mesh, to.mesh)) return { ...step, kind: "SendRecv" };
  return step === null || isRearranged(from, to) ? exchangeStep(from, to) : step;
}

/** Whether each receiver has a sender of its own, so that a root need not send all to everyone. */
function isPaired(from: DeviceMesh, to: DeviceMesh): boolean {
  return (sameMeshShape(from, to) || to.devices.length === 1) && !to.devices.some((device) => from.has(device));
}

/** Whether two meshes have the same devices, so that most have some of what a root would send them. */
function isRearranged({ mesh: from }: Layout, { mesh: to }: Layout): boolean {
  return (
    from.devices.length === to.devices.length && !from.equals(to) && from.devices.every((device) => to.has(device))
  );
}

function exchangeStep(from: Layout, to: Layout): ReshardingStep {
  const kind = isPermutation(from, to) ? "CollectivePermute" : "AllToAllV";
  if (!from.mesh.equals(to.mesh)) return { kind, type: null, kept: new Map() };
  const { kept, changed } = changeOnMesh(from, to);
  return { kind, type: changed.length === 1 ? at(changed, 0) : null, kept };
}

/** The step by one of nvFuser's collectives, or null. */
export function collectiveStep(from: Layout, to: Layout): ReshardingStep | null {
  const isOneMesh = from.mesh.equals(to.mesh);
  const { kept, lost, made, changed } = isOneMesh ? changeOnMesh(from, to) : changeOfMeshes(from, to);
  const [type = null] = changed;
  if (changed.length > 1 || (isOneMesh && type === null)) return null;
  const before = from.pending.length > 0 ? "pending" : lost.length > 0 ? "cut" : "whole";
  const after = made.length > 0 ? "cut" : "whole";
  // The same axis cut differently: devices would exchange unequal amounts.
  if (before === "pending" && (type === null || !from.pending.includes(type))) return null;
  if (type !== null && isOneMesh && from.shares.get(type)?.axis === to.shares.get(type)?.axis) {
    if (before === "cut" && after === "cut") return null;
  }
  const kind = kinds.find((each) => {
    const { change, onOneMesh, betweenMeshes } = collectives[each];
    // Without a type, everybody gets all, or everybody a share.
    const isSent = betweenMeshes === "pair" ? from.shares.size > 0 : betweenMeshes !== "all" || from.shares.size === 0;
    const isMade = change?.before === before && change.after === after;
    return isMade && (isOneMesh ? onOneMesh !== null : betweenMeshes !== null && (type !== null || isSent));
  });
  return kind === undefined ? null : { kind, type, kept };
}

const kinds: readonly CommunicationType[] = keysOf(collectives);

/** The types whose shares are lost and made, those that both have, and which types these are together. */
interface Change {
  readonly kept: ReadonlyMap<DIDType, DIDType>;
  readonly lost: readonly DIDType[];
  readonly made: readonly DIDType[];
  readonly changed: readonly DIDType[];
}

function changeOnMesh(from: Layout, to: Layout): Change {
  const changed = didTypes.filter(
    (type) => from.pending.includes(type) || !sameShares(from.shares.get(type), to.shares.get(type)),
  );
  const kept = didTypes.filter((type) => from.mesh.hasAxis(type) && !changed.includes(type));
  return {
    kept: new Map(kept.map((type) => [type, type])),
    lost: changed.filter((type) => from.shares.has(type)),
    made: changed.filter((type) => to.shares.has(type)),
    changed,
  };
}

function changeOfMeshes(from: Layout, to: Layout): Change {
  const kept = new Map<DIDType, DIDType>();
  const lost = new Set([...from.shares.keys(), ...from.pending]);
  for (const [type, share] of to.shares) {
    const same = [...from.shares.keys()].find((each) => lost.has(each) && sameShares(from.shares.get(each), share));
    if (same === undefined) continue;
    kept.set(type, same);
    lost.delete(same);
  }
  const made = [...to.shares.keys()].filter((type) => !kept.has(type));
  return { kept, lost: [...lost], made, changed: [...lost, ...made] };
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

// Layouts of the same parts on other devices: each device gets all that one device has, and each gives to one.
//
//   [DIDy a, DIDx b] -> [DIDx a, DIDy b]     device (y, x) gets the share of device (x, y)
//   [DIDx a] on (0 1 2 3) -> on (1 2 3 0)    device d gets the share of device d - 1

/** Between meshes, only if no two devices have the same share: of equal copies a device may have its own already. */
export function isPermutation(from: Layout, to: Layout): boolean {
  const isOneMesh = from.mesh.equals(to.mesh);
  const isWholeMesh = ({ mesh, shares }: Layout): boolean =>
    [...shares.values()].reduce((product, { devices }) => product * devices, 1) === mesh.devices.length;
  return (
    (isOneMesh || (isWholeMesh(from) && isWholeMesh(to) && to.mesh.devices.every((device) => from.mesh.has(device)))) &&
    from.axes.every(({ parts }, axis) => {
      const others = at(to.axes, axis).parts;
      return (
        parts.length === others.length &&
        parts.every((part, i) => {
          const other = at(others, i);
          const isSame = sameScalar(part.extent, other.extent) && sameScalar(part.stride, other.stride);
          return isSame && isDID(part.type) === isDID(other.type);
        })
      );
    })
  );
}

/**
 * The device of `from` whose share `device` of `to` gets. It has the same coordinates along dimensions that cut neither
 * layout; those that cut one of them alone number the copies on both sides.
 */
export function permutationPeer(from: Layout, to: Layout, device: number): number {
  const wanted = new Map<DIDType, number>();
  from.axes.forEach(({ parts }, axis) => {
    parts.forEach(({ type }, i) => {
      const other = at(at(to.axes, axis).parts, i).type;
      if (isDID(type) && isDID(other)) wanted.set(type, to.mesh.coordinate(device, other));
    });
  });
  const types = didTypes.filter((type) => from.mesh.hasAxis(type));
  let copy = 0;
  for (const type of types) {
    if (to.shares.has(type) || !to.mesh.hasAxis(type)) continue;
    const own = to.mesh.coordinate(device, type);
    if (from.shares.has(type)) copy = copy * to.mesh.size(type) + own;
    else wanted.set(type, own);
  }
  for (const type of types.toReversed()) {
    if (wanted.has(type)) continue;
    wanted.set(type, copy % from.mesh.size(type));
    copy = Math.floor(copy / from.mesh.size(type));
  }
  return types.reduce(
    (found, type) => at(from.mesh.slice(found, type), wanted.get(type) ?? 0),
    at(from.mesh.devices, 0),
  );
}
