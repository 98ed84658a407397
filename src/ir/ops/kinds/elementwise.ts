/** The rows of elementwise ops: functions of one, two and three operands, and casts. */
import type { DType } from "../../../numerics/dtype.ts";
import { at } from "../../../support/invariant.ts";
import { type AxisShape, isUnitAxis, type Tensor, withoutReductions } from "../../domain.ts";
import { extentsDiffer } from "../../scalar/fold.ts";
import { type Call, reject, shapeText } from "../call.ts";
import { functionDType } from "../dtype-rules.ts";
import { binaryFunctions, type BinaryOpType } from "../functions/binary.ts";
import type { TernaryOpType } from "../functions/ternary.ts";
import { unaryFunctions, type UnaryOpType } from "../functions/unary.ts";
import { type NumberOperand, requireNumberFits } from "../number-operand.ts";
import { elementWork, type OpBase, type OpRow, type SpecOf } from "../row.ts";
import { elementwise } from "./families.ts";
import { elementCount } from "../../../numerics/tensor/host-tensor.ts";

export interface UnaryOp extends OpBase {
  readonly kind: "Unary";
  readonly op: UnaryOpType;
}

export const unaryRow: OpRow<UnaryOp> = {
  ...elementwise,
  operands: [1, 1],
  standalone: false,
  dtype: ({ op }, operands, place) => functionDType(op, unaryFunctions[op].operand, operands, place),
  shape: (_, operands) => ({ axes: withoutReductions(at(operands, 0).domain.logical) }),
  respec: (op) => op,
  work: ({ op }, { output }) => unaryFunctions[op].work * elementCount(output),
};

// Converts elements to the output's dtype.

export interface CastOp extends OpBase {
  readonly kind: "Cast";
  /** Equals the output's dtype. */
  readonly to: DType;
}

export const castRow: OpRow<CastOp> = {
  ...elementwise,
  operands: [1, 1],
  standalone: false,
  dtype: ({ to }) => to,
  shape: (_, operands) => ({ axes: withoutReductions(at(operands, 0).domain.logical) }),
  respec: (op) => op,
  flops: () => 0,
};

// An elementwise function of a bool tensor and two values (a row of functions/ternary.ts), which have equal rank. One
// value may be a number. Axes join as those of a binary op.

export interface TernaryOp extends OpBase {
  readonly kind: "Ternary";
  readonly op: TernaryOpType;
  /** The value that is a number. The op then has two inputs. */
  readonly scalar?: NumberOperand<1 | 2>;
}

export const ternaryRow: OpRow<TernaryOp> = {
  ...elementwise,
  operands: [2, 3],
  standalone: false,
  dtype: (spec, operands, place) => {
    requireThree(spec, operands, place);
    functionDType(spec.op, "bool", operands.slice(0, 1), place);
    const dtype = functionDType(spec.op, "any", operands.slice(1), place);
    if (spec.scalar !== undefined) requireNumberFits(spec.scalar, dtype, place);
    return dtype;
  },
  shape: (_, operands, place) => ({ axes: joinedAxes(operands, place) }),
  respec: (op) => op,
};

function requireThree({ op, scalar }: SpecOf<TernaryOp>, operands: readonly Tensor[], place: Call): void {
  if (operands.length === (scalar === undefined ? 3 : 2)) return;
  reject(place, "bad-argument", `${op} takes a condition and two values, of which one may be a number`, {
    found: operands.map(({ id }) => `T${id}`).join(", "),
    expected: "three operands",
    help: "give the op three operands",
  });
}

// An elementwise function of two operands of equal rank (a row of functions/binary.ts). One operand may be a number.
// Two axes are compatible if their extents are equal, or if one is a broadcast or has the constant extent 1. The result
// has the other's extent then.

export interface BinaryOp extends OpBase {
  readonly kind: "Binary";
  readonly op: BinaryOpType;
  /** The operand that is a number. The op then has one input. */
  readonly scalar?: NumberOperand;
}

export const binaryRow: OpRow<BinaryOp> = {
  ...elementwise,
  operands: [1, 2],
  standalone: true,
  dtype: (spec, operands, place) => {
    requireTwo(spec, operands, place);
    const { operand, result } = binaryFunctions[spec.op];
    const dtype = functionDType(spec.op, operand, operands, place);
    if (spec.scalar !== undefined) requireNumberFits(spec.scalar, dtype, place);
    return result === "bool" ? "bool" : dtype;
  },
  shape: ({ scalar }, operands, place) => ({
    axes:
      scalar === undefined
        ? binaryAxes(at(operands, 0), at(operands, 1), place)
        : withoutReductions(at(operands, 0).domain.logical),
  }),
  respec: (op) => op,
  work: ({ op }, { output }) => (op === "pow" ? powWork : elementWork) * elementCount(output),
};

const powWork = 700;

function requireTwo({ op, scalar }: SpecOf<BinaryOp>, { length }: readonly Tensor[], place: Call): void {
  if (length === (scalar === undefined ? 2 : 1)) return;
  reject(place, "bad-argument", `${op} takes two operands, of which one may be a number`, {
    found: `${length} tensor${length === 1 ? "" : "s"} and ${scalar === undefined ? "no" : "a"} number`,
    expected: "two tensors, or a tensor and a number",
    help: "give the op two operands",
  });
}

/** The axes of the result. Throws `shape-mismatch`. */
export function binaryAxes(a: Tensor, b: Tensor, place: Call): readonly AxisShape[] {
  return joinedAxes([a, b], place);
}

/** The axes of an elementwise result of operands of equal rank. Throws `shape-mismatch`. */
export function joinedAxes(operands: readonly Tensor[], place: Call): readonly AxisShape[] {
  return operands
    .slice(1)
    .reduce(
      (axes: readonly AxisShape[], operand, i) => joinWith(axes, at(operands, i), operand, place),
      withoutReductions(at(operands, 0).domain.logical),
    );
}

/** `axes` are those of the operands so far, of which `a` is the last. */
function joinWith(left: readonly AxisShape[], a: Tensor, b: Tensor, place: Call): readonly AxisShape[] {
  const right = withoutReductions(b.domain.logical);
  if (left.length !== right.length) {
    reject(place, "shape-mismatch", "the operands have different numbers of axes", {
      found: `${shapeText(a)} and ${shapeText(b)}`,
      expected: "operands with the same number of axes",
      help: "add the missing axes with broadcast()",
    });
  }
  return left.map((axis, i) => {
    const other = at(right, i);
    return joinAxes(axis, other) ?? rejectJoin(a, b, i, place);
  });
}

/**
 * The result's axis for two operand axes, or null if their extents are known to differ. A constant extent takes
 * precedence over a symbol.
 */
export function joinAxes(a: AxisShape, b: AxisShape): AxisShape | null {
  const iterType = a.iterType === "broadcast" && b.iterType === "broadcast" ? "broadcast" : "iteration";
  if (isUnitAxis(a) && isUnitAxis(b)) return { extent: a.extent, iterType };
  if (isUnitAxis(a)) return { extent: b.extent, iterType };
  if (isUnitAxis(b)) return { extent: a.extent, iterType };
  if (extentsDiffer(a.extent, b.extent)) return null;
  return { extent: b.extent.kind === "constant" ? b.extent : a.extent, iterType };
}

export function rejectJoin(a: Tensor, b: Tensor, axis: number, place: Call): never {
  return reject(place, "shape-mismatch", `the operands have different extents along axis ${axis} of the result`, {
    found: `${shapeText(a)} and ${shapeText(b)}`,
    expected: "equal extents, or a broadcast axis or extent 1 in one of them",
    help: "reshape, slice or broadcast one of the operands",
  });
}
