/** Ops of two and three operands, of which one may be a number. */
import type { Tensor } from "../../../ir/domain.ts";
import { binaryFunctions, type BinaryOpType } from "../../../ir/ops/functions/binary.ts";
import { ternaryFunctions, type TernaryOpType } from "../../../ir/ops/functions/ternary.ts";
import type { BinaryOp, Op, TernaryOp } from "../../../ir/ops/op.ts";
import { at } from "../../../support/invariant.ts";
import { keysOf } from "../../../support/is-one-of.ts";
import type { PrintContext } from "../context.ts";
import { expect, expectAcrossLines, skipSpace, take } from "../text/scanner.ts";
import { failAt } from "../text/source.ts";
import {
  type OpContext,
  opened,
  readTensorOperand,
  type OpReader,
  type OpSyntax,
  printNumber,
  printOperand,
  readNumber,
} from "./op-syntax.ts";

/**
 * `<lhs>` and, on the next line, `+ <rhs>;`. It has no name, so `readBinary` parses text that begins with a tensor.
 * Some functions have a name instead: `fmax(<lhs>` and, on the next line, `, <rhs>);`.
 */
export const binarySyntax: OpSyntax<BinaryOp> = {
  print: (op, context, indent) => {
    const { printed } = binaryFunctions[op.op];
    const [left, right] = [valueOperand(op, 0, context), valueOperand(op, 1, context)];
    if ("sign" in printed) return `${left}\n${indent}   ${printed.sign} ${right};`;
    return `${printed.name}(${left}\n${indent}  , ${right});`;
  },
  readers: Object.fromEntries(
    keysOf(binaryFunctions).flatMap((op) => {
      const { printed } = binaryFunctions[op];
      return "sign" in printed ? [] : [printed.name, ...printed.alsoRead].map((name) => [name, named(op)] as const);
    }),
  ),
};

/** The operand at `position` of an op of which one operand may be a number. */
function valueOperand(op: BinaryOp | TernaryOp, position: number, context: PrintContext): string {
  const { scalar } = op;
  // A comparison's number has the dtype of its other operand.
  const { dtype } = at(context.program.tensors, at(op.inputs, op.inputs.length - 1));
  if (scalar?.position === position) return printNumber(scalar, dtype);
  return printOperand(op, scalar === undefined || position < scalar.position ? position : position - 1, context);
}

function named(op: BinaryOpType): OpReader {
  return (context, output) => {
    const { scanner } = context;
    expect(scanner, "(");
    const lhs = tensorOrNumber(context);
    expectAcrossLines(scanner, ",");
    const rhs = typeof lhs === "string" ? readTensorOperand(context) : tensorOrNumber(context);
    expectAcrossLines(scanner, ")");
    take(scanner, ";");
    return binaryOp(op, lhs, rhs, output);
  };
}

/** `where(<condition>`, then on a line each `, <value>`, and `);`. One value may be a number. */
export const ternarySyntax: OpSyntax<TernaryOp> = {
  print: (op, context, indent) => {
    const operands = [0, 1, 2].map((position) => valueOperand(op, position, context));
    return `${op.op}(${operands.join(`\n${indent}  , `)});`;
  },
  readers: Object.fromEntries(keysOf(ternaryFunctions).map((op) => [op, ternary(op)] as const)),
};

function ternary(op: TernaryOpType): OpReader {
  return (context, output) => {
    const { scanner } = context;
    const condition = opened(context);
    expectAcrossLines(scanner, ",");
    const first = tensorOrNumber(context);
    expectAcrossLines(scanner, ",");
    const second = typeof first === "string" ? readTensorOperand(context) : tensorOrNumber(context);
    expectAcrossLines(scanner, ")");
    take(scanner, ";");
    const inputs = [condition.id, ...[first, second].flatMap((side) => (typeof side === "string" ? [] : [side.id]))];
    const made = { kind: "Ternary", op, inputs, output: output.id } as const;
    if (typeof first === "string") return { ...made, scalar: { position: 1, text: first } };
    return typeof second === "string" ? { ...made, scalar: { position: 2, text: second } } : made;
  };
}

/** Longer signs first: `<` begins `<=` and `<<`. */
const binarySigns = keysOf(binaryFunctions)
  .flatMap((op) => {
    const { printed } = binaryFunctions[op];
    return "sign" in printed ? [[printed.sign, op] as const] : [];
  })
  .toSorted(([a], [b]) => b.length - a.length);

export function readBinary(context: OpContext, output: Tensor): Op {
  const { scanner } = context;
  const lhs = tensorOrNumber(context);
  skipSpace(scanner);
  const { position } = scanner;
  const op = binarySigns.find(([sign]) => take(scanner, sign));
  if (op === undefined) {
    failAt(scanner.source, position, {
      code: "dump-unsupported",
      message: "two tensors are joined by an operator that Braid does not have",
      expected: binarySigns.map(([sign]) => sign).join(" "),
      help: "write the program with these operators",
    });
  }
  const rhs = typeof lhs === "string" ? readTensorOperand(context) : tensorOrNumber(context);
  expectAcrossLines(scanner, ";");
  return binaryOp(op[1], lhs, rhs, output);
}

function binaryOp(op: BinaryOpType, lhs: Tensor | string, rhs: Tensor | string, output: Tensor): BinaryOp {
  const inputs = [lhs, rhs].flatMap((side) => (typeof side === "string" ? [] : [side.id]));
  const binary = { kind: "Binary", op, inputs, output: output.id } as const;
  if (typeof lhs === "string") return { ...binary, scalar: { position: 0, text: lhs } };
  return typeof rhs === "string" ? { ...binary, scalar: { position: 1, text: rhs } } : binary;
}

function tensorOrNumber(context: OpContext): Tensor | string {
  skipSpace(context.scanner);
  return readNumber(context.scanner) ?? readTensorOperand(context);
}
