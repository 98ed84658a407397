/**
 * With the option `accumulate`, turns the sum of a batched matmul's results into a matmul, if the sum runs chunk by
 * chunk. The loop then adds each chunk's result to the output, and never stores the separate results.
 *
 *   T2[b, M, N] = matmul(T0, T1)
 *   T3[rStream b, M, N] = sum(T2, {b})
 * becomes
 *   T3[rStream b, M, N, rK] = matmul(T0, T1)
 *
 * Without the option, such a sum is rejected.
 */
import { shardsOf } from "../../ir/shards.ts";
import { type IterDomain, type TensorId, withoutReductions } from "../../ir/domain.ts";
import type { FusionData } from "../../ir/fusion-data.ts";
import type { MatmulOp, Op, ReductionOp } from "../../ir/ops/op.ts";
import { operandAxes } from "../../ir/ops/axis-map.ts";
import { at } from "../../support/invariant.ts";
import { copyAxes, editFusion, type FusionEdit } from "../edit/tensor-edit.ts";
import type { LoweringOptions } from "../options.ts";
import type { Pass } from "../pass.ts";
import { rejectReducedStream } from "../stream-loops/looped-axis.ts";
import { withoutDeadOps } from "./remove-dead-ops.ts";

/** Throws `stream-on-reduction-axis`. */
export const foldSums: Pass<"checked", "checked"> = {
  name: "fold-sums",
  from: "checked",
  to: "checked",
  run: (fusion, { options }) => {
    const producers = new Map(fusion.ops.map((op) => [op.output, op]));
    const edit = editFusion(fusion);
    let changed = false;
    for (const op of fusion.ops) {
      const folded = op.kind === "Reduction" ? foldSum(edit, op, producers, fusion, options) : op;
      changed ||= folded !== op;
      edit.ops.push(folded);
    }
    return changed ? withoutDeadOps({ ...fusion, ...edit }) : fusion;
  },
};

/** The matmul that computes the sum; the same op if it is not a sum over the chunks of a matmul. */
function foldSum(
  edit: FusionEdit,
  op: ReductionOp,
  producers: ReadonlyMap<TensorId, Op>,
  fusion: FusionData,
  { accumulate }: Pick<LoweringOptions, "accumulate">,
): ReductionOp | MatmulOp {
  const matmul = producers.get(at(op.inputs, 0));
  if (matmul?.kind !== "Matmul") return op;
  const contracted = at(fusion.tensors, matmul.output).domain.logical.at(-1);
  const chunked = chunkedAxis(op, matmul, fusion);
  if (contracted?.iterType !== "reduction" || chunked === null) return op;
  const output = at(edit.tensors, op.output);
  if (!accumulate) rejectReducedStream(op, output, chunked, true);
  const axes = copyAxes(edit, [contracted], () => "Serial");
  const { logical, loop } = output.domain;
  edit.tensors[output.id] = {
    ...output,
    domain: { ...output.domain, logical: [...logical, ...axes], loop: [...loop, ...axes] },
  };
  return { ...matmul, output: output.id };
}

/**
 * The reduced axis of a sum over one batch axis of a matmul. Null unless it has Stream, no devices share the batches,
 * and no other op reads the matmul's results.
 */
function chunkedAxis(op: ReductionOp, matmul: MatmulOp, { tensors, ops, outputs }: FusionData): IterDomain | null {
  const [axis, ...others] = op.axes;
  if (op.op !== "sum" || axis === undefined || others.length > 0) return null;
  const reduced = at(tensors, op.output).domain.logical[axis];
  if (reduced?.iterType !== "reduction" || reduced.parallelType !== "Stream") return null;
  const parts = at(tensors, matmul.output);
  const batch = withoutReductions(parts.domain.logical)[axis];
  const [a, b] = [operandAxes(matmul, 0, tensors), operandAxes(matmul, 1, tensors)];
  const isBatch = a.length > 1 && b.length > 1 && axis < Math.max(a.length, b.length) - 2;
  const isShared = shardsOf(parts).some((shard) => shard.axis.id === batch?.id);
  const readers = ops.filter(({ inputs }) => inputs.includes(matmul.output));
  const isAlone = readers.length === 1 && !outputs.includes(matmul.output);
  return isBatch && !isShared && isAlone ? reduced : null;
}
