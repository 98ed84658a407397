/**
 * Recognizes a Set whose output has chunks of an axis that its operand shares among devices:
 *
 *   Set  [M split outer D on DIDx]  ->  [M split outer S on Stream]
 *
 * If each share is a whole number of chunks, an iteration receives a piece of one peer's share, as where a whole sharded
 * axis becomes the Stream axis. Otherwise it gathers its chunk from all devices that have a part of it.
 *
 * If the type goes to another axis, the devices exchange all with all. Where a loop makes the operand in chunks of that
 * axis, an iteration sends one of them; otherwise it receives its own part of a peer's share:
 *
 *   exchange  [a on DIDx, b split outer D on Stream]  ->  [a split outer D on Stream, b on DIDx]
 *   gather    [a on DIDx, b]                          ->  [a split outer D on Stream, b on DIDx]
 */
import { fail } from "../../diagnostics/diagnostic.ts";
import { cutOf } from "../../ir/parts.ts";
import { isDID, type Tensor } from "../../ir/domain.ts";
import { axisMap } from "../../ir/ops/axis-map.ts";
import type { Op } from "../../ir/ops/op.ts";
import { constantValue } from "../../ir/scalar/fold.ts";
import type { Scalar } from "../../ir/scalar/scalar.ts";
import { at } from "../../support/invariant.ts";
import { axisText, opPlace } from "../op-text.ts";
import { sameMesh } from "../routes/sharding.ts";
import { requireOneType } from "./one-type.ts";
import { scatteredAxis } from "./scattered-axis.ts";
import type { PointToPointForm } from "./forms.ts";
import { shardsOf } from "../../ir/shards.ts";
import { chunkFit, type Chunks, sameChunks, type StreamPart, streamPart } from "../../ir/stream.ts";

/**
 * The form of a resharding op whose output has chunks of an axis. Null if the change of sharding is along other axes,
 * and each chunk has a collective of its own. Throws `point-to-point-unsupported` and `resharding-unsupported`.
 */
export function chunkGather(
  op: Op,
  { axis, part }: StreamPart,
  chunks: Chunks,
  tensors: readonly Tensor[],
): PointToPointForm | null {
  const pair = axisMap(op, tensors).find(({ consumer }) => consumer.id === axis.id);
  if (pair === undefined || op.kind !== "Set" || chunks.within.length > 0) return null;
  const operand = at(tensors, at(op.inputs, 0));
  const output = at(tensors, op.output);
  const cut = cutOf(operand.domain, pair.producer);
  if (chunkFit(cut, chunks).kind !== "shares") return null;
  const own = cut.parts.map(({ type }) => type);
  const [type, ...others] = own.filter(isDID);
  const refuse = (found: string, expected: string, help: string): never =>
    fail({
      code: "point-to-point-unsupported",
      message: `${axisText(operand, pair.producer)} becomes ${axisText(output, part)}, and the op has no point-to-point form`,
      place: opPlace(op),
      found,
      expected,
      help,
    });
  if (type === undefined || others.length > 0) {
    return refuse(
      `the axis in parts ${own.join(", ")}`,
      "one DID type on the axis",
      "put set() in between that leaves one DID type on the axis: each chunk is gathered twice, and both overlap",
    );
  }
  const { mesh } = operand;
  if (mesh === null || !sameMesh(mesh, output.mesh)) {
    return refuse(
      [mesh, output.mesh].map((each) => each?.toString() ?? "no mesh").join(" and "),
      "one mesh on both sides",
      `first move the tensor to the other mesh with a set() that keeps ${type} on the axis: that set does not overlap`,
    );
  }
  const pieces = own[0] === type ? piecesOf(axis.extent, mesh.size(type), chunks.parts) : null;
  const to = shardsOf(output).find((shard) => shard.type === type);
  if (to !== undefined && (pieces !== 1 || to.axis.id === axis.id)) {
    return refuse(
      `${type} on T${output.id} too`,
      `no ${type} on T${output.id}`,
      `put set() in between that has Stream and no ${type}: it gathers each chunk, and the next op takes its share`,
    );
  }
  requireOneType(op, type, tensors);
  const form = { mesh, type, sharded: pair.producer, stream: part };
  if (pieces === null) return { ...form, kind: "ranges" };
  const scattered = to === undefined ? null : scatteredAxis(op, to, mesh, tensors, refuse);
  const made = streamPart(operand);
  const isMadeInChunks =
    made?.axis.id === scattered?.from.id && sameChunks(made?.chunks ?? null, scattered?.chunks ?? null);
  return scattered !== null && made !== null && isMadeInChunks
    ? { ...form, kind: "exchange", scattered, received: { axis, parts: chunks.parts } }
    : { ...form, kind: "gather", pieces, chunk: axis, parts: chunks.parts, keepsAxis: true, scattered };
}

/**
 * How many chunks each of `devices` shares is. Null if a chunk may have parts of two shares: both round up, so that for
 * a size that does not divide a share need not be as long as its chunks.
 */
function piecesOf(extent: Scalar, devices: number, parts: Scalar): number | null {
  const count = constantValue(parts);
  if (count === null || count % devices !== 0) return null;
  const pieces = count / devices;
  if (pieces === 1 || devices === 1) return pieces;
  const size = constantValue(extent);
  return size !== null && Math.ceil(size / devices) === pieces * Math.ceil(size / count) ? pieces : null;
}
