/** Ops that stretch, join, pad and cut axes. */
import { withoutReductions } from "../../../ir/domain.ts";
import type { CatOp, ExpandOp, PadOp, SliceOp } from "../../../ir/ops/op.ts";
import { constantValue, sameScalar } from "../../../ir/scalar/fold.ts";
import { printScalar, type Scalar } from "../../../ir/scalar/scalar.ts";
import { at } from "../../../support/invariant.ts";
import { expect, expectNumber, failExpected, type DumpScanner, skipBlanks, skipSpace, take } from "../text/scanner.ts";
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
} from "./op-syntax.ts";

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
