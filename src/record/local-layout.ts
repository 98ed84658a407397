/**
 * The layout of a tensor on one rank. An axis consists of parts: a device holds one index of each part with a DID type
 * and all indices of the others, as far as they exist (ir/axis-runs.ts). Reduced axes are absent. The buffer is
 * contiguous in the order of the allocation domain.
 */
import { stridesInOrder } from "../commands/view.ts";
import { fail, type Place } from "../diagnostics/diagnostic.ts";
import { devicesAlong } from "../ir/device-mesh.ts";
import {
  allocatedAxes,
  type DIDType,
  isDID,
  type IterDomain,
  type IterDomainId,
  type ParallelType,
  type Tensor,
  type TensorDomain,
  withoutReductions,
} from "../ir/domain.ts";
import { heldRuns, loopAxesOf, onDevice, sizedCut } from "../ir/parts.ts";
import { printIterDomain, printTensor } from "../ir/print-tensor.ts";
import { countIn, type Runs } from "../ir/runs.ts";
import { constantValue } from "../ir/scalar/fold.ts";
import { constant, evaluateScalar, printScalar } from "../ir/scalar/scalar.ts";
import { mergedShard } from "../ir/shards.ts";
import { at, getOrMake } from "../support/invariant.ts";

export interface LocalLayout {
  /** Elements per logical axis, without reductions. */
  readonly shape: readonly number[];
  /** In elements, for a buffer that holds this tensor alone. */
  readonly strides: readonly number[];
}

export type SizeOf = (name: string) => number | undefined;

/**
 * The extents of the tensor over all devices. `inputs` are the program's, for messages about missing sizes. Throws
 * `size-missing` and `bad-extent`.
 */
export function wholeExtents(tensor: Tensor, sizeOf: SizeOf, inputs: readonly Tensor[]): readonly number[] {
  return withoutReductions(tensor.domain.logical).map((axis) => sizeOfAxis(tensor, axis, sizeOf, inputs));
}

/**
 * The local layout of a tensor whose shape over all devices is `shape`. On null, and on a rank outside the mesh, it is
 * that of the first device, which has the longest share of every axis. Throws `mesh-axis-missing`,
 * `size-contradicts-mesh`, `did-on-merged-axis` and `allocation-on-split-axis`.
 */
export function layoutOfShape(tensor: Tensor, shape: readonly number[], rank: number | null): LocalLayout {
  return at(layoutsOfShape(tensor, shape, [rank]), 0);
}

/** `layoutOfShape` on each of these ranks. */
export function layoutsOfShape(
  tensor: Tensor,
  shape: readonly number[],
  ranks: readonly (number | null)[],
): readonly LocalLayout[] {
  const merged = mergedShard(tensor);
  if (merged !== null) rejectMerged(tensor, merged);
  const axes = withoutReductions(tensor.domain.logical);
  const parts = axes.map((axis, position) => localParts(tensor, axis, at(shape, position)));
  const order = memoryOrder(tensor, axes, parts);
  const counts = axes.map((axis, position) => {
    const size = at(shape, position);
    const types = at(parts, position).flatMap(({ type }) => (isDID(type) ? [type] : []));
    if (types.length === 0) return () => size;
    // Many ranks lie alike along one axis.
    const known = new Map<string, number>();
    return (rank: number | null): number =>
      getOrMake(known, types.map((type) => coordinateOn(tensor, type, rank)).join(), () =>
        countIn(indicesOn(tensor, axis, size, rank)),
      );
  });
  return ranks.map((rank) => {
    const local = counts.map((count) => count(rank));
    return { shape: local, strides: stridesInOrder(local, order) };
  });
}

/** Whether an axis of `size` elements, of which `extent` exist, divides by all its parts. */
export function hasEqualParts(domain: TensorDomain, axis: IterDomain, size: number, extent = size): boolean {
  const { parts } = sizedCut(domain, axis, size);
  return parts.length === 1 || parts.reduce((product, part) => product * part.extent, 1) === extent;
}

/** The indices of an axis of `size` elements that `rank` holds; those of the first device as in `layoutOfShape`. */
export function indicesOn(tensor: Tensor, axis: IterDomain, size: number, rank: number | null): Runs {
  return heldRuns(
    sizedCut(tensor.domain, axis, size),
    onDevice((type) => coordinateOn(tensor, type, rank)),
  );
}

/** The position of `rank` along `type` of the tensor's mesh; 0 for null, and on a rank outside the mesh. */
export function coordinateOn({ mesh }: Tensor, type: DIDType, rank: number | null): number {
  return rank !== null && mesh?.has(rank) === true && mesh.hasAxis(type) ? mesh.coordinate(rank, type) : 0;
}

/** A loop axis, and how many of its indices a device holds at most. */
interface HeldAxis {
  readonly id: IterDomainId;
  readonly type: ParallelType;
  readonly extent: number;
}

/** The loop axes of the axis: of one with a DID type, a device holds one index. */
function localParts(tensor: Tensor, axis: IterDomain, size: number): readonly HeldAxis[] {
  return loopAxesOf(tensor.domain, { ...axis, extent: constant(size) }).map(({ id, type, extent }) => {
    const own = constantValue(extent) ?? size;
    if (isDID(type)) requireMeshSize(tensor, axis, id, type, own);
    return { id, type, extent: isDID(type) ? 1 : own };
  });
}

/**
 * The axes in memory order, outermost first. An allocation domain may list parts of split axes. The parts of an axis
 * that the device holds must then be adjacent and in order.
 */
function memoryOrder(
  tensor: Tensor,
  axes: readonly IterDomain[],
  parts: readonly (readonly HeldAxis[])[],
): readonly number[] {
  const allocated = allocatedAxes(tensor.domain);
  if (allocated === null) return axes.map((_, position) => position);
  const listed = withoutReductions(allocated);
  const whole = listed.map(({ id }) => axes.findIndex((axis) => axis.id === id));
  if (whole.length === axes.length && !whole.includes(-1)) return whole;
  const held = listed.flatMap(({ id }) => {
    const position = parts.findIndex((own) => own.some((part) => part.id === id));
    const index = parts[position]?.findIndex((part) => part.id === id) ?? -1;
    if (index < 0) return rejectAllocation(tensor, listed);
    return parts[position]?.[index]?.extent === 1 ? [] : [{ position, index }];
  });
  const order: number[] = [];
  let last = -1;
  for (const { position, index } of held) {
    if (order.at(-1) !== position) {
      if (order.includes(position)) return rejectAllocation(tensor, listed);
      order.push(position);
    } else if (index < last) return rejectAllocation(tensor, listed);
    last = index;
  }
  return [...order, ...[...axes.keys()].filter((position) => !order.includes(position))];
}

function placeOf(tensor: Tensor): Place {
  return { kind: "tensor", text: printTensor(tensor) };
}

function sizeOfAxis(tensor: Tensor, axis: IterDomain, sizeOf: SizeOf, inputs: readonly Tensor[]): number {
  const size = evaluateScalar(axis.extent, sizeOf) ?? missingSize(tensor, axis, inputs);
  if (!Number.isSafeInteger(size) || size < 0) {
    fail("bad-extent", `axis ${printIterDomain(axis)} does not have a whole number of elements`, {
      place: placeOf(tensor),
      found: String(size),
      expected: "a whole number of at least 0",
      help: "give sizes for which the extent is such a number",
    });
  }
  return size;
}

/** `size` is the size of the axis, or of its part `id`, that has the type `type`. */
function requireMeshSize(tensor: Tensor, logical: IterDomain, id: IterDomainId, type: DIDType, size: number): void {
  const axis = printIterDomain(tensor.domain.loop.find((candidate) => candidate.id === id) ?? logical);
  const along = `along ${type}`;
  if (tensor.mesh?.hasAxis(type) !== true) {
    return fail("mesh-axis-missing", `axis ${axis} is sharded ${along}, which the tensor's mesh does not have`, {
      place: placeOf(tensor),
      found: tensor.mesh === null ? "no mesh" : tensor.mesh.toString(),
      expected: `a mesh with a dimension for ${type}`,
      help: "set a DeviceMesh with a dimension for each DID type",
    });
  }
  const devices = tensor.mesh.size(type);
  if (size === devices) return;
  fail("size-contradicts-mesh", `axis ${axis} and the mesh differ in size ${along}`, {
    place: placeOf(tensor),
    found: `size ${size}, ${devicesAlong(tensor.mesh, type)}`,
    expected: `size ${devices}`,
    help: "give the sharded axis the size of the mesh",
  });
}

function missingSize(tensor: Tensor, axis: IterDomain, inputs: readonly Tensor[]): never {
  const extent = printScalar(axis.extent);
  const holders = inputs.filter(({ domain }) => domain.logical.some((own) => printScalar(own.extent) === extent));
  return fail("size-missing", `${extent} has no size`, {
    place: placeOf(tensor),
    found: `axis ${printIterDomain(axis)} without a size`,
    expected: `a size for ${extent}`,
    help:
      holders.length === 0
        ? `give ${extent} a size, by the extent's printed name`
        : `give ${extent} a size: it is an extent of ${holders.map((each) => printTensor(each)).join(" and ")}`,
  });
}

function rejectMerged(tensor: Tensor, axis: IterDomain): never {
  return fail({
    code: "did-on-merged-axis",
    message: `${axis.parallelType} is on an axis made by merge: its shards are not rectangular`,
    place: placeOf(tensor),
    found: printIterDomain(axis),
    expected: `${axis.parallelType} on a logical axis, or on an axis that split made from one`,
    help: "reshape the tensor so that the merged axes are one logical axis, and split that axis",
  });
}

function rejectAllocation(tensor: Tensor, order: readonly IterDomain[]): never {
  return fail({
    code: "allocation-on-split-axis",
    message: "an allocation domain separates or reorders the parts of an axis that a device holds",
    place: placeOf(tensor),
    found: `[${order.map((axis) => printIterDomain(axis)).join(", ")}]`,
    expected: "the parts of an axis without a DID type, adjacent and in order",
    help: "reshape the tensor so that each part is a separate axis",
  });
}
