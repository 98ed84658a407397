/**
 * Size arithmetic that folds as it builds: what nvFuser's SimplifyingIrBuilder does for extents and allocation
 * sizes. Constants fold, neutral and absorbing elements vanish, and a constant operand of a commutative op moves
 * to the right (`8 * i0` becomes `( i0 * 8 )`). Index arithmetic does not come here: nvFuser leaves it unfolded.
 */
import { binary, constant, type Scalar, scalarOps, type ScalarOp } from "./scalar.ts";
import { unreachable } from "../../support/unreachable.ts";

/** The value of a constant; null for everything else. */
export function constantValue(scalar: Scalar): number | null {
  return scalar.kind === "constant" ? scalar.value : null;
}

/** Whether a scalar is the constant `value`. */
export function isConstant(scalar: Scalar, value: number): boolean {
  return scalar.kind === "constant" && scalar.value === value;
}

/** Whether two scalars are the same expression over the same leaves. Printed names of values do not count. */
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

/** Whether two extents are known to differ. Symbolic ones are taken as equal; their sizes are checked when known. */
export function extentsDiffer(a: Scalar, b: Scalar): boolean {
  return a.kind === "constant" && b.kind === "constant" && a.value !== b.value;
}

/** The sum; a constant goes to the right. */
export function foldAdd(lhs: Scalar, rhs: Scalar): Scalar {
  if (lhs.kind === "constant" && rhs.kind !== "constant") return foldAdd(rhs, lhs);
  return isConstant(rhs, 0) ? lhs : folded("add", lhs, rhs);
}

/** The difference; 0 for equal operands. */
export function foldSub(lhs: Scalar, rhs: Scalar): Scalar {
  if (sameScalar(lhs, rhs)) return constant(0);
  return isConstant(rhs, 0) ? lhs : folded("sub", lhs, rhs);
}

/** The product; a constant goes to the right. */
export function foldMul(lhs: Scalar, rhs: Scalar): Scalar {
  if (lhs.kind === "constant" && rhs.kind !== "constant") return foldMul(rhs, lhs);
  if (isConstant(rhs, 0)) return constant(0);
  return isConstant(rhs, 1) ? lhs : folded("mul", lhs, rhs);
}

/** Division of sizes: `rhs` is never 0. */
export function foldDiv(lhs: Scalar, rhs: Scalar): Scalar {
  if (isConstant(rhs, 1)) return lhs;
  if (sameScalar(lhs, rhs)) return constant(1);
  return isConstant(lhs, 0) ? lhs : folded("div", lhs, rhs);
}

/** Division of sizes, rounded up: `rhs` is never 0. */
export function foldCeilDiv(lhs: Scalar, rhs: Scalar): Scalar {
  if (isConstant(rhs, 1)) return lhs;
  if (sameScalar(lhs, rhs)) return constant(1);
  return isConstant(lhs, 0) ? lhs : folded("ceilDiv", lhs, rhs);
}

/** Remainder of sizes: `rhs` is never 0. */
export function foldMod(lhs: Scalar, rhs: Scalar): Scalar {
  if (isConstant(rhs, 1) || sameScalar(lhs, rhs)) return constant(0);
  return isConstant(lhs, 0) ? lhs : folded("mod", lhs, rhs);
}

/** The product from the left, `1` for none: `( ( i0 * i2 ) * i3 )`. */
export function foldProduct(factors: readonly Scalar[]): Scalar {
  return factors.reduce(foldMul, constant(1));
}

function folded(op: ScalarOp, lhs: Scalar, rhs: Scalar): Scalar {
  if (lhs.kind !== "constant" || rhs.kind !== "constant") return binary(op, lhs, rhs);
  return constant(scalarOps[op].evaluate(lhs.value, rhs.value));
}
