/**
 * Recognizes ops that turn a DID axis of their operand into the Stream axis of their output. Each iteration needs the
 * data of one peer, so the loop runs over the devices.
 *
 *   gather    Set        [DIDx a, M]           -> [Stream a, M]
 *   exchange  Set        [DIDx a, b, M]        -> [Stream a, DIDx b, M]     (an all-to-all, then a local sum over a)
 *   reduce    Reduction  [DIDx a, b, M], {a}   -> [rStream a, DIDx b, M]
 *
 * Axes may be at any position, and `b` may have Stream. A device keeps one index of `b`, or one run of its indices.
 * chunk-gather.ts does the same for chunks of an axis. Source: nvFuser's StreamParallelType (did_to_stream,
 * stream_to_did).
 */
import { fail } from "../../diagnostics/diagnostic.ts";
import { shardsOf, typeOfWhole } from "../../ir/shards.ts";
import { axisMap } from "../../ir/ops/axis-map.ts";
import type { DIDType, IterDomain, Tensor } from "../../ir/domain.ts";
import type { Op } from "../../ir/ops/op.ts";
import { at } from "../../support/invariant.ts";
import { axisText, opPlace } from "../op-text.ts";
import { isResharding, sameMesh } from "../routes/sharding.ts";
import { chunkGather } from "./chunk-gather.ts";
import type { PointToPointForm } from "./forms.ts";
import { requireOneType } from "./one-type.ts";
import { requireMeshExtent, scatteredAxis } from "./scattered-axis.ts";
import type { StreamPart } from "../../ir/stream.ts";

/**
 * The form of `op`, whose output has the Stream axis `stream`; null for an op that is a collective per chunk or does
 * not communicate. Throws `point-to-point-unsupported`, `resharding-unsupported`, `size-contradicts-mesh` and
 * `stream-on-reduction-axis`.
 */
export function pointToPointForm(op: Op, looped: StreamPart, tensors: readonly Tensor[]): PointToPointForm | null {
  if (!isResharding(op, tensors)) return null;
  if (looped.chunks !== null) return chunkGather(op, looped, looped.chunks, tensors);
  const stream = looped.axis;
  const pairs = axisMap(op, tensors);
  const pair = pairs.find(({ consumer }) => consumer.id === stream.id);
  if (pair === undefined) return null;
  const sharded = pair.producer;
  const operand = at(tensors, at(op.inputs, pair.operand));
  const type = typeOfWhole(operand, sharded);
  if (type === null) return null;
  const output = at(tensors, op.output);
  const change = `${axisText(operand, sharded)} becomes ${axisText(output, stream)}`;
  const refuse = (found: string, expected: string, help: string): never =>
    fail({
      code: "point-to-point-unsupported",
      message: `${change}, and the op has no point-to-point form`,
      place: opPlace(op),
      found,
      expected,
      help,
    });
  const kind = op.kind === "Set" || op.kind === "Reduction" ? op.kind : null;
  if (kind === null || (kind === "Reduction" && stream.iterType !== "reduction")) {
    return refuse(
      op.kind.toLowerCase(),
      "a set, or a reduction of the sharded axis",
      "put set() before the op and give it the Stream axis",
    );
  }
  const { mesh } = operand;
  if (mesh === null || output.mesh === null || !sameMesh(mesh, output.mesh)) {
    const keeps = output.mesh?.hasAxis(type) === true && output.mesh.size(type) === mesh?.size(type);
    const then = keeps ? `keeps ${type} on the axis` : "has neither a DID type nor Stream on the axis";
    return refuse(
      [mesh, output.mesh].map((each) => each?.toString() ?? "no mesh").join(" and "),
      "one mesh on both sides",
      `first move the tensor to the other mesh with a set() that ${then}`,
    );
  }
  requireMeshExtent(op, operand, sharded, mesh, type);
  requireOneType(op, type, tensors);
  const form = { mesh, type, sharded, stream };
  const to = shardsOf(output).find((shard) => shard.type === type);
  if (to === undefined) {
    if (kind === "Reduction") return refuseWholeSum(op, output, stream, type);
    return {
      ...form,
      kind: "gather",
      pieces: 1,
      chunk: stream,
      parts: stream.extent,
      keepsAxis: false,
      scattered: null,
    };
  }
  const scattered = scatteredAxis(op, to, mesh, tensors, refuse);
  return { ...form, kind: kind === "Set" ? "exchange" : "reduce", scattered, received: null };
}

function refuseWholeSum(op: Op, output: Tensor, stream: IterDomain, type: DIDType): never {
  fail({
    code: "stream-on-reduction-axis",
    message: "Stream is on a reduced axis, and every device needs the whole sum",
    place: opPlace(op),
    found: `${axisText(output, stream)}, and no ${type} on T${output.id}`,
    expected: `${type} on another axis of T${output.id}, or no Stream on the reduced axis`,
    help: "remove Stream from the reduced axis: one Allreduce per chunk of another axis computes the sum",
  });
}
