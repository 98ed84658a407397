/**
 * Recognizes ops that turn a DID axis of their operand into the Stream axis of their output. Each iteration needs the
 * data of one peer, so the loop runs over the devices.
 *
 *   gather    Set        [DIDx a, M]           -> [Stream a, M]
 *   exchange  Set        [DIDx a, b, M]        -> [Stream a, DIDx b, M]     (an all-to-all, then a local sum over a)
 *   reduce    Reduction  [DIDx a, b, M], {a}   -> [rStream a, DIDx b, M]
 *
 * Where loops exchange, and none makes the operand of an exchange, it is a gather of the device's own part of b: the ops
 * that read index i of a then run in the iteration that receives it.
 *
 * Axes may be at any position, and `b` may have Stream. A device keeps one index of `b`, or one run of its indices.
 * The same holds for chunks of an axis (below). Source: nvFuser's StreamParallelType (did_to_stream,
 * stream_to_did).
 */
import { fail } from "../../diagnostics/diagnostic.ts";
import { type DeviceMesh, devicesAlong } from "../../ir/device-mesh.ts";
import { type DIDType, isDID, type IterDomain, type Tensor } from "../../ir/domain.ts";
import { axisMap } from "../../ir/ops/axis-map.ts";
import type { Op } from "../../ir/ops/op.ts";
import { cutOf } from "../../ir/parts.ts";
import { constantValue } from "../../ir/scalar/fold.ts";
import { constant, type Scalar } from "../../ir/scalar/scalar.ts";
import { didTypesOf, isOneRun, isWhole, type Shard, shardsOf, typeOfWhole } from "../../ir/shards.ts";
import { chunkFit, type Chunks, sameChunks, type StreamPart, streamPart } from "../../ir/stream.ts";
import { at } from "../../support/invariant.ts";
import { axisText, opPlace } from "../op-text.ts";
import type { LoweringOptions } from "../options.ts";
import { isResharding, reshardedOperands, sameMesh } from "../routes/layouts.ts";
import { exchangesInLoops } from "../routes/move.ts";
import type { PointToPointForm, ScatteredAxis } from "./forms.ts";

/**
 * The form of `op`, whose output has the Stream axis `stream`; null for an op that is a collective per chunk or does
 * not communicate. Throws `point-to-point-unsupported`, `resharding-unsupported`, `size-contradicts-mesh` and
 * `stream-on-reduction-axis`.
 */
export function pointToPointForm(
  op: Op,
  looped: StreamPart,
  tensors: readonly Tensor[],
  options: LoweringOptions,
): PointToPointForm | null {
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
    fail("point-to-point-unsupported", `${change}, and the op has no point-to-point form`, {
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
  if (to === undefined && kind === "Reduction") return refuseWholeSum(op, output, stream, type);
  const scattered = to === undefined ? null : scatteredAxis(op, to, mesh, tensors, refuse);
  const isMadeWhole = kind === "Set" && exchangesInLoops(options) && streamPart(operand) === null;
  if (scattered !== null && !isMadeWhole)
    return { ...form, kind: kind === "Set" ? "exchange" : "reduce", scattered, received: null };
  return { ...form, kind: "gather", pieces: 1, chunk: stream, parts: stream.extent, keepsAxis: false, scattered };
}

function refuseWholeSum(op: Op, output: Tensor, stream: IterDomain, type: DIDType): never {
  fail("stream-on-reduction-axis", "Stream is on a reduced axis, and every device needs the whole sum", {
    place: opPlace(op),
    found: `${axisText(output, stream)}, and no ${type} on T${output.id}`,
    expected: `${type} on another axis of T${output.id}, or no Stream on the reduced axis`,
    help: "remove Stream from the reduced axis: one Allreduce per chunk of another axis computes the sum",
  });
}

// Recognizes a Set whose output has chunks of an axis that its operand shares among devices:
//
//   Set  [M split outer D on DIDx]  ->  [M split outer S on Stream]
//
// If each share is a whole number of chunks, an iteration receives a piece of one peer's share, as where a whole sharded
// axis becomes the Stream axis. Otherwise it gathers its chunk from all devices that have a part of it.
//
// If the type goes to another axis, the devices exchange all with all. Where a loop makes the operand in chunks of that
// axis, an iteration sends one of them; otherwise it receives its own part of a peer's share:
//
//   exchange  [a on DIDx, b split outer D on Stream]  ->  [a split outer D on Stream, b on DIDx]
//   gather    [a on DIDx, b]                          ->  [a split outer D on Stream, b on DIDx]

/**
 * The form of a resharding op whose output has chunks of an axis. Null if the change of sharding is along other axes,
 * and each chunk has a collective of its own. Throws `point-to-point-unsupported` and `resharding-unsupported`.
 */
function chunkGather(
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

// A loop over the shares of one DID type changes the sharding along no other type.

/** Throws `resharding-unsupported`. */
function requireOneType(op: Op, type: DIDType, tensors: readonly Tensor[]): void {
  const other = reshardedOperands(op, tensors)
    .flatMap(({ types }) => types)
    .find((candidate) => candidate !== type);
  if (other === undefined) return;
  fail({
    code: "resharding-unsupported",
    message: `a tensor changes its sharding along ${other} where its ${type} axis becomes a Stream axis`,
    place: opPlace(op),
    found: `changes along ${type} and ${other}`,
    expected: `a change along ${type} alone`,
    help: "put set() between the two tensors and give it the sharding after the first change",
  });
}

// The axis of which each device keeps a part in an exchange of all with all: one index, or one run of its indices.

/** The axis of which each device keeps the part `to`. */
function scatteredAxis(
  op: Op,
  to: Shard,
  mesh: DeviceMesh,
  tensors: readonly Tensor[],
  refuse: (found: string, expected: string, help: string) => never,
): ScatteredAxis {
  const [operand, output] = [at(tensors, at(op.inputs, 0)), at(tensors, op.output)];
  const scattered = axisMap(op, tensors).find(({ consumer }) => consumer.id === to.axis.id);
  if (scattered === undefined || shardsOf(operand).some(({ axis }) => axis.id === scattered.producer.id)) {
    return refuse(
      scattered === undefined
        ? `${axisText(output, to.axis)} without an axis in T${operand.id}`
        : axisText(operand, scattered.producer),
      `an axis of T${operand.id} that is not sharded and becomes ${axisText(output, to.axis)}`,
      "put set() in between and give it a sharding that is one step away from either side",
    );
  }
  return { from: scattered.producer, to: to.axis, chunks: scatteredChunks(op, output, to, mesh) };
}

/** How a device's part of the scattered axis is cut. */
function scatteredChunks(op: Op, output: Tensor, to: Shard, mesh: DeviceMesh): Chunks | null {
  if (isWhole(to)) {
    requireMeshExtent(op, output, to.axis, mesh, to.type);
    return null;
  }
  if (didTypesOf(to.cut).length === 1 && isOneRun(to, mesh.size(to.type)))
    return { parts: constant(mesh.size(to.type)), within: [] };
  return fail({
    code: "point-to-point-unsupported",
    message: `a device keeps no equal run of ${axisText(output, to.axis)}, and the op has no point-to-point form`,
    place: opPlace(op),
    found: `${axisText(output, to.axis)} in parts ${to.cut.parts.map(({ type }) => type).join(", ")}`,
    expected: `the axis in equal parts for the devices, ${to.type} on the outermost, and no other type on it`,
    help: `leave Stream out: one ${op.kind === "Set" ? "AllToAll" : "ReduceScatter"} moves all of it`,
  });
}

/**
 * Iteration i works with the i-th device, so the axis has one index per device. A symbolic size is checked once it is
 * known.
 */
function requireMeshExtent(op: Op, tensor: Tensor, axis: IterDomain, mesh: DeviceMesh, type: DIDType): void {
  const devices = mesh.size(type);
  if (axis.extent.kind !== "constant" || axis.extent.value === devices) return;
  fail("size-contradicts-mesh", `${axisText(tensor, axis)} and the mesh differ in size along ${type}`, {
    place: opPlace(op),
    found: `size ${axis.extent.value}, ${devicesAlong(mesh, type)}`,
    expected: `size ${devices}`,
    help: `give the axis the size of the mesh along ${type}`,
  });
}
