/** A linear whose bias is added elsewhere, once: it keeps its two matrices and how it reads them. */
import type { LinearOp, MatmulOp } from "../../ir/ops/op.ts";

/** A matmul, or a linear without a bias, is as it was. */
export function withoutBias<T extends MatmulOp | LinearOp>(op: T): T {
  return {
    ...op,
    inputs: op.inputs.slice(0, 2),
    ...(op.orders === undefined ? {} : { orders: op.orders.slice(0, 2) }),
  };
}
