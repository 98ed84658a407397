/**
 * All copies of an output: a tensor that is replicated lies on several devices, each of which has computed it, and a race may spoil one of them and leave the
 * others as they are.
 */
import { packShard, replicas, unshardInto } from "../../executor/shard.ts";
import { isSharded, type TensorArgument } from "../../executor/tensor-arguments.ts";
import type { Tensor as IrTensor } from "../../ir/domain.ts";
import { emptyTensor, type Tensor, tensorBytes } from "../../numerics/tensor/host-tensor.ts";
import { invariant } from "../../support/invariant.ts";

export interface OutputCopy {
  readonly tensor: Tensor;
  /** The devices that it was gathered from. */
  readonly ranks: readonly number[];
}

/** At least one; the one that was gathered already, if `output` is no list of shards. */
export function outputCopies(
  tensor: IrTensor,
  shape: readonly number[],
  output: TensorArgument,
): readonly OutputCopy[] {
  const sets = replicas(tensor);
  if (!isSharded(output)) return [{ tensor: output, ranks: sets[0] ?? [] }];
  return sets.map((ranks) => {
    const whole = emptyTensor(tensor.dtype, shape);
    for (const rank of ranks) {
      const shard = output[rank] ?? null;
      invariant(shard !== null, "every device of the mesh has a shard", { rank });
      unshardInto(tensor, shape, packShard(tensor, shape, shard), rank, tensorBytes(whole));
    }
    return { tensor: whole, ranks };
  });
}
