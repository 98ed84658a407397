/** The bytes that a communication brings to the device that receives most. */
import { collectives } from "../../host/collectives.ts";
import { allocationSize, type Tensor } from "../../ir/domain.ts";
import type { Op } from "../../ir/ops/op.ts";
import { evaluateScalar } from "../../ir/scalar/scalar.ts";
import { dtypes } from "../../numerics/dtype.ts";
import { at } from "../../support/invariant.ts";
import { exchangedFraction } from "./exchange.ts";
import type { OpLayouts } from "./layouts.ts";
import { receivedOnMesh, shareOf } from "./resharding-route.ts";
import type { ReshardingStep } from "./resharding-step.ts";
import { teamsOf } from "./step-teams.ts";

/** Null if a size is not known. */
export function receivedBytes(
  op: Op,
  { from, to }: OpLayouts,
  step: ReshardingStep,
  tensors: readonly Tensor[],
  sizeOf: (name: string) => number | undefined,
): number | null {
  const output = at(tensors, op.output);
  const elements = evaluateScalar(allocationSize(output), sizeOf);
  if (elements === undefined) return null;
  const whole = elements * dtypes[output.dtype].bytes;
  if (step.kind === "AllToAllV") return Math.ceil(whole * exchangedFraction(from, to));
  if (from.mesh.equals(to.mesh)) return Math.ceil(receivedOnMesh(whole, step, from, to));
  if (!collectives[step.kind].reduces) return Math.ceil(shareOf(whole, to));
  const teams = teamsOf(step, from.mesh, to.mesh, at(to.mesh.devices, 0)).map(({ team }) => team.length);
  return Math.ceil(whole * (Math.max(...teams, 1) - 1));
}
