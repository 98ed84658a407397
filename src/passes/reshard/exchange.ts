/**
 * What devices lack when a tensor moves from one placement to another, and who gives it to them: the fewest bytes that
 * any way to get there moves. An AllToAllV moves just these.
 */
import { heldRuns, runsBetween } from "../../ir/axis-runs.ts";
import { axisParts } from "../../ir/axis-shards.ts";
import { elementsIn, givenTo, holdingsOf, type Region } from "../../ir/regions.ts";
import { constantValue } from "../../ir/scalar/fold.ts";
import { at } from "../../support/invariant.ts";
import type { Placement } from "./placement.ts";

/** Fractions of the tensor, of the device that receives and of the device that sends most. */
export interface Volume {
  readonly received: number;
  readonly sent: number;
}

/** What moves in the exchange among `team`. */
export function exchangeVolume(from: Placement, to: Placement, team: readonly number[]): Volume {
  const sizes = axisSizes([from, to]);
  const whole = [...sizes.values()].reduce((product, size) => product * size, 1);
  const sources = team.filter((device) => from.mesh.has(device));
  const readers = team.filter((device) => to.mesh.has(device));
  const holdings = holdingsOf(sources, (device) => regionOn(from, sizes, device));
  const sent = new Map<number, number>();
  let received = 0;
  for (const [position, reader] of readers.entries()) {
    const given = givenTo(reader, position, regionOn(to, sizes, reader), holdings);
    let own = 0;
    for (const [source, regions] of given) {
      if (source === reader) continue;
      const elements = regions.reduce((sum, region) => sum + elementsIn(region), 0);
      own += elements;
      sent.set(source, (sent.get(source) ?? 0) + elements);
    }
    received = Math.max(received, own);
  }
  return { received: received / whole, sent: Math.max(0, ...sent.values()) / whole };
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
