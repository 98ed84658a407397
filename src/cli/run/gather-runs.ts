/** The runs of ranks in processes of their own as one: whole outputs, the slowest rank's times, the events of all. Only rank 0 gets them. */
import { packShard, unshardInto, holders } from "../../executor/shard.ts";
import type { Signature } from "../../compile/lower-all.ts";
import { isSharded } from "../../executor/tensor-arguments.ts";
import { shapeOf, type Sizes } from "../../ir/sizes.ts";
import type { World } from "../../launch/join-world.ts";
import { emptyTensor, type Tensor, tensorBytes } from "../../numerics/tensor/host-tensor.ts";
import { at } from "../../support/invariant.ts";
import type { Runs } from "./runs.ts";
import { gatherBytes, gatherReports } from "./world-results.ts";

/** All ranks call it together. */
export async function gatherRuns(
  world: World,
  { tensors, outputs }: Signature,
  sizes: Sizes,
  own: Runs,
): Promise<Runs | null> {
  const reports = await gatherReports(
    world,
    own.runs.map(({ report }) => report),
  );
  const whole: Tensor[] = [];
  for (const [position, id] of outputs.entries()) {
    const tensor = at(tensors, id);
    const argument = at(own.outputs, position);
    const shard = isSharded(argument) ? (argument[world.rank] ?? null) : argument;
    const shape = shapeOf(tensor, sizes);
    const parts = await gatherBytes(world, shard === null ? new Uint8Array() : packShard(tensor, shape, shard));
    if (world.rank !== 0) continue;
    const result = emptyTensor(tensor.dtype, shape);
    for (const rank of holders(tensor)) unshardInto(tensor, shape, at(parts, rank), rank, tensorBytes(result));
    whole.push(result);
  }
  if (world.rank !== 0) return null;
  return { outputs: whole, runs: own.runs.map(({ program }, i) => ({ program, report: at(reports, i) })) };
}
