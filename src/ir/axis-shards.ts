/**
 * How DID types shard the logical axes of a tensor. A DID type on a whole axis gives every device one index. On a part
 * that `split` made it gives a run of indices; the device's local extent is the product of the parts without a DID
 * type:
 *
 *   [i{8} split outer 2]             parts DIDx 2, S 4          device d holds 4d .. 4d+3
 *   [i{8} split outer 2, inner 2]    parts S 2, DIDx 2, S 2     device d holds 2d, 2d+1, 4+2d, 4+2d+1
 *
 * Parts may be uneven: axis-runs.ts has the indices that a device holds. An axis made by merge has no single logical
 * axis. A DID type on it is rejected.
 */
import {
  type DIDType,
  isDID,
  type IterDomain,
  type IterDomainId,
  type ParallelType,
  type Tensor,
  type TensorDomain,
} from "./domain.ts";
import { constant, type Scalar } from "./scalar/scalar.ts";
import { constantValue, foldCeilDiv, foldProduct, isConstant, sameScalar } from "./scalar/fold.ts";

/** A part of a logical axis; an axis without splits is its own only part. `E` is a symbolic extent or a size. */
export interface AxisPart<E = Scalar> {
  readonly id: IterDomainId;
  readonly extent: E;
  readonly parallelType: ParallelType;
}

/**
 * The parts of a logical axis, outermost first. If the splits are even, the product of their extents is the axis's
 * extent.
 */
export function axisParts(domain: TensorDomain, axis: IterDomain): readonly AxisPart[] {
  return partsOf(domain, axis, axis.extent, constant, (extent, factor) => foldCeilDiv(extent, constant(factor)));
}

/** The logical axis that a loop axis is, or is a part of; null for an axis made by merge. */
export function logicalAxisOf(domain: TensorDomain, { id }: Pick<IterDomain, "id">): IterDomain | null {
  return domain.logical.find((axis) => axisParts(domain, axis).some((part) => part.id === id)) ?? null;
}

/** The parts of an axis of `size` elements. */
export function sizedParts(domain: TensorDomain, axis: IterDomain, size: number): readonly AxisPart<number>[] {
  return partsOf(
    domain,
    axis,
    size,
    (factor) => factor,
    (extent, factor) => Math.ceil(extent / factor),
  );
}

/** The DID types of the outermost parts of a logical axis, up to the first part with another type. */
export function outermostTypes(domain: TensorDomain, axis: IterDomain): readonly DIDType[] {
  const types = axisParts(domain, axis).map(({ parallelType }) => parallelType);
  const end = types.findIndex((type) => !isDID(type));
  return (end < 0 ? types : types.slice(0, end)).filter(isDID);
}

/** The parallel type of an axis that `split` made; Serial if it was split further. */
export function partTypeOf({ loop }: TensorDomain, id: IterDomainId): ParallelType {
  return loop.find((candidate) => candidate.id === id)?.parallelType ?? "Serial";
}

function partsOf<E>(
  domain: TensorDomain,
  { id, parallelType }: IterDomain,
  extent: E,
  factorOf: (factor: number) => E,
  ceilDiv: (extent: E, factor: number) => E,
): readonly AxisPart<E>[] {
  let parts: readonly AxisPart<E>[] = [{ id, extent, parallelType }];
  const part = (made: IterDomainId, size: E): AxisPart<E> => ({
    id: made,
    extent: size,
    parallelType: partTypeOf(domain, made),
  });
  for (const transform of domain.transforms) {
    if (transform.kind !== "split") continue;
    const position = parts.findIndex((candidate) => candidate.id === transform.input);
    const split = parts[position];
    if (split === undefined) continue;
    const factor = factorOf(transform.factor);
    const rest = ceilDiv(split.extent, transform.factor);
    const [outer, inner] = transform.innerSplit ? [rest, factor] : [factor, rest];
    parts = parts.toSpliced(position, 1, part(transform.outer, outer), part(transform.inner, inner));
  }
  return parts;
}

/** How one DID type cuts an axis: the axis has `outer` runs, and each run has `inner` indices per device. */
export interface AxisShard {
  readonly type: DIDType;
  /** An axis of the logical domain. */
  readonly axis: IterDomain;
  /** The part that carries the type. */
  readonly part: IterDomainId;
  readonly outer: Scalar;
  readonly inner: Scalar;
  /** Whether every device has exactly one index of the axis. */
  readonly isWhole: boolean;
}

const none: readonly AxisShard[] = [];
const one = constant(1);

/** The shards of the axes that exist at run time, by axis and then outermost first. */
export function axisShards(tensor: Tensor): readonly AxisShard[] {
  return shardsWhere(tensor, (axis) => axis.iterType !== "reduction");
}

/**
 * DID types on reduced axes: each device holds, or held before a reduction over devices, the result of its own shard.
 */
export function reducedShards(tensor: Tensor): readonly AxisShard[] {
  return shardsWhere(tensor, (axis) => axis.iterType === "reduction");
}

function shardsWhere({ domain }: Tensor, accepts: (axis: IterDomain) => boolean): readonly AxisShard[] {
  // Fast path: most tensors are not sharded, and passes ask about each tensor many times.
  if (!domain.loop.some((axis) => isDID(axis.parallelType))) return none;
  const found: AxisShard[] = [];
  for (const axis of domain.logical) {
    if (!accepts(axis)) continue;
    // Most axes have no parts, and a look at the splits costs less than a list of parts.
    if (!domain.transforms.some((transform) => transform.kind === "split" && transform.input === axis.id)) {
      const type = axis.parallelType;
      if (isDID(type)) found.push({ type, axis, part: axis.id, outer: one, inner: one, isWhole: true });
      continue;
    }
    const parts = axisParts(domain, axis);
    for (const [i, { id, extent, parallelType }] of parts.entries()) {
      if (!isDID(parallelType)) continue;
      const extents = parts.map((part) => part.extent);
      const outer = foldProduct(extents.slice(0, i));
      const inner = foldProduct(extents.slice(i + 1));
      // Fewer indices than devices also make parts of one index, but leave some empty.
      const isWhole = isConstant(outer, 1) && isConstant(inner, 1) && sameScalar(extent, axis.extent);
      found.push({ type: parallelType, axis, part: id, outer, inner, isWhole });
    }
  }
  return found;
}

/** Whether every device holds one index of the axis. */
export function isWholeAxis({ isWhole }: Pick<AxisShard, "isWhole">): boolean {
  return isWhole;
}

/**
 * Whether each of `devices` holds one run of the axis, as long as those of a cut in that many parts, or one index. Of 6
 * indices in parts of 4 the runs are longer.
 */
export function isOneRun(
  { isWhole, outer, inner }: Pick<AxisShard, "isWhole" | "outer" | "inner">,
  { extent }: Pick<IterDomain, "extent">,
  devices: number,
): boolean {
  return isWhole || (isConstant(outer, 1) && sameScalar(inner, foldCeilDiv(extent, constant(devices))));
}

/** The DID type along which every device holds one index of the axis; null if there is none. */
export function typeOfWhole(tensor: Tensor, { id }: Pick<IterDomain, "id">): DIDType | null {
  return axisShards(tensor).find((shard) => shard.axis.id === id && isWholeAxis(shard))?.type ?? null;
}

/**
 * Whether two cuts give each device the same indices. The axes have equal extents and equal numbers of devices, so
 * equal `outer` factors imply equal `inner` factors. The reverse holds only for even parts: 4 indices in 5 parts, and
 * in 3 parts of 5 parts each, both have one index in each part.
 */
export function sameCut(a: Pick<AxisShard, "outer" | "inner">, b: Pick<AxisShard, "outer" | "inner">): boolean {
  if (sameScalar(a.outer, b.outer)) return true;
  return sameScalar(a.inner, b.inner) && (constantValue(a.outer) === null || constantValue(b.outer) === null);
}

/** The first axis with a DID type that is not part of a logical axis, or null. */
export function mergedShard({ domain }: Tensor): IterDomain | null {
  const sharded = domain.loop.filter((axis) => isDID(axis.parallelType));
  // Without a merge, all axes are parts of logical ones.
  if (sharded.length === 0 || !domain.transforms.some(({ kind }) => kind === "merge")) return null;
  const parts = new Set(domain.logical.flatMap((axis) => axisParts(domain, axis).map(({ id }) => id)));
  return sharded.find(({ id }) => !parts.has(id)) ?? null;
}
