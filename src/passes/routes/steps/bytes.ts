/** What a step brings to the device that receives most. */
import { collectives } from "../../../host/collectives.ts";
import { allocationSize, type Tensor } from "../../../ir/domain.ts";
import type { Layout } from "../../../ir/layout.ts";
import { evaluateScalar } from "../../../ir/scalar/scalar.ts";
import { dtypes } from "../../../numerics/dtype.ts";
import { invariant } from "../../../support/invariant.ts";
import { exchangedFraction, hasEvenShares, largestShare } from "./exchange.ts";
import type { ReshardingStep } from "./step.ts";
import { teamsBetween } from "./teams.ts";

/** The bytes that a fraction of the tensor has; null if a size is not known. */
export function bytesOf(
  fraction: number,
  tensor: Tensor,
  sizeOf: (name: string) => number | undefined = () => undefined,
): number | null {
  const elements = evaluateScalar(allocationSize(tensor), sizeOf);
  // Of thirds, rounding leaves a little too much.
  return elements === undefined
    ? null
    : Math.max(0, Math.ceil(elements * dtypes[tensor.dtype].bytes * fraction - 1e-6));
}

/** As a fraction of the tensor. */
export function receivedFraction(step: ReshardingStep, from: Layout, to: Layout): number {
  const { kind, type } = step;
  if (kind === "AllToAllV" || kind === "CollectivePermute") return exchangedFraction(from, to);
  const { reduces, onOneMesh, betweenMeshes } = collectives[kind];
  if (from.mesh.equals(to.mesh)) {
    if (from.pending.length === 0 && ![from, to].every(hasEvenShares)) return exchangedFraction(from, to);
    invariant(type !== null && onOneMesh !== null, "a step on one mesh changes a DID type, by a collective", { kind });
    const devices = from.mesh.size(type);
    const times = onOneMesh.times === "team" ? devices : onOneMesh.times;
    return (largestShare(onOneMesh.share === "before" ? from : to) * times * (devices - 1)) / devices;
  }
  if (betweenMeshes === "all") return 1;
  if (!reduces) return exchangedFraction(from, to);
  const teams = teamsBetween(step, from.mesh, to.mesh).map(({ team }) => team.length);
  return (Math.max(...teams) - 1) * largestShare(from);
}
