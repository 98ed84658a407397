/**
 * Size arithmetic that folds while it builds, as nvFuser's SimplifyingIrBuilder does for extents and allocation sizes.
 * Constants fold, and neutral and absorbing elements vanish. A constant operand of a commutative op moves to the right:
 * `8 * i0` becomes `( i0 * 8 )`. Index arithmetic does not fold, as in nvFuser.
 */
import { binary, constant, type Scalar, scalarOps, type ScalarOp } from "./scalar.ts";
import { unreachable } from "../../support/invariant.ts";

/** The value of a constant, otherwise null. */
export function constantValue(scalar: Scalar): number | null {
  return scalar.kind === "constant" ? scalar.value : null;
}

export function isConstant(scalar: Scalar, value: number): boolean {
  return scalar.kind === "constant" && scalar.value === value;
}

/** Whether two scalars are the same expression over the same leaves, regardless of printed names. */
export function sameScalar(a: Scalar, b: Scalar): boolean {
  if (a === b) return true;
  switch (a.kind) {
    case "constant":
      return b.kind === "constant" && a.value === b.value;
    case "symbol":
    case "named":
      return b.kind === a.kind && a.name === b.name;
    case "binary":
      return b.kind === "binary" && a.op === b.op && sameScalar(a.lhs, b.lhs) && sameScalar(a.rhs, b.rhs);
    default:
      return unreachable(a);
  }
}

/**
 * Whether two extents are known to differ. Symbolic extents are assumed equal and checked once their sizes are known.
 */
export function extentsDiffer(a: Scalar, b: Scalar): boolean {
  return a.kind === "constant" && b.kind === "constant" && a.value !== b.value;
}

/** The sum, with a constant on the right. */
export function foldAdd(lhs: Scalar, rhs: Scalar): Scalar {
  if (lhs.kind === "constant" && rhs.kind !== "constant") return foldAdd(rhs, lhs);
  return isConstant(rhs, 0) ? lhs : folded("add", lhs, rhs);
}

/** The difference, 0 for equal operands. */
export function foldSub(lhs: Scalar, rhs: Scalar): Scalar {
  if (sameScalar(lhs, rhs)) return constant(0);
  return isConstant(rhs, 0) ? lhs : folded("sub", lhs, rhs);
}

/** The product, with a constant on the right. */
export function foldMul(lhs: Scalar, rhs: Scalar): Scalar {
  if (lhs.kind === "constant" && rhs.kind !== "constant") return foldMul(rhs, lhs);
  if (isConstant(rhs, 0)) return constant(0);
  return isConstant(rhs, 1) ? lhs : folded("mul", lhs, rhs);
}

/** The quotient of sizes. `rhs` is never 0. */
export function foldDiv(lhs: Scalar, rhs: Scalar): Scalar {
  if (isConstant(rhs, 1)) return lhs;
  if (sameScalar(lhs, rhs)) return constant(1);
  return isConstant(lhs, 0) ? lhs : folded("div", lhs, rhs);
}

/** The quotient of sizes, rounded up. `rhs` is never 0. */
export function foldCeilDiv(lhs: Scalar, rhs: Scalar): Scalar {
  if (isConstant(rhs, 1)) return lhs;
  if (sameScalar(lhs, rhs)) return constant(1);
  return isConstant(lhs, 0) ? lhs : folded("ceilDiv", lhs, rhs);
}

/** The product, associated from the left: `( ( i0 * i2 ) * i3 )`. 1 if there are no factors. */
export function foldProduct(factors: readonly Scalar[]): Scalar {
  return factors.reduce(foldMul, constant(1));
}

function folded(op: ScalarOp, lhs: Scalar, rhs: Scalar): Scalar {
  if (lhs.kind !== "constant" || rhs.kind !== "constant") return binary(op, lhs, rhs);
  return constant(scalarOps[op].evaluate(lhs.value, rhs.value));
}
