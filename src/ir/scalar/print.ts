/**
 * Prints symbolic integers in nvFuser's two forms. Inline expands a definition to its leaves: `( streamIdx %
 * numberOfStreams )`, `( ceilDiv(i0, 3) )`. By name, a value with a name prints as `i84`.
 */
import { unreachable } from "../../support/unreachable.ts";
import { defaultSpelling, type IrSpelling } from "../print-style.ts";
import { type Scalar, scalarOps } from "./scalar.ts";

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
