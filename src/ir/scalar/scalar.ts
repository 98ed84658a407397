import { unreachable } from "../../support/invariant.ts";

/**
 * Symbolic integers: extents, sizes, stream and slice indices, predicates. They are immutable trees over named leaves.
 * A `symbol` is a value of one program (`i0`: an extent, or a scalar input). A `named` leaf is bound by the run under a
 * fixed name (`streamIdx`, `rank`, `numberOfStreams`, `deviceIdx.x`).
 *
 * `binary` never folds, as nvFuser does not fold index arithmetic. The `fold*` functions of fold.ts fold as nvFuser's
 * simplifying builder does for sizes.
 */
export type ScalarOp =
  "add" | "sub" | "mul" | "div" | "mod" | "ceilDiv" | "min" | "eq" | "ne" | "lt" | "le" | "gt" | "ge" | "and" | "or";

export type Scalar =
  | { readonly kind: "constant"; readonly value: number }
  | { readonly kind: "symbol"; readonly name: string }
  | { readonly kind: "named"; readonly name: string }
  | {
      readonly kind: "binary";
      readonly op: ScalarOp;
      readonly lhs: Scalar;
      readonly rhs: Scalar;
      /** The printed name, such as `i84`, where a dump uses names. Absent if the value always prints inline. */
      readonly name?: string;
    };

export const constant = (value: number): Scalar => ({ kind: "constant", value });
export const symbol = (name: string): Scalar => ({ kind: "symbol", name });
export const named = (name: string): Scalar => ({ kind: "named", name });
export const binary = (op: ScalarOp, lhs: Scalar, rhs: Scalar, name?: string): Scalar =>
  name === undefined ? { kind: "binary", op, lhs, rhs } : { kind: "binary", op, lhs, rhs, name };

/** The names of a scalar's symbols and named leaves. */
export function leavesOf(scalar: Scalar): Set<string> {
  switch (scalar.kind) {
    case "constant":
      return new Set();
    case "symbol":
    case "named":
      return new Set([scalar.name]);
    case "binary":
      return new Set([...leavesOf(scalar.lhs), ...leavesOf(scalar.rhs)]);
  }
}

/** The value of a scalar. `lookup` returns `undefined` for an unknown leaf. */
export function evaluateScalar(scalar: Scalar, lookup: (name: string) => number | undefined): number | undefined {
  switch (scalar.kind) {
    case "constant":
      return scalar.value;
    case "symbol":
    case "named":
      return lookup(scalar.name);
    case "binary": {
      const lhs = evaluateScalar(scalar.lhs, lookup);
      const rhs = evaluateScalar(scalar.rhs, lookup);
      return lhs === undefined || rhs === undefined ? undefined : scalarOps[scalar.op].evaluate(lhs, rhs);
    }
  }
}

export interface ScalarOpFacts {
  /** The operator between the operands, or the function's name in `text(lhs, rhs)` if `call` is set. */
  readonly text: string;
  readonly call?: true;
  readonly evaluate: (lhs: number, rhs: number) => number;
}

/** Integer semantics as in C: division truncates toward zero, and modulo has the sign of the dividend. */
export const scalarOps: { readonly [K in ScalarOp]: ScalarOpFacts } = {
  add: { text: "+", evaluate: (a, b) => a + b },
  sub: { text: "-", evaluate: (a, b) => a - b },
  mul: { text: "*", evaluate: (a, b) => a * b },
  div: { text: "/", evaluate: (a, b) => Math.trunc(a / b) },
  mod: { text: "%", evaluate: (a, b) => a % b },
  ceilDiv: { text: "ceilDiv", call: true, evaluate: (a, b) => Math.ceil(a / b) },
  min: { text: "min", call: true, evaluate: Math.min },
  eq: { text: "==", evaluate: (a, b) => Number(a === b) },
  ne: { text: "!=", evaluate: (a, b) => Number(a !== b) },
  lt: { text: "<", evaluate: (a, b) => Number(a < b) },
  le: { text: "<=", evaluate: (a, b) => Number(a <= b) },
  gt: { text: ">", evaluate: (a, b) => Number(a > b) },
  ge: { text: ">=", evaluate: (a, b) => Number(a >= b) },
  and: { text: "&&", evaluate: (a, b) => Number(a !== 0 && b !== 0) },
  or: { text: "||", evaluate: (a, b) => Number(a !== 0 || b !== 0) },
};

// Prints symbolic integers in nvFuser's two forms. Inline expands a definition to its leaves: `( streamIdx %
// numberOfStreams )`, `( ceilDiv(i0, 3) )`. By name, a value with a name prints as `i84`.

/** The inline form: stream indices, sizes, extents, predicates, loop bounds. */
export function printScalar(scalar: Scalar, spelling: IrSpelling = defaultSpelling): string {
  switch (scalar.kind) {
    case "constant":
      return String(scalar.value);
    case "symbol":
      return scalar.name;
    case "named":
      return spelling.namedScalars.get(scalar.name) ?? scalar.name;
    case "binary": {
      const { text, call } = scalarOps[scalar.op];
      const lhs = printScalar(scalar.lhs, spelling);
      const rhs = printScalar(scalar.rhs, spelling);
      return call === true ? `( ${text}(${lhs}, ${rhs}) )` : `( ${lhs} ${text} ${rhs} )`;
    }
    default:
      return unreachable(scalar);
  }
}

/** The form by name: slice indices and peers. A value without a name prints inline. */
export function printScalarName(scalar: Scalar, spelling: IrSpelling = defaultSpelling): string {
  return scalar.kind === "binary" && scalar.name !== undefined ? scalar.name : printScalar(scalar, spelling);
}

/** An operation without parentheses, as a line of a dump's index definitions has it: `i82 % 8`, `ceilDiv(i0, 3)`. */
export function printOperation(
  { op, lhs, rhs }: Extract<Scalar, { kind: "binary" }>,
  print: (operand: Scalar) => string,
): string {
  const { text, call } = scalarOps[op];
  return call === true ? `${text}(${print(lhs)}, ${print(rhs)})` : `${print(lhs)} ${text} ${print(rhs)}`;
}

/**
 * How dumps from different dates spell scalars, axes and tensors. A style never changes the meaning. Its name is the
 * month of the nvFuser dumps that it reproduces.
 */
export const dumpStyles = ["2025-04", "2025-05", "2025-10", "2026-01"] as const;
export type DumpStyle = (typeof dumpStyles)[number];

export interface IrSpelling {
  /** How ParallelType Stream prints in an axis: `iStreamIdx2{i0}`. */
  readonly stream: string;
  /** Printed names of named scalars whose dump spelling differs from the IR's. */
  readonly namedScalars: ReadonlyMap<string, string>;
}

const spelling2025Spring: IrSpelling = {
  stream: "StreamIdx",
  namedScalars: new Map([
    ["streamIdx", "StreamIdx"],
    ["rank", "deviceIdx.x"],
  ]),
};

export const irSpellings: { readonly [K in DumpStyle]: IrSpelling } = {
  "2025-04": spelling2025Spring,
  "2025-05": spelling2025Spring,
  "2025-10": { stream: "streamIdx", namedScalars: new Map() },
  "2026-01": { stream: "streamIdx", namedScalars: new Map() },
};

export const defaultDumpStyle: DumpStyle = "2025-10";
export const defaultSpelling: IrSpelling = irSpellings[defaultDumpStyle];
