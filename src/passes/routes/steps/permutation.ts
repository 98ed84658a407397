/**
 * Layouts of the same parts on other devices: each device gets all that one device has, and each gives to one.
 *
 *   [DIDy a, DIDx b] -> [DIDx a, DIDy b]     device (y, x) gets the share of device (x, y)
 *   [DIDx a] on (0 1 2 3) -> on (1 2 3 0)    device d gets the share of device d - 1
 */
import { type DIDType, didTypes, isDID } from "../../../ir/domain.ts";
import type { Layout } from "../../../ir/layout.ts";
import { sameScalar } from "../../../ir/scalar/fold.ts";
import { at } from "../../../support/invariant.ts";

/** Between meshes, only if no two devices have the same share: of equal copies a device may have its own already. */
export function isPermutation(from: Layout, to: Layout): boolean {
  const isOneMesh = from.mesh.equals(to.mesh);
  const isWholeMesh = ({ mesh, shares }: Layout): boolean =>
    [...shares.values()].reduce((product, { devices }) => product * devices, 1) === mesh.devices.length;
  return (
    (isOneMesh || (isWholeMesh(from) && isWholeMesh(to) && to.mesh.devices.every((device) => from.mesh.has(device)))) &&
    from.axes.every(({ parts }, axis) => {
      const others = at(to.axes, axis).parts;
      return (
        parts.length === others.length &&
        parts.every((part, i) => {
          const other = at(others, i);
          const isSame = sameScalar(part.extent, other.extent) && sameScalar(part.stride, other.stride);
          return isSame && isDID(part.type) === isDID(other.type);
        })
      );
    })
  );
}

/**
 * The device of `from` whose share `device` of `to` gets. It has the same coordinates along dimensions that cut neither
 * layout; those that cut one of them alone number the copies on both sides.
 */
export function peerOf(from: Layout, to: Layout, device: number): number {
  const wanted = new Map<DIDType, number>();
  from.axes.forEach(({ parts }, axis) => {
    parts.forEach(({ type }, i) => {
      const other = at(at(to.axes, axis).parts, i).type;
      if (isDID(type) && isDID(other)) wanted.set(type, to.mesh.coordinate(device, other));
    });
  });
  const types = didTypes.filter((type) => from.mesh.hasAxis(type));
  let copy = 0;
  for (const type of types) {
    if (to.shares.has(type) || !to.mesh.hasAxis(type)) continue;
    const own = to.mesh.coordinate(device, type);
    if (from.shares.has(type)) copy = copy * to.mesh.size(type) + own;
    else wanted.set(type, own);
  }
  for (const type of types.toReversed()) {
    if (wanted.has(type)) continue;
    wanted.set(type, copy % from.mesh.size(type));
    copy = Math.floor(copy / from.mesh.size(type));
  }
  return types.reduce(
    (found, type) => at(from.mesh.slice(found, type), wanted.get(type) ?? 0),
    at(from.mesh.devices, 0),
  );
}
