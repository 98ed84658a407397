/**
 * Products that a model computes in float of 16-bit operands, and then rounds to their dtype: a matmul of 16-bit floats,
 * which sums in float, too, and rounds once.
 *
 *   y = cast(matmul(a, b, { dtype: float }), bfloat16)      becomes      y = matmul(a, b)
 *
 * Ops that only move elements may stand between. The product must have no other reader. On several devices its sums over
 * devices stay in float, as the model has them.
 */
import { type FusionBuilder, snapshotFusion } from "../../ir/api/fusion-builder.ts";
import { matmul } from "../../ir/api/ops.ts";
import { applyAll, callOf } from "../../ir/api/ops/apply.ts";
import { TensorView } from "../../ir/api/tensor-view.ts";
import type { TensorId } from "../../ir/domain.ts";
import { withoutDeadOps } from "../../ir/fusion-data.ts";
import { call } from "../../ir/ops/call.ts";
import type { Op } from "../../ir/ops/op.ts";
import { rowOf } from "../../ir/ops/rows.ts";
import { type DType, dtypes } from "../../numerics/dtype.ts";
import { at, pushTo } from "../../support/invariant.ts";
import { type MadeFor, replaceOps } from "./replace-ops.ts";

const views: ReadonlySet<Op["kind"]> = new Set(["Set", "Permute", "Reshape", "Broadcast", "Squeeze", "Expand"]);

export function narrowProducts(builder: FusionBuilder, madeFor: MadeFor): void {
  const { ops } = withoutDeadOps(snapshotFusion(builder));
  const { tensors, outputs } = builder;
  const makerOf = new Map(ops.map((op) => [op.output, op] as const));
  const readers = new Map<TensorId, Op[]>();
  for (const op of ops) for (const id of op.inputs) pushTo(readers, id, op);
  const isReadOnce = (id: TensorId): boolean =>
    readers.get(id)?.length === 1 && !outputs.includes(id) && at(tensors, id).mesh === null;
  const names = new Map<TensorId, TensorId>();
  const viewOf = (id: TensorId): TensorView => new TensorView({ builder, id: names.get(id) ?? id });
  const again = (op: Op, operands: readonly TensorView[]): TensorView => {
    const own = op.inputs.map((id) => at(tensors, id));
    const spec = rowOf(op).respec(op, own, at(tensors, op.output), call(op.kind));
    return at(applyAll(spec, operands, callOf(op.kind, operands)), 0);
  };
  /** The product that a tensor has its elements from, in the dtype. */
  const product = (id: TensorId, dtype: DType): (() => TensorView) | null => {
    const op = makerOf.get(id);
    if (op === undefined || !isReadOnce(id)) return null;
    if (op.kind === "Matmul") {
      const [a, b] = op.inputs;
      const isOf = a !== undefined && b !== undefined && at(tensors, a).dtype === dtype;
      return isOf ? () => matmul(viewOf(a), viewOf(b)) : null;
    }
    const before = views.has(op.kind) ? product(at(op.inputs, 0), dtype) : null;
    return before && (() => again(op, [before()]));
  };
  const makers = new Map(
    ops.flatMap((op): readonly (readonly [Op, () => TensorView])[] => {
      if (op.kind !== "Cast" || dtypes[op.to].family !== "float" || dtypes[op.to].bytes !== 2) return [];
      const [input] = op.inputs;
      const make = input !== undefined && at(tensors, input).dtype === "float" ? product(input, op.to) : null;
      return make === null ? [] : [[op, make]];
    }),
  );
  replaceOps(builder, ops, makers, names, madeFor);
}
