/**
 * One op or host unit of a Stream loop: the axis that the loop's index counts, the part of each operand that an
 * iteration reads, and the part of each output that it completes.
 */
import type { DeviceMesh } from "../../ir/device-mesh.ts";
import type { DIDType, IterDomain, Tensor, TensorId } from "../../ir/domain.ts";
import { type Op, outputsOf } from "../../ir/ops/op.ts";
import type { PostOnStream } from "../../host/nodes.ts";
import { statementAccess, isOp } from "../../host/traverse.ts";
import { at } from "../../support/invariant.ts";
import { reshardedOperands, sameMesh } from "../routes/layouts.ts";
import type { PointToPointForm } from "./forms.ts";
import type { Chunks, StreamPart } from "../../ir/stream.ts";

export interface LoopMember {
  readonly statement: Op | PostOnStream;
  readonly inputs: readonly TensorId[];
  readonly outputs: readonly TensorId[];
  /** Null: the op runs on slices, as a collective per chunk if it reshards. */
  readonly form: PointToPointForm | null;
  /** The Stream axis of the output, which the loop prints. */
  readonly stream: IterDomain;
  /**
   * The logical axis of the (first) output that the loop's index counts. In an exchange that is the sharded axis: the
   * devices take a chunk in turn.
   */
  readonly counted: IterDomain;
  /** How the loop cuts the axis; null if an iteration takes one index of it. */
  readonly chunks: Chunks | null;
  /** For each operand the axis of which an iteration reads a slice; null if it reads the whole operand. */
  readonly read: readonly (IterDomain | null)[];
  /**
   * For each output the axis of which an iteration completes the loop's own slice; null if it completes another one, or
   * none.
   */
  readonly made: readonly (IterDomain | null)[];
  /** The devices that the op exchanges with; null for none. */
  readonly peers: PeerTeam | null;
}

/**
 * Devices that exchange with each other, each with one peer per iteration. They differ only along `type` of the mesh.
 */
export interface PeerTeam {
  readonly mesh: DeviceMesh;
  readonly type: DIDType;
  /** How many chunks a device's share is. */
  readonly pieces: number;
}

/** The axes of a member's operands and outputs that a loop slices. */
export type SlicedAxes = Pick<LoopMember, "read" | "made">;

/** The op as part of a loop over the Stream axis `looped` of its output. */
export function opMember(
  op: Op,
  { part, axis, chunks }: StreamPart,
  form: PointToPointForm | null,
  exchanges: boolean,
  axesOf: (counted: IterDomain) => readonly (IterDomain | null)[],
  furtherAxis: (which: number, axis: IterDomain) => IterDomain,
): LoopMember {
  const isGather = form === null || form.kind === "gather" || form.kind === "ranges";
  const counted = isGather ? axis : form.scattered.to;
  const cut = isGather ? chunks : form.scattered.chunks;
  const read = axesOf(counted);
  const made = isGather && axis.iterType !== "reduction" ? axis : null;
  const peers =
    form !== null && form.kind !== "ranges" && exchanges
      ? { mesh: form.mesh, type: form.type, pieces: form.kind === "gather" ? form.pieces : 1 }
      : null;
  const { inputs } = op;
  const outputs = outputsOf(op);
  const furtherMade = outputs.slice(1).map((_, i) => furtherAxis(i + 1, axis));
  return {
    statement: op,
    inputs,
    outputs,
    form,
    stream: part,
    counted,
    chunks: cut,
    read,
    made: [made, ...furtherMade],
    peers,
  };
}

/** The unit as part of a loop over the Stream axis `looped` of its first output. */
export function unitMember(post: PostOnStream, { part, axis, chunks }: StreamPart, axes: SlicedAxes): LoopMember {
  const { inputs, outputs } = post;
  return { statement: post, inputs, outputs, form: null, stream: part, counted: axis, chunks, ...axes, peers: null };
}

/**
 * Whether the op may run in a loop in which `team` exchanges. At any moment the devices of the team are at different
 * chunks (in a rotated loop) or iterations (in a linear one). The op's tensors must therefore be on the team's mesh,
 * and it may communicate only among devices with the same position along the team's type.
 */
export function canRunBeside(
  team: PeerTeam,
  { statement, form, peers }: LoopMember,
  tensors: readonly Tensor[],
): boolean {
  if (form !== null) {
    return peers?.type === team.type && peers.pieces === team.pieces && peers.mesh.equals(team.mesh);
  }
  const { reads, writes } = statementAccess(statement);
  const onMesh = [...reads, ...writes].every((id) => sameMesh(at(tensors, id).mesh, team.mesh));
  if (!onMesh) return false;
  return !isOp(statement) || reshardedOperands(statement, tensors).every(({ types }) => !types.includes(team.type));
}
