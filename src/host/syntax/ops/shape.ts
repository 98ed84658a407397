/** Ops that stretch, join, pad and cut axes. */
import { withoutReductions, type Tensor } from "../../../ir/domain.ts";
import type { CatOp, ExpandOp, PadOp, SliceOp, BinaryOp, Op, TernaryOp } from "../../../ir/ops/op.ts";
import { constantValue, sameScalar } from "../../../ir/scalar/fold.ts";
import { printScalar, type Scalar } from "../../../ir/scalar/scalar.ts";
import { at, keysOf } from "../../../support/invariant.ts";
import {
  expect,
  expectNumber,
  failExpected,
  type DumpScanner,
  skipBlanks,
  skipSpace,
  take,
  expectAcrossLines,
} from "../text/scanner.ts";
import { failAt } from "../text/source.ts";
import { parseNamed } from "../values/names.ts";
import { atTensor } from "../values/tensor.ts";
import {
  ofOne,
  type OpContext,
  opened,
  readTensorOperand,
  type OpSyntax,
  printNumber,
  printOperand,
  readNumber,
  type OpReader,
} from "./op-syntax.ts";
import { binaryFunctions, type BinaryOpType } from "../../../ir/ops/functions/binary.ts";
import { ternaryFunctions, type TernaryOpType } from "../../../ir/ops/functions/ternary.ts";
import type { PrintContext } from "../context.ts";

/** `expand( T0, {4, i2} )`: the extents of the output, which nvFuser does not print. */
export const expandSyntax: OpSyntax<ExpandOp> = {
  print: (op, context) => {
    const { domain } = at(context.program.tensors, op.output);
    const extents = withoutReductions(domain.logical).map(({ extent }) => printScalar(extent, context.spelling));
    return `expand( ${printOperand(op, 0, context)}, {${extents.join(", ")}} )`;
  },
  readers: {
    expand: ofOne((context, _, output, start) => {
      const axes = withoutReductions(output.domain.logical);
      skipBlanks(context.scanner);
      const isListed = take(context.scanner, ",");
      const extents = isListed ? scalars(context, "an extent") : axes.map(({ extent }) => extent);
      expect(context.scanner, ")");
      if (axes.length === extents.length && extents.every((extent, i) => sameScalar(extent, at(axes, i).extent))) {
        return { kind: "Expand", extents };
      }
      return failAt(context.scanner.source, start, {
        code: "dump-contradiction",
        message: "an expand does not have the extents of its output",
        found: `{${extents.map((extent) => printScalar(extent)).join(", ")}}`,
        expected: `{${axes.map(({ extent }) => printScalar(extent)).join(", ")}}`,
        help: "correct the extents",
      });
    }),
  },
};

/** `{ {0, 8, 1} {2, 6, 1} }`: start, stop and step of every axis. */
export const sliceSyntax: OpSyntax<SliceOp> = {
  print: (op, context) => {
    const text = (bound: Scalar): string => printScalar(bound, context.spelling);
    const ranges = op.ranges.map(({ start, stop, step = 1 }) => `{${text(start)}, ${text(stop)}, ${step}}`).join(" ");
    return `slice( ${printOperand(op, 0, context)}, { ${ranges} } )`;
  },
  readers: {
    slice: ofOne((context) => {
      const { scanner, names } = context;
      const bound = (): Scalar => {
        skipBlanks(scanner);
        return parseNamed(scanner, names, "a bound of a slice");
      };
      expect(scanner, ",");
      expect(scanner, "{");
      const ranges: SliceOp["ranges"][number][] = [];
      while (take(scanner, "{")) {
        const start = bound();
        expect(scanner, ",");
        const stop = bound();
        expect(scanner, ",");
        const { position } = scanner;
        const step = constantValue(bound());
        if (step === null || step < 1) failStep(scanner, position);
        expect(scanner, "}");
        ranges.push({ start, stop, ...(step > 1 ? { step } : {}) });
        take(scanner, ",");
        skipBlanks(scanner);
      }
      expect(scanner, "}");
      expect(scanner, ")");
      return { kind: "Slice", ranges };
    }),
  },
};

function failStep(scanner: DumpScanner, position: number): never {
  failAt(scanner.source, position, "dump-unsupported", "a slice has a step that is not a number of at least 1", {
    expected: "a whole number of at least 1",
    help: "write the step as a number; a slice does not run backwards",
  });
}

/** `cat( T0, T1, 1 )`: the operands and the axis. */
export const catSyntax: OpSyntax<CatOp> = {
  print: (op, context) => `cat( ${op.inputs.map((_, i) => printOperand(op, i, context)).join(", ")}, ${op.axis} )`,
  readers: {
    cat: (context, output) => {
      const { scanner } = context;
      const inputs = [opened(context).id];
      expect(scanner, ",");
      skipSpace(scanner);
      while (atTensor(scanner)) {
        inputs.push(readTensorOperand(context).id);
        expect(scanner, ",");
        skipSpace(scanner);
      }
      const axis = expectNumber(scanner, "the number of an axis");
      expect(scanner, ")");
      return { kind: "Cat", axis, inputs, output: output.id };
    },
  },
};

/** `pad( T0, {0, 0, 1, 2} )`: the widths before and after each axis; then the value unless it is 0, as nvFuser's is. */
export const padSyntax: OpSyntax<PadOp> = {
  print: (op, context) => {
    const widths = op.widths.flatMap(({ before, after }) => [before, after]).join(", ");
    const { dtype } = at(context.program.tensors, op.output);
    const value = op.value === "0" ? "" : `, ${printNumber({ position: 1, text: op.value }, dtype)}`;
    return `pad( ${printOperand(op, 0, context)}, {${widths}}${value} )`;
  },
  readers: {
    pad: ofOne((context) => {
      const { scanner } = context;
      expect(scanner, ",");
      const { position } = scanner;
      const widths = wholeNumbers(scanner);
      if (widths.length % 2 !== 0) failWidths(scanner, position);
      skipBlanks(scanner);
      const filled = take(scanner, ",") ? (skipBlanks(scanner), readNumber(scanner)) : "0";
      if (filled === null) failExpected(scanner, "a number");
      expect(scanner, ")");
      const pairs = Array.from({ length: widths.length / 2 }, (_, i) => ({
        before: at(widths, 2 * i),
        after: at(widths, 2 * i + 1),
      }));
      return { kind: "Pad", widths: pairs, value: filled };
    }),
  },
};

/** `{0, -1}` */
function wholeNumbers(scanner: DumpScanner): readonly number[] {
  const values: number[] = [];
  expect(scanner, "{");
  while (!take(scanner, "}")) {
    if (values.length > 0) expect(scanner, ",");
    skipBlanks(scanner);
    const { position } = scanner;
    const value = Number(readNumber(scanner) ?? NaN);
    values.push(Number.isSafeInteger(value) ? value : failWidths(scanner, position));
    skipBlanks(scanner);
  }
  return values;
}

function failWidths(scanner: DumpScanner, position: number): never {
  failAt(scanner.source, position, "dump-unsupported", "the widths of a pad are not two numbers for every axis", {
    expected: "whole numbers",
    help: "write the widths as numbers",
  });
}

/** `{4, i2}` */
function scalars({ scanner, names }: OpContext, what: string): readonly Scalar[] {
  const values: Scalar[] = [];
  expect(scanner, "{");
  skipBlanks(scanner);
  if (take(scanner, "}")) return values;
  do {
    skipBlanks(scanner);
    values.push(parseNamed(scanner, names, what));
    skipBlanks(scanner);
  } while (take(scanner, ","));
  expect(scanner, "}");
  return values;
}

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

/** Ops of two and three operands, of which one may be a number. */
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
