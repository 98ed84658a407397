/**
 * The route of a resharding that no single collective makes: the one with the fewest bytes for the busiest device. It
 * goes through placements whose cuts occur at one of the two ends.
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
 * algorithm over some dozens of placements at most, as a DID type has only a few cuts.
 */
import { collectives } from "../../host/collectives.ts";
import { DeviceMesh } from "../../ir/device-mesh.ts";
import { type DIDType, didTypes } from "../../ir/domain.ts";
import { at, invariant } from "../../support/invariant.ts";
import { areCompatible, type Cut, type Placement } from "./placement.ts";
import { exchangedFraction, isEven } from "./exchange.ts";
import { collectiveStep, type ReshardingStep } from "./resharding-step.ts";
import { teamsOf } from "./step-teams.ts";

/** What a route may use: nvFuser's collectives, with views of what a device has already, and an AllToAllV at its end. */
export type AllowedSteps = "nvfuser" | "collectives" | "all";

interface Visit {
  readonly placement: Placement;
  cost: number;
  before: Visit | null;
  done: boolean;
}

/** Of two routes with equal bytes, the one with fewer bytes along outer dimensions is cheaper, then that of fewer steps. */
const outerCost: ReadonlyMap<DIDType, number> = new Map(didTypes.map((type, i) => [type, 1 + i * 1e-4]));
const stepCost = 1e-6;
/** Collectives in several steps go before an AllToAllV that moves as much: sends to many peers are slower. */
const exchangeCost = 1e-3;

/**
 * The placements after `from` up to `to`. `reduced` is the number of the axis that the first step reduces; null for a
 * Set.
 */
export function reshardingRoute(
  from: Placement,
  to: Placement,
  reduced: number | null,
  allowed: AllowedSteps,
): readonly Placement[] {
  const start: Visit = { placement: from, cost: 0, before: null, done: false };
  const end: Visit = { placement: to, cost: Infinity, before: null, done: false };
  const between = placementsBetween(from, to, reduced, allowed).map((placement): Visit => ({
    placement,
    cost: Infinity,
    before: null,
    done: false,
  }));
  const visits = [start, ...between, end];
  for (;;) {
    const next = visits.reduce<Visit | null>(
      (nearest, visit) => (!visit.done && visit.cost < (nearest?.cost ?? Infinity) ? visit : nearest),
      null,
    );
    invariant(next !== null, "every placement can be reached over one that cuts nothing", { reduced });
    if (next === end) break;
    next.done = true;
    for (const other of visits) {
      if (other.done) continue;
      const way: Way = { from: next.placement, to: other.placement, reduced: next === start ? reduced : null };
      const cost =
        next.cost +
        Math.min(
          collectiveCost(way, reduced, allowed),
          other === end && way.reduced === null && allowed === "all" ? exchangedCost(way) : Infinity,
        );
      if (cost < other.cost) Object.assign(other, { cost, before: next });
    }
  }
  const route: Placement[] = [];
  for (let visit: Visit = end; visit.before !== null; visit = visit.before) route.unshift(visit.placement);
  return route;
}

/** One step. */
interface Way {
  readonly from: Placement;
  readonly to: Placement;
  readonly reduced: number | null;
}

/** Infinity if no collective makes the step. `dropped` is the axis that the first step reduces. */
function collectiveCost({ from, to, reduced }: Way, dropped: number | null, allowed: AllowedSteps): number {
  const step = collectiveStep(from, to, reduced);
  if (step === null) return Infinity;
  const isLocal = allowed !== "nvfuser" && step.kind === "Scatter" && from.mesh.equals(to.mesh);
  const far = step.type === null ? 1 : (outerCost.get(step.type) ?? 1);
  return stepCost + (isLocal ? 0 : far * bytesOf(step, from, to, dropped));
}

function exchangedCost({ from, to }: Way): number {
  return exchangeCost + exchangedFraction(from, to);
}

/** What the busiest device receives, as a fraction of the tensor. */
function bytesOf(step: ReshardingStep, from: Placement, to: Placement, reduced: number | null): number {
  if (from.mesh.equals(to.mesh)) {
    const isUneven = reduced === null && ![from, to].every(isEven);
    return isUneven ? exchangedFraction(from, to) : receivedOnMesh(1, step, from, to, reduced);
  }
  const { reduces, betweenMeshes } = collectives[step.kind];
  if (betweenMeshes === "all") return 1;
  if (!reduces) return exchangedFraction(from, to);
  const teams = teamsOf(step, from.mesh, to.mesh, 0).map(({ team }) => team.length);
  return (Math.max(...teams) - 1) * shareOf(1, from, reduced);
}

/** What each device receives in a step on one mesh, of a tensor of `whole` bytes. */
export function receivedOnMesh(
  whole: number,
  { kind, type }: ReshardingStep,
  from: Placement,
  to: Placement,
  reduced: number | null,
): number {
  const { onOneMesh } = collectives[kind];
  invariant(type !== null && onOneMesh !== null, "a step on one mesh changes a DID type, by a collective", { kind });
  const devices = from.mesh.size(type);
  const times = onOneMesh.times === "team" ? devices : onOneMesh.times;
  const share = shareOf(whole, onOneMesh.share === "before" ? from : to, reduced);
  return (share * times * (devices - 1)) / devices;
}

/** What one device holds of a tensor of `whole` bytes. The reduced axis does not move. */
export function shareOf(whole: number, { cuts }: Placement, reduced: number | null): number {
  return [...cuts.values()].reduce((share, { axis, devices }) => (axis === reduced ? share : share / devices), whole);
}

function placementsBetween(
  from: Placement,
  to: Placement,
  reduced: number | null,
  allowed: AllowedSteps,
): readonly Placement[] {
  const cuts = [...from.cuts.values(), ...to.cuts.values()].filter(({ axis }) => axis !== reduced);
  const ownOf = (type: DIDType): readonly Cut[] =>
    [from.cuts.get(type), to.cuts.get(type)].flatMap((cut) => cut ?? []).filter(({ axis }) => axis !== reduced);
  if (from.mesh.equals(to.mesh)) {
    return placementsOn(from.mesh, (type) => {
      // A sum over devices may be scattered along any axis that an end cuts in as many parts.
      const isSummed = allowed === "all" && from.cuts.get(type)?.axis === reduced;
      return isSummed ? cuts.filter(({ devices }) => devices === from.mesh.size(type)) : ownOf(type);
    });
  }
  const common = to.mesh.devices.find((device) => from.mesh.has(device)) ?? at(to.mesh.devices, 0);
  // The cuts of another type multiply: with five types they would give a hundred thousand placements.
  const fitting = (mesh: DeviceMesh) => (type: DIDType) =>
    (mesh.shape.length > 3 ? ownOf(type) : cuts).filter(({ devices }) => devices === mesh.size(type));
  return [
    ...placementsOn(from.mesh, fitting(from.mesh)),
    ...placementsOn(to.mesh, fitting(to.mesh)),
    { mesh: new DeviceMesh([common]), cuts: new Map() },
  ];
}

/** All placements on a mesh in which each type has one of its cuts, or none. */
function placementsOn(mesh: DeviceMesh, cutsOf: (type: DIDType) => readonly Cut[]): readonly Placement[] {
  let found: readonly (readonly [DIDType, Cut][])[] = [[]];
  for (const type of didTypes) {
    if (!mesh.hasAxis(type)) continue;
    const cuts = cutsOf(type);
    found = found.flatMap((chosen) => [
      chosen,
      ...cuts
        .filter((cut) => chosen.every(([, other]) => areCompatible(other, cut)))
        .map((cut): readonly [DIDType, Cut][] => [...chosen, [type, cut]]),
    ]);
  }
  return found.map((chosen) => ({ mesh, cuts: new Map(chosen) }));
}
