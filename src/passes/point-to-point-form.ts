/**
 * Recognises the ops that turn a DID axis of their operand into the Stream axis of their output: every iteration needs the data of
 * one peer, so that the loop runs over the devices.
 *
 *   gather    Set        [DIDx a, M]           -> [Stream a, M]
 *   exchange  Set        [DIDx a, b, M]        -> [Stream a, DIDx b, M]     (an all-to-all, then a local sum over a)
 *   reduce    Reduction  [DIDx a, b, M], {a}   -> [rStream a, DIDx b, M]
 *
 * Axes may stand at any position; `b` may have Stream or none. Source: nvFuser's StreamParallelType (did_to_stream, stream_to_did).
 */
import { fail } from "../diagnostics/diagnostic.ts";
import { type AxisPair, axisMap } from "../ir/axis-map.ts";
import type { DeviceMesh } from "../ir/device-mesh.ts";
import { type DIDType, isDID, type IterDomain, type Tensor } from "../ir/domain.ts";
import type { Op } from "../ir/ops.ts";
import { at } from "../support/invariant.ts";
import { axisText, opPlace } from "./op-text.ts";
import { isResharding, reshardedOperands, sameMesh, shardedAxis } from "./sharding.ts";

interface FormAxes {
  readonly mesh: DeviceMesh;
  readonly type: DIDType;
  /** a of the operand. */
  readonly sharded: IterDomain;
  /** a of the output. */
  readonly stream: IterDomain;
}

/** b of the operand and of the output. */
export interface ScatteredAxis {
  readonly from: IterDomain;
  readonly to: IterDomain;
}

export type PointToPointForm = FormAxes &
  ({ readonly kind: "gather" } | { readonly kind: "exchange" | "reduce"; readonly scattered: ScatteredAxis });

/**
 * The form of `op`, whose output has the Stream axis `looped`; null for an op that is a collective per chunk, or none at all. Throws
 * `point-to-point-unsupported`, `resharding-unsupported`, `size-contradicts-mesh` and `stream-on-reduction-axis`.
 */
export function pointToPointForm(op: Op, looped: IterDomain, tensors: readonly Tensor[]): PointToPointForm | null {
  if (!isResharding(op, tensors)) return null;
  const pairs = axisMap(op, tensors);
  const peer = pairs.find(
    ({ consumer, producer }) => consumer.id === looped.id && isDID(producer.parallelType),
  )?.producer;
  if (peer === undefined || !isDID(peer.parallelType)) return null;
  const type = peer.parallelType;
  const producer = at(tensors, at(op.inputs, 0));
  const consumer = at(tensors, op.output);
  if (op.kind !== "Set" && !(op.kind === "Reduction" && looped.iterType === "reduction")) {
    return unsupported(
      op,
      peer,
      looped,
      tensors,
      `${op.kind.toLowerCase()}`,
      "a set, or a reduction of the sharded axis",
      "put set() in front of the op and give it the Stream axis",
    );
  }
  if (producer.mesh === null || consumer.mesh === null || !sameMesh(producer.mesh, consumer.mesh)) {
    return unsupported(
      op,
      peer,
      looped,
      tensors,
      `${producer.mesh?.toString() ?? "no mesh"} and ${consumer.mesh?.toString() ?? "no mesh"}`,
      "one mesh on both sides",
      `put set() in front that moves the tensor to the other mesh and keeps ${type} on the axis`,
    );
  }
  requireMeshExtent(op, producer, peer, producer.mesh, type);
  const changed = reshardedOperands(op, tensors).flatMap((change) => change.types);
  const other = changed.find((candidate) => candidate !== type);
  if (other !== undefined) {
    return fail({
      code: "resharding-unsupported",
      message: `a tensor changes its sharding along ${other} where its ${type} axis becomes a Stream axis`,
      place: opPlace(op),
      found: `changes along ${type} and ${other}`,
      expected: `a change along ${type} alone`,
      help: "put set() between the two tensors and give it the sharding after the first change",
    });
  }
  const base = { mesh: producer.mesh, type, sharded: peer, stream: looped };
  const to = shardedAxis(consumer, type);
  if (to === null) {
    if (op.kind === "Set") return { ...base, kind: "gather" };
    return fail({
      code: "stream-on-reduction-axis",
      message: "Stream stands on a reduced axis, and every device needs the whole sum",
      place: opPlace(op),
      found: `${axisText(consumer, looped)}, and no ${type} on T${consumer.id}`,
      expected: `${type} on another axis of T${consumer.id}, or no Stream on the reduced axis`,
      help: "leave Stream off the reduced axis: one Allreduce per chunk of another axis carries the sum",
    });
  }
  const from = imageInProducer(pairs, to);
  if (from === null || isDID(from.parallelType)) {
    return unsupported(
      op,
      peer,
      looped,
      tensors,
      from === null ? `${axisText(consumer, to)} without an axis in T${producer.id}` : axisText(producer, from),
      `an axis of T${producer.id} that is not sharded and becomes ${axisText(consumer, to)}`,
      "put set() in between and give it a sharding that is one step away from either side",
    );
  }
  requireMeshExtent(op, consumer, to, consumer.mesh, type);
  return { ...base, kind: op.kind === "Set" ? "exchange" : "reduce", scattered: { from, to } };
}

function imageInProducer(pairs: readonly AxisPair[], axis: IterDomain): IterDomain | null {
  return pairs.find(({ consumer }) => consumer.id === axis.id)?.producer ?? null;
}

/** Iteration i works with the i-th device, so that the axis must have one index per device. A symbolic size is checked when it is known. */
function requireMeshExtent(op: Op, tensor: Tensor, axis: IterDomain, mesh: DeviceMesh, type: DIDType): void {
  const devices = mesh.size(type);
  if (axis.extent.kind !== "constant" || axis.extent.value === devices) return;
  fail({
    code: "size-contradicts-mesh",
    message: `${axisText(tensor, axis)} has another size than the mesh along ${type}`,
    place: opPlace(op),
    found: `size ${axis.extent.value}, ${devices} device${devices === 1 ? "" : "s"} along ${type} of ${mesh.toString()}`,
    expected: `size ${devices}`,
    help: `give the axis the size of the mesh along ${type}`,
  });
}

function unsupported(
  op: Op,
  peer: IterDomain,
  looped: IterDomain,
  tensors: readonly Tensor[],
  found: string,
  expected: string,
  help: string,
): never {
  const producer = at(
    tensors,
    op.inputs.find((input) => at(tensors, input).domain.logical.some(({ id }) => id === peer.id)) ?? at(op.inputs, 0),
  );
  fail({
    code: "point-to-point-unsupported",
    message: `${axisText(producer, peer)} becomes ${axisText(at(tensors, op.output), looped)}, and no point-to-point form carries the op`,
    place: opPlace(op),
    found,
    expected,
    help,
  });
}
