/**
 * What a Stream loop needs to know of one of its ops: the axis by whose index an iteration's share of the op is chosen, what of the
 * output the iteration completes, and which index that may be. Ops of one loop agree on it.
 */
import type { DeviceMesh } from "../../ir/device-mesh.ts";
import type { DIDType, IterDomain, Tensor } from "../../ir/domain.ts";
import type { Op } from "../../ir/ops/op.ts";
import { at } from "../../support/invariant.ts";
import type { PointToPointForm } from "./point-to-point-form.ts";
import { reshardedOperands, sameMesh } from "../reshard/sharding.ts";
import { loopedOperandAxes } from "./emit/slice-op.ts";

export interface LoopMember {
  readonly op: Op;
  /** null: the op runs over slices; a collective per chunk where it reshards. */
  readonly form: PointToPointForm | null;
  /** The Stream axis of the output: what the loop prints. */
  readonly stream: IterDomain;
  /** The axis of the output that the loop's index counts. That of an exchange is sharded: its devices take a chunk in turn. */
  readonly counted: IterDomain;
  /** For each operand the axis of which an iteration reads one index; null: the operand is used whole. */
  readonly read: readonly (IterDomain | null)[];
  /** The axis of the output of which an iteration completes the loop's own index; null where it completes another one, or none. */
  readonly made: IterDomain | null;
  /** With whom the op exchanges; null for none. */
  readonly peers: PeerTeam | null;
}

/** Devices that exchange with one another, each with one peer per iteration: those of the mesh that differ along `type`. */
export interface PeerTeam {
  readonly mesh: DeviceMesh;
  readonly type: DIDType;
}

/** The op as a member of a loop over `stream`; `form` where devices share the axis, which `exchanges` chunks by sends and receives, or else has a collective per chunk. */
export function loopMember(
  op: Op,
  stream: IterDomain,
  form: PointToPointForm | null,
  exchanges: boolean,
  tensors: readonly Tensor[],
): LoopMember {
  const counted = form === null || form.kind === "gather" ? stream : form.scattered.to;
  const read = loopedOperandAxes(op, counted, tensors);
  const isKept = form === null ? stream.iterType !== "reduction" : form.kind === "gather";
  const made = isKept ? stream : null;
  const peers = form !== null && exchanges ? { mesh: form.mesh, type: form.type } : null;
  return { op, form, stream, counted, read, made, peers };
}

function sameTeam(a: PeerTeam | null, b: PeerTeam): boolean {
  return a?.type === b.type && a.mesh.equals(b.mesh);
}

/**
 * Whether the op may run in a loop in which `team` exchanges: at any moment its devices are at different chunks (in a rotated loop) or
 * iterations (in a linear one). Its tensors lie on the team's mesh, and a collective may only be among devices that have the same
 * position along the team's type.
 */
export function canRunBeside(team: PeerTeam, { op, form, peers }: LoopMember, tensors: readonly Tensor[]): boolean {
  if (form !== null) return sameTeam(peers, team);
  const onMesh = [...op.inputs, op.output].every((id) => sameMesh(at(tensors, id).mesh, team.mesh));
  return onMesh && reshardedOperands(op, tensors).every(({ types }) => !types.includes(team.type));
}
