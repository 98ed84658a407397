/**
 * The route of a resharding that no single collective makes: the one with the fewest bytes for the busiest device. It
 * goes through layouts whose shares occur at one of the two ends.
 *
 *   [DIDy a, DIDx b] -> [a, b]             DIDy first, while shares are small, then DIDx
 *   [DIDx a, b] -> [a, DIDy b]             DIDy first, so that smaller shares are gathered
 *   [DIDx a] on (0 1) -> [DIDx a] on (2 3 4), cut differently    an AllToAllV
 *
 * The last step may be an AllToAllV, which moves what devices lack, where collectives move more. With nvFuser's limits
 * there is none.
 *
 * Many routes have equal bytes. Of these it is the one with the fewest along the outer dimensions of the mesh: devices
 * that differ along DIDx are the nearest to each other, those along DIDy may be on other hosts.
 *
 * Between meshes, a route may go through one device: a common one, or the first receiver. The search is Dijkstra's
 * algorithm over some dozens of layouts at most, as a DID type has only a few shares.
 */
import { DeviceMesh } from "../../ir/device-mesh.ts";
import { type DIDType, didTypes } from "../../ir/domain.ts";
import { addShare, isView, keepShares, layout, type Layout, type LayoutShare } from "../../ir/layout.ts";
import { type Part, wholeAxis } from "../../ir/parts.ts";
import { at, invariant } from "../../support/invariant.ts";
import { receivedFraction } from "./steps/bytes.ts";
import { exchangedFraction } from "./steps/exchange.ts";
import { collectiveStep, isPermutation } from "./steps/step.ts";

/** What a route may use: nvFuser's collectives, with views of what a device has already, and an AllToAllV at its end. */
export type AllowedSteps = "nvfuser" | "collectives" | "all";

interface Visit {
  readonly at: Layout;
  cost: number;
  before: Visit | null;
  done: boolean;
}

/** Of two routes with equal bytes, the one with fewer bytes along outer dimensions is cheaper, then that of fewer steps. */
const outerCost: ReadonlyMap<DIDType, number> = new Map(didTypes.map((type, i) => [type, 1 + i * 1e-4]));
const stepCost = 1e-6;
/** Collectives in several steps go before an AllToAllV that moves as much: sends to many peers are slower. */
function exchangeCost(from: Layout, to: Layout): number {
  return isPermutation(from, to) ? stepCost : 1e-3;
}

/** The layouts after `from` up to `to`. The first step adds what is pending. */
export function reshardingRoute(from: Layout, to: Layout, allowed: AllowedSteps): readonly Layout[] {
  const route =
    cheapestRoute(from, to, layoutsBetween(from, to, allowed), allowed) ??
    cheapestRoute(from, to, [...partsOfLayout(from), ...partsOfLayout(to)], allowed);
  invariant(route !== null, "every layout can be reached over one that cuts nothing", { from, to });
  return route;
}

/** The layout with some of its types. Those of one part each, of one index, cross where they are put on one by one. */
function partsOfLayout(of: Layout): readonly Layout[] {
  return [...of.shares.keys()].reduce<readonly Layout[]>(
    (found, type) => found.flatMap((each) => [each, keepShares(each, (share) => share.type !== type)]),
    [layout(of.mesh, of.axes)],
  );
}

/** Null if no steps lead to the end. */
function cheapestRoute(
  from: Layout,
  to: Layout,
  stops: readonly Layout[],
  allowed: AllowedSteps,
): readonly Layout[] | null {
  const visit = (at: Layout, cost = Infinity): Visit => ({ at, cost, before: null, done: false });
  const end = visit(to);
  const visits = [visit(from, 0), ...stops.map((each) => visit(each)), end];
  for (;;) {
    const next = visits.reduce<Visit | null>(
      (nearest, each) => (!each.done && each.cost < (nearest?.cost ?? Infinity) ? each : nearest),
      null,
    );
    if (next === null) return null;
    if (next === end) break;
    next.done = true;
    for (const other of visits) {
      if (other.done) continue;
      const mayExchange = other === end && next.at.pending.length === 0 && allowed === "all";
      const cost =
        next.cost +
        Math.min(
          collectiveCost(next.at, other.at, allowed),
          mayExchange ? exchangeCost(next.at, to) + exchangedFraction(next.at, to) : Infinity,
        );
      if (cost < other.cost) Object.assign(other, { cost, before: next });
    }
  }
  const route: Layout[] = [];
  for (let each: Visit = end; each.before !== null; each = each.before) route.unshift(each.at);
  return route;
}

/** Infinity if no collective makes the step. */
function collectiveCost(from: Layout, to: Layout, allowed: AllowedSteps): number {
  const step = collectiveStep(from, to);
  if (step === null) return Infinity;
  const isLocal = allowed !== "nvfuser" && isView(from, to);
  const far = step.type === null ? 1 : (outerCost.get(step.type) ?? 1);
  return stepCost + (isLocal ? 0 : far * receivedFraction(step, from, to));
}

function layoutsBetween(from: Layout, to: Layout, allowed: AllowedSteps): readonly Layout[] {
  const plain = from.axes.map(({ extent }) => wholeAxis(extent));
  const shares = [...from.shares.values(), ...to.shares.values()];
  const ownOf = (type: DIDType): readonly LayoutShare[] => shares.filter((share) => share.type === type);
  if (from.mesh.equals(to.mesh)) {
    return layoutsOn(layout(from.mesh, plain), (type) => {
      // A sum over devices may be scattered along any axis that an end cuts in as many parts.
      const isSummed = allowed === "all" && from.pending.includes(type);
      return isSummed ? shares.filter(({ devices }) => devices === from.mesh.size(type)) : ownOf(type);
    });
  }
  const common = to.mesh.devices.find((device) => from.mesh.has(device)) ?? at(to.mesh.devices, 0);
  // The shares of another type multiply: with five types they would give a hundred thousand layouts.
  const fitting = (mesh: DeviceMesh) => (type: DIDType) =>
    (mesh.shape.length > 3 ? ownOf(type) : shares).filter(({ devices }) => devices === mesh.size(type));
  return [
    ...layoutsOn(layout(from.mesh, plain), fitting(from.mesh)),
    ...layoutsOn(layout(to.mesh, plain), fitting(to.mesh)),
    layout(new DeviceMesh([common]), plain),
  ];
}

/** All layouts in which each type has one of its shares, or none. */
function layoutsOn(plain: Layout, sharesOf: (type: DIDType) => readonly LayoutShare[]): readonly Layout[] {
  return didTypes
    .filter((type) => plain.mesh.hasAxis(type))
    .reduce<readonly Layout[]>(
      (found, type) =>
        found.flatMap((chosen) => [
          chosen,
          ...sharesOf(type).flatMap((share) => addShare(chosen, { ...share, ...retyped(share, type) }) ?? []),
        ]),
      [plain],
    );
}

/** The share with another type. */
function retyped({ cut, type }: LayoutShare, to: DIDType): Pick<LayoutShare, "type" | "cut"> {
  const parts = cut.parts.map((part): Part => ({ ...part, type: part.type === type ? to : "Serial" }));
  return { type: to, cut: { ...cut, parts } };
}
