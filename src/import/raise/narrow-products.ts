/**
 * Products that a model computes in float of 16-bit operands: matmuls of 16-bit floats, which sum in float, too.
 *
 *   matmul(cast(a, float), cast(b, float))                  becomes      matmul(a, b, { dtype: float })
 *   cast(matmul(a, b, { dtype: float }), bfloat16)          becomes      matmul(a, b)
 *
 * Ops that only move elements may stand between. The latter rounds once, as well, if the product has no other reader. On
 * several devices its sums over devices stay in float, as the model has them.
 */
import { type FusionBuilder, snapshotFusion } from "../../ir/api/fusion-builder.ts";
import { matmul } from "../../ir/api/ops.ts";
import { applyAll, callOf } from "../../ir/api/ops/apply.ts";
import { TensorView } from "../../ir/api/tensor-view.ts";
import type { TensorId } from "../../ir/domain.ts";
import { withoutDeadOps } from "../../ir/fusion-data.ts";
import { call } from "../../ir/ops/call.ts";
import type { MatmulOp, Op } from "../../ir/ops/op.ts";
import { rowOf } from "../../ir/ops/rows.ts";
import { type DType, isPacked } from "../../numerics/dtype.ts";
import { at } from "../../support/invariant.ts";
import { madeOpsOf } from "./match-softmax.ts";
import { type MadeFor, replaceOps } from "./replace-ops.ts";

type Operands = readonly [TensorView, TensorView];

const views: ReadonlySet<Op["kind"]> = new Set(["Set", "Permute", "Reshape", "Broadcast", "Squeeze", "Expand"]);

export function narrowProducts(builder: FusionBuilder, isOneDevice: boolean, madeFor: MadeFor): void {
  const fusion = withoutDeadOps(snapshotFusion(builder));
  const { ops, tensors } = fusion;
  const { makers: made, readersOf, isOwn } = madeOpsOf(fusion);
  const names = new Map<TensorId, TensorId>();
  const viewOf = (id: TensorId): TensorView => new TensorView({ builder, id: names.get(id) ?? id });
  const again = (op: Op, operands: readonly TensorView[]): TensorView => {
    const own = op.inputs.map((id) => at(tensors, id));
    const spec = rowOf(op).respec(op, own, at(tensors, op.output), call(op.kind));
    return at(applyAll(spec, operands, callOf(op.kind, operands)), 0);
  };
  /** What the operand is before it was widened, and its dtype; null if it was not. */
  const narrow = (id: TensorId): { readonly dtype: DType; readonly make: () => TensorView } | null => {
    const op = made.get(id);
    const [input] = op?.inputs ?? [];
    if (op === undefined || input === undefined || op.inputs.length > 1) return null;
    if (op.kind === "Cast") return { dtype: at(tensors, input).dtype, make: () => viewOf(input) };
    const before = views.has(op.kind) ? narrow(input) : null;
    return before && { dtype: before.dtype, make: () => again(op, [before.make()]) };
  };
  /** The operands of a product in float, in 16 bits, and their dtype. */
  const operandsOf = (op: MatmulOp): { readonly dtype: DType; readonly make: () => Operands } | null => {
    const [a, b] = op.inputs;
    if (a === undefined || b === undefined || at(tensors, op.output).dtype !== "float") return null;
    if (op.to !== undefined) return { dtype: at(tensors, a).dtype, make: () => [viewOf(a), viewOf(b)] };
    const [x, y] = [narrow(a), narrow(b)];
    if (x === null || y === null || x.dtype !== y.dtype || !isPacked(x.dtype)) return null;
    return { dtype: x.dtype, make: () => [x.make(), y.make()] };
  };
  /** The product that a tensor has its elements from, in the dtype. */
  const product = (id: TensorId, dtype: DType): (() => TensorView) | null => {
    const op = made.get(id);
    if (op === undefined || !isOwn(id) || readersOf(id).length !== 1) return null;
    if (op.kind === "Matmul") {
      const operands = operandsOf(op);
      return operands?.dtype === dtype ? () => matmul(...operands.make()) : null;
    }
    const before = views.has(op.kind) ? product(at(op.inputs, 0), dtype) : null;
    return before && (() => again(op, [before()]));
  };
  const makers = new Map(
    ops.flatMap((op): readonly (readonly [Op, () => TensorView])[] => {
      if (op.kind === "Matmul" && op.to === undefined) {
        const operands = operandsOf(op);
        return operands === null ? [] : [[op, () => matmul(...operands.make(), { dtype: "float" })]];
      }
      if (op.kind !== "Cast" || !isPacked(op.to) || !isOneDevice) return [];
      const [input] = op.inputs;
      const make = input !== undefined && at(tensors, input).dtype === "float" ? product(input, op.to) : null;
      return make === null ? [] : [[op, make]];
    }),
  );
  replaceOps(builder, ops, makers, names, madeFor);
}
