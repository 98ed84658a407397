/**
 * A layout says how a tensor lies on devices: its mesh, the parts of each axis that have DID types, and the types along
 * which partial results are still to be added. Axes are numbered, so that the layouts of an op's operand and output
 * compare, and so that a layout can exist before a tensor has it.
 */
import { at } from "../support/invariant.ts";
import type { DeviceMesh } from "./device-mesh.ts";
import { type DIDType, isDID, type IterDomain, type Tensor, withoutReductions } from "./domain.ts";
import { type CutAxis, cutOf, overlay, wholeAxis, withTypes } from "./parts.ts";
import { didTypesOf, type Share, sameShare } from "./shards.ts";

/** How a DID type cuts axis number `axis` among `devices` devices. */
export interface LayoutShare extends Share {
  readonly axis: number;
  readonly devices: number;
}

export interface Layout {
  readonly mesh: DeviceMesh;
  readonly axes: readonly CutAxis[];
  /** The types of partial results. */
  readonly pending: readonly DIDType[];
  /** By type. They follow from the axes. */
  readonly shares: ReadonlyMap<DIDType, LayoutShare>;
}

export function layout(mesh: DeviceMesh, axes: readonly CutAxis[], pending: readonly DIDType[] = []): Layout {
  const shares = axes.flatMap((cut, axis) =>
    didTypesOf(cut).map((type): readonly [DIDType, LayoutShare] => [
      type,
      { type, cut, axis, devices: mesh.hasAxis(type) ? mesh.size(type) : 1 },
    ]),
  );
  return { mesh, axes, pending, shares: new Map(shares) };
}

/**
 * The layout of a tensor whose axis number i is `axes[i]`, by default the axes that exist at run time; a missing axis is
 * whole, like axis number i of `like`. Null for a tensor without a mesh.
 */
export function layoutOf(
  tensor: Tensor,
  axes: readonly (IterDomain | null)[] = withoutReductions(tensor.domain.logical),
  like: readonly IterDomain[] = withoutReductions(tensor.domain.logical),
): Layout | null {
  const { mesh, domain } = tensor;
  if (mesh === null) return null;
  return layout(
    mesh,
    axes.map((axis, i) => (axis === null ? wholeAxis(at(like, i).extent) : withTypes(cutOf(domain, axis), isDID))),
  );
}

/** The layout without the types that `keeps` does not accept. */
export function keepShares({ mesh, axes, pending, shares }: Layout, keeps: (share: LayoutShare) => boolean): Layout {
  return layout(
    mesh,
    axes.map((cut) =>
      withTypes(cut, (type) => {
        const share = isDID(type) ? shares.get(type) : undefined;
        return share !== undefined && keeps(share);
      }),
    ),
    pending,
  );
}

/** The layout with one share more; null if another one has its type, or crosses it. */
export function addShare({ mesh, axes, pending, shares }: Layout, share: LayoutShare): Layout | null {
  if (shares.has(share.type)) return null;
  const own = withTypes(share.cut, (type) => type === share.type);
  const cut = overlay(at(axes, share.axis), own);
  return cut === null ? null : layout(mesh, axes.with(share.axis, cut), pending);
}

/** Whether both give each device the same indices, or both are missing. */
export function sameShares(a: LayoutShare | undefined, b: LayoutShare | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  return a.axis === b.axis && a.devices === b.devices && sameShare(a, b);
}

/** Whether each device has all that it has in `b`, and perhaps more. */
export function coversShares(a: Layout, b: Layout): boolean {
  return [...a.shares].every(([type, share]) => sameShares(share, b.shares.get(type)));
}

/** Whether each device takes a view of what it has already, so that nothing moves. */
export function isView(from: Layout, to: Layout): boolean {
  return from.pending.length === 0 && from.mesh.equals(to.mesh) && coversShares(from, to);
}

export function sameLayout(a: Layout, b: Layout): boolean {
  return a.mesh.equals(b.mesh) && coversShares(a, b) && coversShares(b, a) && a.pending.join() === b.pending.join();
}
