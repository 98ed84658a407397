/**
 * Index arithmetic for hand-written host programs. As in nvFuser nothing is folded, and every result takes a name
 * (`i84`). Slice indices and peers print by name; elsewhere the expression prints in full.
 */
import { binary, named, type Scalar, type ScalarOp } from "../../ir/scalar/scalar.ts";
import type { ScalarLike } from "./options.ts";
import { type BuilderState, nextName, toScalar } from "./state.ts";

type Combine = (lhs: ScalarLike, rhs: ScalarLike) => Scalar;

/** `div` truncates toward zero and `mod` takes the sign of the dividend, as in C; comparisons give 0 or 1. */
export interface ScalarArithmetic extends Readonly<Record<ScalarOp, Combine>> {
  /** The device that runs the program. */
  readonly rank: Scalar;
  /** The number of streams that the run asks for. */
  readonly numberOfStreams: Scalar;
  /** A value that the run binds by this name: a loop's index, or one of `record`'s `scalars`. */
  readonly named: (name: string) => Scalar;
}

export function createScalarArithmetic(state: BuilderState): ScalarArithmetic {
  const combine =
    (op: ScalarOp): Combine =>
    (lhs, rhs) =>
      binary(op, toScalar(lhs), toScalar(rhs), nextName(state));
  return {
    rank: named("rank"),
    numberOfStreams: named("numberOfStreams"),
    named,
    add: combine("add"),
    sub: combine("sub"),
    mul: combine("mul"),
    div: combine("div"),
    mod: combine("mod"),
    ceilDiv: combine("ceilDiv"),
    min: combine("min"),
    eq: combine("eq"),
    ne: combine("ne"),
    lt: combine("lt"),
    le: combine("le"),
    gt: combine("gt"),
    ge: combine("ge"),
    and: combine("and"),
    or: combine("or"),
  };
}
