/**
 * One op of a Stream loop: the axis that the loop's index counts, the part of each operand that an iteration reads, and
 * the part of the output that it completes.
 */
import { fail } from "../../diagnostics/diagnostic.ts";
import type { DeviceMesh } from "../../ir/device-mesh.ts";
import type { DIDType, IterDomain, Tensor } from "../../ir/domain.ts";
import { axisMap } from "../../ir/ops/axis-map.ts";
import type { Op } from "../../ir/ops/op.ts";
import { at } from "../../support/invariant.ts";
import { axisText, opPlace } from "../op-text.ts";
import { reshardedOperands, sameMesh } from "../reshard/sharding.ts";
import type { PointToPointForm } from "./point-to-point-form.ts";

export interface LoopMember {
  readonly op: Op;
  /** Null: the op runs on slices, as a collective per chunk if it reshards. */
  readonly form: PointToPointForm | null;
  /** The Stream axis of the output, which the loop prints. */
  readonly stream: IterDomain;
  /**
   * The axis of the output that the loop's index counts. In an exchange that is the sharded axis: the devices take a
   * chunk in turn.
   */
  readonly counted: IterDomain;
  /** For each operand the axis of which an iteration reads one index; null if it reads the whole operand. */
  readonly read: readonly (IterDomain | null)[];
  /**
   * The axis of the output of which an iteration completes the loop's own index; null if it completes another index, or
   * none.
   */
  readonly made: IterDomain | null;
  /** The devices that the op exchanges with; null for none. */
  readonly peers: PeerTeam | null;
}

/**
 * Devices that exchange with each other, each with one peer per iteration. They differ only along `type` of the mesh.
 */
export interface PeerTeam {
  readonly mesh: DeviceMesh;
  readonly type: DIDType;
}

/**
 * The op as part of a loop over `stream`. `form` is its point-to-point form, if it has one. If `exchanges`, the form
 * sends and receives chunks; otherwise it is a rooted collective per chunk. Throws `stream-on-cut-axis`.
 */
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

/**
 * For each operand the axis that maps to `looped`, an axis of the op's output, or null. Throws `stream-on-cut-axis`.
 */
function loopedOperandAxes(op: Op, looped: IterDomain, tensors: readonly Tensor[]): readonly (IterDomain | null)[] {
  const pairs = axisMap(op, tensors).filter((pair) => pair.consumer.id === looped.id);
  if (pairs.length === 0) {
    fail({
      code: "stream-on-cut-axis",
      message: "Stream is on an axis that the op slices",
      place: opPlace(op),
      found: axisText(at(tensors, op.output), looped),
      expected: "Stream on an axis that the op keeps in full",
      help: "put set() after the op and parallelize the set's output with Stream",
    });
  }
  return op.inputs.map((_, operand) => pairs.find((pair) => pair.operand === operand)?.producer ?? null);
}

/**
 * Whether the op may run in a loop in which `team` exchanges. At any moment the devices of the team are at different
 * chunks (in a rotated loop) or iterations (in a linear one). The op's tensors must therefore be on the team's mesh,
 * and it may communicate only among devices with the same position along the team's type.
 */
export function canRunBeside(team: PeerTeam, { op, form, peers }: LoopMember, tensors: readonly Tensor[]): boolean {
  if (form !== null) return peers?.type === team.type && peers.mesh.equals(team.mesh);
  const onMesh = [...op.inputs, op.output].every((id) => sameMesh(at(tensors, id).mesh, team.mesh));
  return onMesh && reshardedOperands(op, tensors).every(({ types }) => !types.includes(team.type));
}
