/**
 * What a Stream loop needs to know of one of its ops: the axis by whose index an iteration's share of the op is chosen, what of the
 * output the iteration completes, and which index that may be. Ops of one loop agree on it.
 */
import type { DeviceMesh } from "../ir/device-mesh.ts";
import type { DIDType, IterDomain, Tensor } from "../ir/domain.ts";
import type { Op } from "../ir/ops.ts";
import type { PointToPointForm } from "./point-to-point-form.ts";
import { reshardedOperands, sameMesh } from "./sharding.ts";
import { loopedOperandAxes } from "./slice-op.ts";

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
  /** The axis of the output of which an iteration completes the loop's own index; null where it completes another one. */
  readonly made: IterDomain | null;
  /** The devices over which the loop's index is rotated, so that each starts with its own chunk; null for none. */
  readonly rotation: Rotation | null;
}

/** Iteration i works on chunk `( position + i ) % size`, by the rank's position along `type`. */
export interface Rotation {
  readonly mesh: DeviceMesh;
  readonly type: DIDType;
}

export function loopMember(
  op: Op,
  stream: IterDomain,
  form: PointToPointForm | null,
  rotates: boolean,
  tensors: readonly Tensor[],
): LoopMember {
  const counted = form === null || form.kind === "gather" ? stream : form.scattered.to;
  const read = loopedOperandAxes(op, counted, tensors);
  const made = form === null || form.kind === "gather" ? stream : null;
  const rotation = form !== null && rotates ? { mesh: form.mesh, type: form.type } : null;
  return { op, form, stream, counted, read, made, rotation };
}

export function sameRotation(a: Rotation | null, b: Rotation | null): boolean {
  return a === null || b === null ? a === b : a.type === b.type && a.mesh.equals(b.mesh);
}

/**
 * Whether the op may run where the chunk of an iteration differs between devices: its tensors lie on the rotation's mesh, and if it
 * is a collective, then among devices that have the same position along the rotation's type.
 */
export function acceptsRotation(member: LoopMember, rotation: Rotation, tensors: readonly Tensor[]): boolean {
  if (member.form !== null) return sameRotation(member.rotation, rotation);
  const { op } = member;
  const onMesh = [...op.inputs, op.output].every((id) => sameMesh(tensors[id]?.mesh ?? null, rotation.mesh));
  return onMesh && reshardedOperands(op, tensors).every(({ types }) => !types.includes(rotation.type));
}
