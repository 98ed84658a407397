/**
 * The elementwise functions of two operands, one row each. All back ends round their results correctly, but for pow and
 * atan2. A new function is a row here and an exported function in api/ops, as for functions of one operand (unary.ts).
 */
import {
  apply,
  call,
  choose,
  type Comparison,
  constant,
  type Expression,
} from "../../../numerics/scalar/expression.ts";
import type { OperandClass } from "../dtype-rules.ts";

export interface BinaryFunction {
  /** The accepted dtypes. Both operands have one dtype; the API casts them. */
  readonly operand: OperandClass;
  /** The result's dtype: that of the operands, or bool. */
  readonly result: "same" | "bool";
  /** The result for operands of one compute type, before rounding to half or bfloat16. A bool is the i32 0 or 1. */
  readonly expression: (x: Expression, y: Expression) => Expression;
  /** In dumps, the operator between the operands, or the name before them. */
  readonly printed: { readonly sign: string } | { readonly name: string; readonly alsoRead: readonly string[] };
}

const number = { operand: "number", result: "same" } as const;
const integer = { operand: "integer", result: "same" } as const;
const any = { operand: "any", result: "same" } as const;

function comparison(name: Comparison, sign: string): BinaryFunction {
  return {
    operand: "any",
    result: "bool",
    expression: (x, y) => choose([x, name, y], constant("i32", 1), constant("i32", 0)),
    printed: { sign },
  };
}

/** One of C's library, of floats, whose float32 form ends in f. */
function ofLibrary(name: string, js = name): BinaryFunction {
  return {
    operand: "float",
    result: "same",
    expression: (x, y) => call({ js, c: name }, x, y),
    printed: { name, alsoRead: [`${name}f`] },
  };
}

const rows = {
  add: { ...number, expression: (x, y) => apply("add", x, y), printed: { sign: "+" } },
  sub: { ...number, expression: (x, y) => apply("sub", x, y), printed: { sign: "-" } },
  mul: { ...number, expression: (x, y) => apply("mul", x, y), printed: { sign: "*" } },
  /** Integers truncate toward zero, and x / 0 is 0. */
  div: {
    ...number,
    expression: (x, y) => {
      const quotient = apply("div", x, y);
      if (x.type === "f32" || x.type === "f64") return quotient;
      const zero = constant(x.type, 0);
      return choose([y, "eq", zero], zero, quotient);
    },
    printed: { sign: "/" },
  },
  /** As in C: 0^0 = 1, 1^NaN = 1, NaN^0 = 1; NaN for a negative base and a fractional exponent. */
  pow: ofLibrary("pow"),
  /** The angle of (y, x), of which x is the second operand: from -pi to pi. */
  atan2: ofLibrary("atan2", "Math.atan2"),
  /** x - y trunc(x / y), exactly: it has the sign of x. NaN for y = 0. */
  fmod: ofLibrary("fmod"),
  /** NaN if either operand is NaN, as in PyTorch; -0 is below 0. */
  maximum: {
    ...any,
    expression: (x, y) => apply("max", x, y),
    printed: { name: "fmax", alsoRead: ["max", "maximum"] },
  },
  /** As `maximum`. */
  minimum: {
    ...any,
    expression: (x, y) => apply("min", x, y),
    printed: { name: "fmin", alsoRead: ["min", "minimum"] },
  },
  // With NaN, all comparisons are false but ne.
  eq: comparison("eq", "=="),
  ne: comparison("ne", "!="),
  lt: comparison("lt", "<"),
  le: comparison("le", "<="),
  gt: comparison("gt", ">"),
  ge: comparison("ge", ">="),
  logicalAnd: { operand: "bool", result: "same", expression: (x, y) => apply("min", x, y), printed: { sign: "&&" } },
  logicalOr: { operand: "bool", result: "same", expression: (x, y) => apply("max", x, y), printed: { sign: "||" } },
  bitAnd: { ...integer, expression: (x, y) => apply("and", x, y), printed: { sign: "&" } },
  bitOr: { ...integer, expression: (x, y) => apply("or", x, y), printed: { sign: "|" } },
  bitXor: { ...integer, expression: (x, y) => apply("xor", x, y), printed: { sign: "^" } },
  /** By y modulo the number of bits. */
  shiftLeft: { ...integer, expression: (x, y) => apply("shl", x, y), printed: { sign: "<<" } },
  /** As `shiftLeft`; copies the sign. */
  shiftRight: { ...integer, expression: (x, y) => apply("shr", x, y), printed: { sign: ">>" } },
  /** x - y floor(x / y), which has the sign of y, as in PyTorch. 0 for y = 0. */
  remainder: {
    ...integer,
    expression: (x, y) => {
      const zero = constant(x.type, 0);
      const rest = apply("rem", x, choose([y, "eq", zero], constant(x.type, 1), y));
      const moved = choose([rest, "eq", zero], rest, apply("add", rest, y));
      return choose([apply("xor", rest, y), "lt", zero], moved, rest);
    },
    printed: { name: "remainder", alsoRead: [] },
  },
} as const satisfies Readonly<Record<string, BinaryFunction>>;

export type BinaryOpType = keyof typeof rows;

export const binaryFunctions: { readonly [K in BinaryOpType]: BinaryFunction } = rows;
