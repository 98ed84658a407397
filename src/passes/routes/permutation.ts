/**
 * Layouts of the same parts on other devices: each device gets all that one device has, and each gives to one.
 *
 *   [DIDy a, DIDx b] -> [DIDx a, DIDy b]     device (y, x) gets the share of device (x, y)
 *   [DIDx a] on (0 1 2 3) -> on (1 2 3 0)    device d gets the share of device d - 1
 */
import { isDID } from "../../ir/domain.ts";
import type { Layout } from "../../ir/layout.ts";
import { sameScalar } from "../../ir/scalar/fold.ts";
import { at } from "../../support/invariant.ts";

/** From which device each one gets its new share; null if some lack shares of several, or give to several. */
export function permutation(from: Layout, to: Layout): ReadonlyMap<number, number> | null {
  const isAlike = from.axes.every(({ parts }, axis) => {
    const others = at(to.axes, axis).parts;
    return (
      parts.length === others.length &&
      parts.every((part, i) => {
        const other = at(others, i);
        return sameScalar(part.stride, other.stride) && isDID(part.type) === isDID(other.type);
      })
    );
  });
  if (!isAlike || from.mesh.devices.length !== to.mesh.devices.length) return null;
  const shareOn = ({ mesh, axes }: Layout, device: number): string =>
    axes.flatMap(({ parts }) => parts.map(({ type }) => (isDID(type) ? mesh.coordinate(device, type) : null))).join();
  const free = new Map<string, number[]>();
  for (const device of from.mesh.devices) {
    const share = shareOn(from, device);
    free.set(share, [...(free.get(share) ?? []), device]);
  }
  const found = new Map<number, number>();
  const take = (device: number, own: boolean): boolean => {
    const holders = free.get(shareOn(to, device)) ?? [];
    const holder = holders.includes(device) ? device : own ? undefined : holders[0];
    if (holder === undefined || !from.mesh.has(device)) return false;
    holders.splice(holders.indexOf(holder), 1);
    found.set(device, holder);
    return true;
  };
  const others = to.mesh.devices.filter((device) => !take(device, true));
  return others.every((device) => take(device, false)) ? found : null;
}
