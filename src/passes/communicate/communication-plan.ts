/**
 * The communications that carry a resharding op on one rank: their kinds by the decision table (resharding-step.ts), teams and roots.
 *
 *   Allgather, Scatter, AllToAll,     one, among the devices of the mesh that differ along the changing DID type alone
 *   Allreduce, ReduceScatter
 *   Broadcast                         one, to the receiving mesh from the first sender
 *   Gather, Reduce                    one per receiver, from the devices that together have what it needs
 *   Scatter to another mesh           one per set of receivers that differ along the changing type alone
 *   SendRecv                          one per receiver
 *
 * A team lists devices in mesh order, with a root that is no member at its end; roots are positions in the team. Of senders that hold
 * the same, a receiver takes itself, then the one at its own position in a mesh of the same shape, then the first.
 */
import type { DeviceMesh } from "../../ir/device-mesh.ts";
import { axisMap } from "../../ir/ops/axis-map.ts";
import { type DIDType, type Tensor, withoutReductions } from "../../ir/domain.ts";
import type { Op } from "../../ir/ops/op.ts";
import {
  collectives,
  type CommunicationType,
  isRooted,
  reduceOpOf,
  type ReduceOpType,
} from "../../host/collectives.ts";
import { at, invariant } from "../../support/invariant.ts";
import { unreachable } from "../../support/unreachable.ts";
import { type Placement, placementOf } from "../reshard/placement.ts";
import { type ReshardingStep, reshardingStep } from "../reshard/resharding-step.ts";

export interface CommunicationPlan {
  readonly type: CommunicationType;
  readonly team: readonly number[];
  readonly root: number | null;
  readonly reduceOp: ReduceOpType | null;
}

/** Where the operand and the output of an op of one operand lie, by the operand's axes. */
export interface OpPlacements {
  readonly from: Placement;
  readonly to: Placement;
  /** The number of the axis that the op reduces or squeezes; null for a Set. */
  readonly reduced: number | null;
}

/** The placements of a Set, or of a reduction or squeeze of one axis; null for other ops, and without meshes. */
export function placementsOf(op: Op, tensors: readonly Tensor[]): OpPlacements | null {
  const reduced = op.kind === "Reduction" || op.kind === "Squeeze" ? op.axes : op.kind === "Set" ? [] : null;
  if (reduced === null || reduced.length > 1) return null;
  const producer = at(tensors, at(op.inputs, 0));
  const consumer = at(tensors, op.output);
  const axes = withoutReductions(producer.domain.logical);
  const pairs = axisMap(op, tensors);
  const images = axes.map(({ id }) => pairs.find((pair) => pair.producer.id === id)?.consumer ?? null);
  const [from, to] = [placementOf(producer, axes), placementOf(consumer, images)];
  return from === null || to === null ? null : { from, to, reduced: reduced[0] ?? null };
}

/** The communications of `op`, which one step carries, in which `rank` takes part. */
export function planCommunications(op: Op, tensors: readonly Tensor[], rank: number): readonly CommunicationPlan[] {
  const placements = placementsOf(op, tensors);
  invariant(placements !== null, "a communication carries the op", op);
  const { from, to, reduced } = placements;
  const step = reshardingStep(from, to, reduced);
  invariant(step !== null, "one step carries the op", op);
  const reduceOp = op.kind === "Reduction" ? reduceOpOf[op.op] : reduced === null ? null : "sum";
  return teamsOf(step, from.mesh, to.mesh, rank)
    .filter(({ team }) => team.includes(rank))
    .map(({ team, root }) => ({ type: step.kind, team, root, reduceOp }));
}

interface Team {
  readonly team: readonly number[];
  readonly root: number | null;
}

/** The teams of one step, with the roots. On one mesh only those of `rank`. */
export function teamsOf(step: ReshardingStep, from: DeviceMesh, to: DeviceMesh, rank: number): readonly Team[] {
  const { kind, type } = step;
  if (from.equals(to)) {
    invariant(type !== null, "a DID type changes on one mesh", step);
    return from.has(rank) ? [{ team: from.slice(rank, type), root: isRooted(kind) ? 0 : null }] : [];
  }
  const receivers = to.devices;
  const { betweenMeshes } = collectives[kind];
  switch (betweenMeshes) {
    case "all":
      return [rooted(receivers, at(from.devices, 0))];
    case "pair":
      return receivers.map((receiver) => {
        const sender = senderFor(step, from, to, receiver);
        return { team: sender === receiver ? [sender] : [sender, receiver], root: 0 };
      });
    case "one":
      invariant(type !== null, "a DID type is gathered", step);
      return receivers.map((receiver) => rooted(from.slice(senderFor(step, from, to, receiver), type), receiver));
    case "shares": {
      invariant(type !== null, "a DID type is scattered", step);
      const sets = receivers
        .filter((device) => to.coordinate(device, type) === 0)
        .map((device) => to.slice(device, type));
      return sets.map((team) => {
        const holders = sendersFor(step, from, to, at(team, 0));
        return rooted(team, holders.find((device) => team.includes(device)) ?? at(holders, 0));
      });
    }
    case null:
      return [];
    default:
      return unreachable(betweenMeshes);
  }
}

/** The devices of `from` that hold what `receiver` is to have, up to the type that changes. */
function sendersFor({ kept }: ReshardingStep, from: DeviceMesh, to: DeviceMesh, receiver: number): readonly number[] {
  const wanted = [...kept].map(([type, source]): readonly [DIDType, number] => [source, to.coordinate(receiver, type)]);
  return from.devices.filter((device) =>
    wanted.every(([type, position]) => from.coordinate(device, type) === position),
  );
}

function senderFor(step: ReshardingStep, from: DeviceMesh, to: DeviceMesh, receiver: number): number {
  const holders = sendersFor(step, from, to, receiver);
  if (holders.includes(receiver)) return receiver;
  const opposite = from.devices[to.devices.indexOf(receiver)];
  const isAlike = from.shape.length === to.shape.length && from.shape.every((size, i) => size === to.shape[i]);
  return isAlike && opposite !== undefined && holders.includes(opposite) ? opposite : at(holders, 0);
}

/** The team with the root appended where it is not a member. */
function rooted(team: readonly number[], root: number): Team {
  const position = team.indexOf(root);
  return position >= 0 ? { team, root: position } : { team: [...team, root], root: team.length };
}
