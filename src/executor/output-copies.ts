/**
 * All copies of an output. A replicated output is computed on several devices. A race may spoil one copy and leave the
 * others intact.
 */
import type { Signature } from "../compile/lower-all.ts";
import { packShard, replicas, unshardInto } from "./shard.ts";
import { isSharded, type TensorArgument } from "./tensor-arguments.ts";
import type { Tensor as IrTensor } from "../ir/domain.ts";
import { shapeOf, type Sizes } from "../ir/sizes.ts";
import { emptyTensor, type Tensor, tensorBytes } from "../numerics/tensor/host-tensor.ts";
import { at, invariant } from "../support/invariant.ts";

export interface OutputCopy {
  readonly tensor: Tensor;
  /** The devices whose shards make up this copy. */
  readonly ranks: readonly number[];
}

/** At least one copy of each output: the gathered one, or all copies of shards. */
export function copiesOf(
  { tensors, outputs: ids }: Signature,
  sizes: Sizes,
  outputs: readonly TensorArgument[],
): readonly (readonly OutputCopy[])[] {
  return outputs.map((output, i) => {
    const tensor = at(tensors, at(ids, i));
    return copiesOfOutput(tensor, shapeOf(tensor, sizes), output);
  });
}

function copiesOfOutput(tensor: IrTensor, shape: readonly number[], output: TensorArgument): readonly OutputCopy[] {
  const sets = replicas(tensor);
  if (!isSharded(output)) return [{ tensor: output, ranks: sets[0] ?? [] }];
  return sets.map((ranks) => {
    const whole = emptyTensor(tensor.dtype, shape);
    for (const rank of ranks) {
      const shard = output[rank] ?? null;
      invariant(shard !== null, "every device of the mesh has a shard", { rank });
      unshardInto(tensor, shape, packShard(tensor, shape, shard, rank), rank, tensorBytes(whole));
    }
    return { tensor: whole, ranks };
  });
}
