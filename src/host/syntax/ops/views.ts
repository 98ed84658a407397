/** Ops that move, rename or omit elements without computing. */
import { type IterDomain, type Tensor, withoutReductions } from "../../../ir/domain.ts";
import type { BroadcastOp, Op, PermuteOp, ReshapeOp, SelectOp, SetOp, SqueezeOp } from "../../../ir/ops/op.ts";
import { printIterDomain } from "../../../ir/print-tensor.ts";
import { at } from "../../../support/invariant.ts";
import { axisPosition, parseAxis } from "../values/axis.ts";
import type { PrintContext } from "../context.ts";
import { parseNamed } from "../values/names.ts";
import { failAt } from "../text/source.ts";
import { expect, expectField, failExpected, readWord, type Scanner, skipBlanks, take } from "../text/scanner.ts";
import { permuteOrder } from "./implied-axes.ts";
import { ofOne, opened, type OpContext, type OpSyntax, printOperand } from "./op-syntax.ts";

export const setSyntax: OpSyntax<SetOp> = {
  print: (op, context) =>
    `Set( ${printOperand(op, 0, context)}, cache_op=Streaming${op.local === true ? ", local=true" : ""} )`,
  readers: {
    Set: ofOne(({ scanner }) => {
      expectCache(scanner);
      const isLocal = take(scanner, ",");
      if (isLocal) {
        expectField(scanner, "local");
        expect(scanner, "true");
      }
      expect(scanner, ")");
      return { kind: "Set", ...(isLocal ? { local: true } : {}) };
    }),
    SegmenterSet: ofOne((context) => {
      skipBlanks(context.scanner);
      if (context.scanner.text[context.scanner.position] === ",") closeSet(context.scanner);
      else expect(context.scanner, ")");
      return { kind: "Set" };
    }),
  },
};

function closeSet(scanner: Scanner): void {
  expectCache(scanner);
  expect(scanner, ")");
}

/** `, cache_op=Streaming`: nvFuser's cache hint of a copy, which does not affect its meaning. */
function expectCache(scanner: Scanner): void {
  expect(scanner, ",");
  expectField(scanner, "cache_op");
  if (readWord(scanner) === "") failExpected(scanner, "a cache operation");
}

export const permuteSyntax: OpSyntax<PermuteOp> = {
  print: (op, context) => `Set.Permute( ${printOperand(op, 0, context)}, cache_op=Streaming )`,
  readers: {
    "Set.Permute": ofOne((context, input, output, start) => {
      closeSet(context.scanner);
      const root = context.tensors.notes.get(output.id)?.root ?? null;
      const order = permuteOrder(context.scanner, start, input, output, root);
      return { kind: "Permute", order };
    }),
  },
};

export const reshapeSyntax: OpSyntax<ReshapeOp> = {
  print: (op, context) => `view( ${printOperand(op, 0, context)} )`,
  readers: { view: reshape, reshape },
};

function reshape(context: OpContext, output: Tensor): Op {
  const input = opened(context);
  expect(context.scanner, ")");
  return { kind: "Reshape", inputs: [input.id], output: output.id };
}

export const broadcastSyntax: OpSyntax<BroadcastOp> = {
  print: (op, context) => `broadcast( ${printOperand(op, 0, context)}, flags = {${op.flags.join(", ")}} )`,
  readers: {
    broadcast: ofOne((context) => ({ kind: "Broadcast", flags: flags(context) })),
  },
};

export const squeezeSyntax: OpSyntax<SqueezeOp> = {
  print: (op, context) => {
    const squeezed = axesOf(op, context).map((_, i) => op.axes.includes(i));
    return `squeeze( ${printOperand(op, 0, context)}, flags = {${squeezed.join(", ")}} )`;
  },
  readers: {
    squeeze: ofOne((context, input, _, start) => {
      const squeezed = flags(context);
      const rank = withoutReductions(input.domain.logical).length;
      if (squeezed.length !== rank) {
        failAt(context.scanner.source, start, {
          code: "dump-contradiction",
          message: "a squeeze does not have one flag per axis of its operand",
          found: `number of flags ${squeezed.length}, number of axes ${rank}`,
          expected: "one flag per axis",
          help: "correct the flags",
        });
      }
      return {
        kind: "Squeeze",
        axes: squeezed.flatMap((flag, i) => (flag ? [i] : [])),
      };
    }),
  },
};

function flags({ scanner }: OpContext): readonly boolean[] {
  expect(scanner, ",");
  expectField(scanner, "flags");
  expect(scanner, "{");
  const values: boolean[] = [];
  if (!take(scanner, "}")) {
    do {
      skipBlanks(scanner);
      const value = take(scanner, "true");
      if (!value && !take(scanner, "false")) failExpected(scanner, "true or false");
      values.push(value);
      skipBlanks(scanner);
    } while (take(scanner, ","));
    expect(scanner, "}");
  }
  expect(scanner, ")");
  return values;
}

export const selectSyntax: OpSyntax<SelectOp> = {
  print: (op, context) => {
    const axis = printIterDomain(at(axesOf(op, context), op.axis), context.spelling);
    const index = context.indexText(op.index);
    return `select( ${printOperand(op, 0, context)}, axis = ${axis}, index = ${index} )`;
  },
  readers: {
    select: ofOne((context, input) => {
      const { scanner, names } = context;
      expect(scanner, ",");
      expectField(scanner, "axis");
      const axisStart = scanner.position;
      const axis = axisPosition(
        scanner,
        axisStart,
        input,
        parseAxis(scanner).id,
        withoutReductions(input.domain.logical),
      );
      expect(scanner, ",");
      expectField(scanner, "index");
      const index = parseNamed(scanner, names, "a slice index");
      expect(scanner, ")");
      return { kind: "Select", axis, index };
    }),
  },
};

/** The axes of the first operand. */
function axesOf({ inputs }: Op, { program }: PrintContext): readonly IterDomain[] {
  return withoutReductions(at(program.tensors, at(inputs, 0)).domain.logical);
}
