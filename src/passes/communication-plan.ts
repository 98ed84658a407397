/**
 * Which communications carry a resharding op, by nvFuser's decision table (getCommunicationInfo): p and c are the axes
 * that the DID type in question shards in the producer and the consumer.
 *
 *   Set                 p  c   same mesh       other mesh
 *                       -  -                   Broadcast
 *                       p  -   Allgather       Gather (one per receiver)
 *                       -  c   Scatter         Scatter
 *                       p  c   AllToAll        SendRecv (c is p's image)
 *   Reduction, Squeeze  p  -   Allreduce       Reduce (one per receiver)
 *                       p  c   ReduceScatter
 *
 * A team lists devices in mesh order; roots are positions in the team.
 */
import { fail } from "../diagnostics/diagnostic.ts";
import { axisMap } from "../ir/axis-map.ts";
import type { DeviceMesh } from "../ir/device-mesh.ts";
import { type DIDType, didTypes, type Tensor } from "../ir/domain.ts";
import type { Op, ReductionOpType } from "../ir/ops.ts";
import type { CommunicationType, ReduceOpType } from "../host/nodes.ts";
import { at, invariant } from "../support/invariant.ts";
import { opPlace } from "./op-text.ts";
import { reshardedOperands, sameMesh, shardedAxis } from "./sharding.ts";

export interface CommunicationPlan {
  readonly type: CommunicationType;
  readonly team: readonly number[];
  readonly root: number | null;
  readonly reduceOp: ReduceOpType | null;
}

const reduceOps: { readonly [K in ReductionOpType]: ReduceOpType } = {
  sum: "sum",
  prod: "prod",
  amax: "max",
  amin: "min",
};

/** The communications of `op` in which `rank` takes part. `op` is a Set, or reduces (squeezes) one sharded axis. */
export function planCommunications(op: Op, tensors: readonly Tensor[], rank: number): readonly CommunicationPlan[] {
  const producer = at(tensors, at(op.inputs, 0));
  const consumer = at(tensors, op.output);
  const { mesh: from } = producer;
  const { mesh: to } = consumer;
  if (from === null || to === null)
    return unsupported(op, "a tensor without a DeviceMesh", "a DeviceMesh on every tensor");
  const didType = changingType(op, tensors);
  const p = didType === null ? null : shardedAxis(producer, didType);
  const c = didType === null ? null : shardedAxis(consumer, didType);
  const reduceOp = op.kind === "Reduction" ? reduceOps[op.op] : op.kind === "Squeeze" ? "sum" : null;
  const same = sameMesh(from, to);
  const moved = !axisMap(op, tensors).some((pair) => pair.producer.id === p?.id && pair.consumer.id === c?.id);
  const plans = same
    ? sameMeshPlans(op, from, didType, p !== null, c !== null, reduceOp, rank)
    : otherMeshPlans(op, from, to, p !== null, c !== null, moved, reduceOp);
  return plans.filter((plan) => plan.team.includes(rank));
}

/** The DID type that changes; where only the mesh changes, the type that shards both sides, or null. */
function changingType(op: Op, tensors: readonly Tensor[]): DIDType | null {
  const [change] = reshardedOperands(op, tensors);
  invariant(change !== undefined, "the op reshards", op);
  const consumer = at(tensors, op.output);
  const sharding = didTypes.filter(
    (type) => shardedAxis(change.producer, type) !== null || shardedAxis(consumer, type) !== null,
  );
  const candidates = change.types.length > 0 ? change.types : sharding;
  if (candidates.length > 1 || (change.meshDiffers && sharding.length > 1)) {
    unsupported(op, `a change along ${sharding.join(" and ")}`, "a change along one DID type");
  }
  return candidates[0] ?? null;
}

function sameMeshPlans(
  op: Op,
  mesh: DeviceMesh,
  didType: DIDType | null,
  p: boolean,
  c: boolean,
  reduceOp: ReduceOpType | null,
  rank: number,
): readonly CommunicationPlan[] {
  invariant(didType !== null, "a resharding on one mesh changes a DID type", op);
  if (!mesh.has(rank)) return [];
  const team = mesh.slice(rank, didType);
  if (reduceOp !== null) {
    invariant(p, "a communicated reduction reduces a sharded axis", op);
    return [{ type: c ? "ReduceScatter" : "Allreduce", team, root: null, reduceOp }];
  }
  if (p && c) return [{ type: "AllToAll", team, root: null, reduceOp }];
  return p ? [{ type: "Allgather", team, root: null, reduceOp }] : [{ type: "Scatter", team, root: 0, reduceOp }];
}

function otherMeshPlans(
  op: Op,
  from: DeviceMesh,
  to: DeviceMesh,
  p: boolean,
  c: boolean,
  moved: boolean,
  reduceOp: ReduceOpType | null,
): readonly CommunicationPlan[] {
  const flat = from.shape.length === 1 && to.shape.length === 1;
  if (!flat) unsupported(op, `${from.toString()} to ${to.toString()}`, "one-dimensional meshes where the mesh changes");
  const senders = from.devices;
  const receivers = to.devices;
  const sender = at(senders, 0);
  if (p && !c) {
    const type = reduceOp === null ? "Gather" : "Reduce";
    return receivers.map((receiver) => ({ type, ...rooted(senders, receiver), reduceOp }));
  }
  if (reduceOp !== null)
    return unsupported(op, "a reduction whose output is sharded on another mesh", "the same mesh on both sides");
  if (!p && !c) return [{ type: "Broadcast", ...rooted(receivers, sender), reduceOp }];
  if (!p) {
    const root = senders.find((device) => receivers.includes(device));
    if (root === undefined)
      return unsupported(op, `(${senders.join(" ")}) to (${receivers.join(" ")})`, "a device that is in both meshes");
    return [{ type: "Scatter", ...rooted(receivers, root), reduceOp }];
  }
  if (moved)
    return unsupported(op, "another axis sharded on another mesh", "the same mesh, or the same axis, on both sides");
  if (senders.length !== receivers.length)
    return unsupported(op, `${senders.length} senders and ${receivers.length} receivers`, "meshes of equal size");
  return senders.map((device, i) => {
    const receiver = at(receivers, i);
    return { type: "SendRecv", team: device === receiver ? [device] : [device, receiver], root: 0, reduceOp };
  });
}

/** The team with the root appended where it is not a member. */
function rooted(team: readonly number[], root: number): { readonly team: readonly number[]; readonly root: number } {
  const position = team.indexOf(root);
  return position >= 0 ? { team, root: position } : { team: [...team, root], root: team.length };
}

function unsupported(op: Op, found: string, expected: string): never {
  fail({
    code: "resharding-unsupported",
    message: "no communication carries this change of sharding",
    place: opPlace(op),
    found,
    expected,
    help: "put set() in between and give it a sharding that is one step away from either side",
  });
}
