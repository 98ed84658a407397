/**
 * What devices lack when a tensor moves from one placement to another: the fewest bytes that any way to get there
 * moves. An AllToAllV moves just these.
 */
import { heldRuns, runsBetween } from "../../ir/axis-runs.ts";
import { axisParts } from "../../ir/axis-shards.ts";
import { commonRegion, elementsIn, type Region } from "../../ir/regions.ts";
import { constantValue } from "../../ir/scalar/fold.ts";
import { at } from "../../support/invariant.ts";
import type { Placement } from "./placement.ts";

/** What the device that lacks most receives, as a fraction of the tensor. */
export function exchangedFraction(from: Placement, to: Placement): number {
  const sizes = axisSizes([from, to]);
  const whole = [...sizes.values()].reduce((product, size) => product * size, 1);
  if (whole === 0) return 0;
  const lacks = to.mesh.devices.map((device) => {
    const wanted = regionOn(to, sizes, device);
    const known = from.mesh.has(device) ? elementsIn(commonRegion(wanted, regionOn(from, sizes, device))) : 0;
    return elementsIn(wanted) - known;
  });
  return Math.max(...lacks) / whole;
}

/** The sizes of the axes that are cut, by number: of those with a symbolic extent one that all cuts divide evenly. */
function axisSizes(placements: readonly Placement[]): ReadonlyMap<number, number> {
  const sizes = new Map<number, number>();
  const cuts = placements.flatMap((placement) => [...placement.cuts.values()]);
  for (const { axis, source } of cuts) {
    if (sizes.has(axis)) continue;
    const known = constantValue(source.axis.extent);
    const factors = cuts
      .filter((cut) => cut.axis === axis)
      .flatMap((cut) => axisParts(cut.source.domain, cut.source.axis).map(({ extent }) => constantValue(extent) ?? 1));
    sizes.set(axis, known ?? factors.reduce((product, factor) => product * factor, 1));
  }
  return sizes;
}

function regionOn({ mesh, cuts }: Placement, sizes: ReadonlyMap<number, number>, device: number): Region {
  return [...sizes].map(([axis, size]) => {
    const own = [...cuts].filter(([, cut]) => cut.axis === axis);
    const [first] = own;
    if (first === undefined) return runsBetween(0, size);
    const { source } = first[1];
    const parts = axisParts(source.domain, source.axis);
    const held = new Map(
      own.map(([type, cut]): readonly [number, number] => [
        at(parts, cut.source.part).id,
        mesh.coordinate(device, type),
      ]),
    );
    return heldRuns(source.domain, source.axis, size, ({ id }) => held.get(id) ?? null);
  });
}

/** Whether all parts of the axes that the placement cuts are equal, as far as extents are numbers. */
export function isEven({ cuts }: Placement): boolean {
  return [...cuts.values()].every(({ source: { domain, axis } }) => {
    const extent = constantValue(axis.extent);
    const parts = axisParts(domain, axis).map((part) => constantValue(part.extent));
    return extent === null || parts.reduce<number>((product, part) => product * (part ?? 1), 1) === extent;
  });
}
