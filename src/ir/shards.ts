/**
 * How DID types shard the logical axes of a tensor. A type on a whole axis gives every device one index, a type on a
 * part of an axis a run of indices, or several (parts.ts). An axis made by merge has no single logical axis. A DID type
 * on it is rejected.
 */
import { at } from "../support/invariant.ts";
import { type DIDType, isDID, type IterDomain, type Tensor } from "./domain.ts";
import { type CutAxis, cutOf, logicalAxisOf, type Part, withTypes } from "./parts.ts";
import { constantValue, foldCeilDiv, foldProduct, isConstant, sameScalar } from "./scalar/fold.ts";
import { constant, type Scalar } from "./scalar/scalar.ts";

/** A DID type and the axis that it cuts, of the logical domain. */
export interface Shard {
  readonly type: DIDType;
  readonly axis: IterDomain;
  /** With its DID types alone. */
  readonly cut: CutAxis;
}

const none: readonly Shard[] = [];

/** The shards of the axes that exist at run time, by axis and then outermost first. */
export function shardsOf(tensor: Tensor): readonly Shard[] {
  return shardsWhere(tensor, false);
}

/**
 * DID types on reduced axes: each device holds, or held before a reduction over devices, the result of its own shard.
 */
export function reducedShards(tensor: Tensor): readonly Shard[] {
  return shardsWhere(tensor, true);
}

function shardsWhere({ domain }: Tensor, isReduced: boolean): readonly Shard[] {
  // Passes ask about each tensor many times. Most are not sharded, or along one axis.
  if (!domain.loop.some((axis) => isDID(axis.parallelType))) return none;
  const found: Shard[] = [];
  for (const axis of domain.logical) {
    if ((axis.iterType === "reduction") !== isReduced) continue;
    const whole = cutOf(domain, axis);
    if (!whole.parts.some(({ type }) => isDID(type))) continue;
    const cut = withTypes(whole, isDID);
    for (const { type } of cut.parts) if (isDID(type)) found.push({ type, axis, cut });
  }
  return found;
}

/** The DID types on the axis, outermost first. */
export function didTypesOf({ parts }: CutAxis): readonly DIDType[] {
  return parts.flatMap(({ type }) => (isDID(type) ? [type] : []));
}

/** The DID types of the outermost parts of an axis, up to the first part with another type. */
export function outermostTypes<E>({ parts }: CutAxis<E>): readonly DIDType[] {
  const types = parts.map(({ type }) => type);
  const end = types.findIndex((type) => !isDID(type));
  return (end < 0 ? types : types.slice(0, end)).filter(isDID);
}

/** How a DID type cuts an axis. */
export type Share = Pick<Shard, "type" | "cut">;

/** The part that has the type, and how many indices lie outside and inside of it. */
function around({ cut: { parts }, type }: Share): {
  readonly part: Part;
  readonly outer: Scalar;
  readonly inner: Scalar;
} {
  const position = parts.findIndex((part) => part.type === type);
  const count = (own: readonly Part[]): Scalar => foldProduct(own.map(({ extent }) => extent));
  return {
    part: at(parts, position),
    outer: count(parts.slice(0, position)),
    inner: count(parts.slice(position + 1)),
  };
}

/** Whether every device holds one index of the axis. Fewer indices than devices also make parts of one, some empty. */
export function isWhole(share: Share): boolean {
  const { part, outer, inner } = around(share);
  return isConstant(outer, 1) && isConstant(inner, 1) && sameScalar(part.extent, share.cut.extent);
}

/**
 * Whether each of `devices` holds one run of the axis, as long as those of a cut in that many parts, or one index. Of 6
 * indices in parts of 4 the runs are longer.
 */
export function isOneRun(share: Share, devices: number): boolean {
  const { part, outer } = around(share);
  const length = foldCeilDiv(share.cut.extent, constant(devices));
  return isWhole(share) || (isConstant(outer, 1) && sameScalar(part.stride, length));
}

/** Whether the type is on the outermost part, no other DID type is on the axis, and each device holds one run of it. */
export function keepsOneRun(share: Share, devices: number): boolean {
  return share.cut.parts[0]?.type === share.type && didTypesOf(share.cut).length === 1 && isOneRun(share, devices);
}

/** The DID type along which every device holds one index of the axis; null if there is none. */
export function typeOfWhole(tensor: Tensor, { id }: Pick<IterDomain, "id">): DIDType | null {
  return shardsOf(tensor).find((shard) => shard.axis.id === id && isWhole(shard))?.type ?? null;
}

/**
 * Whether two cuts give each device the same indices. The axes have equal numbers of devices. Of axes of one known extent
 * the parts are compared. Symbolic extents, and the outermost axes of a reshape, are taken as even: equal factors outside
 * then imply equal factors inside.
 */
export function sameShare(a: Share, b: Share): boolean {
  if (constantValue(a.cut.extent) !== null && sameScalar(a.cut.extent, b.cut.extent)) {
    const [own, others] = [ownParts(a), ownParts(b)];
    return (
      own.length === others.length &&
      own.every(({ extent, stride, type }, i) => {
        const other = at(others, i);
        const isSame = sameScalar(extent, other.extent) && sameScalar(stride, other.stride);
        return isSame && (type === a.type) === (other.type === b.type);
      })
    );
  }
  const [x, y] = [around(a), around(b)];
  if (sameScalar(x.outer, y.outer)) return true;
  return sameScalar(x.inner, y.inner) && (constantValue(x.outer) === null || constantValue(y.outer) === null);
}

/** The parts of the axis with the one type alone, without those of one index. */
function ownParts({ cut, type }: Share): readonly Part[] {
  const { parts } = withTypes(cut, (each) => each === type);
  return parts.filter((part) => part.type === type || !isConstant(part.extent, 1));
}

/** The first axis with a DID type that is not part of a logical axis, or null. */
export function mergedShard({ domain }: Tensor): IterDomain | null {
  const sharded = domain.loop.filter((axis) => isDID(axis.parallelType));
  // Without a merge, all axes are parts of logical ones.
  if (sharded.length === 0 || !domain.transforms.some(({ kind }) => kind === "merge")) return null;
  return sharded.find((axis) => logicalAxisOf(domain, axis) === null) ?? null;
}
