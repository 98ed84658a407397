/** Ops that move, rename or omit elements without computing. */
import { isDID, type IterDomain, type IterDomainId, type Tensor, withoutReductions } from "../../../ir/domain.ts";
import type { BroadcastOp, Op, PermuteOp, ReshapeOp, SelectOp, SetOp, SqueezeOp } from "../../../ir/ops/op.ts";
import { printIterDomain } from "../../../ir/print-tensor.ts";
import { sameScalar } from "../../../ir/scalar/fold.ts";
import { at } from "../../../support/invariant.ts";
import type { PrintContext } from "../context.ts";
import { expect, expectField, failExpected, readWord, type DumpScanner, skipBlanks, take } from "../text/scanner.ts";
import { failAt } from "../text/source.ts";
import { axisPosition, leadingParallel, parseAxis } from "../values/axis.ts";
import { domainsHelp } from "../values/domain-notes.ts";
import { parseNamed } from "../values/names.ts";
import { ofOne, type OpContext, opened, type OpSyntax, printOperand } from "./op-syntax.ts";

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

function closeSet(scanner: DumpScanner): void {
  expectCache(scanner);
  expect(scanner, ")");
}

/** `, cache_op=Streaming`: nvFuser's cache hint of a copy, which does not affect its meaning. */
function expectCache(scanner: DumpScanner): void {
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

// Infers axis numbers that an op does not print from the axes of its operand and output.

/**
 * Reduced axes stay in the output's domain, at their positions in the operand. If there are more axes than in the
 * operand, the axes with DID types before a reduced one number the devices' partial results.
 */
export function reducedAxes(scanner: DumpScanner, start: number, input: Tensor, output: Tensor): readonly number[] {
  const rank = withoutReductions(input.domain.logical).length;
  const logical = withoutPartialAxes(output.domain.logical, output.domain.logical.length - rank);
  const axes = logical.flatMap((axis, i) => (axis.iterType === "reduction" ? [i] : []));
  if (logical.length === rank && axes.length > 0) return axes;
  return failAt(scanner.source, start, "dump-incomplete", `T${output.id} does not show which axes are reduced`, {
    found: `${axes.length} reduced among ${logical.length} axes, from an operand with ${rank}`,
    expected: `${rank} axes, the reduced ones with an r`,
    help: "print the output with its reduced axes, as nvFuser does",
  });
}

function withoutPartialAxes(logical: readonly IterDomain[], count: number): readonly IterDomain[] {
  let [axes, left] = [logical, count];
  for (let i = axes.length - 2; i >= 0 && left > 0; i--) {
    const axis = at(axes, i);
    if (!isDID(axis.parallelType) || axis.iterType === "reduction" || axes[i + 1]?.iterType !== "reduction") continue;
    axes = axes.toSpliced(i, 1);
    left--;
  }
  return axes;
}

/**
 * `order[i]`: the axis of the operand that becomes axis i. The axes of a permuted tensor are numbered in the operand's
 * order and then moved, so their numbers give the order. If they do not, or if axes of devices come first, to which
 * nvFuser may have moved them, a root domain does.
 */
function permuteOrder(
  scanner: DumpScanner,
  start: number,
  input: Tensor,
  output: Tensor,
  root: readonly IterDomainId[] | null,
): readonly number[] {
  const from = withoutReductions(input.domain.logical);
  const to = withoutReductions(output.domain.logical);
  const sorted = root ?? to.map(({ id }) => id).sort((a, b) => a - b);
  const order = to.map(({ id }) => sorted.indexOf(id));
  const fits =
    from.length === to.length &&
    (root !== null || to.length === 1 || leadingParallel(output.domain.loop) === 0) &&
    order.every((position, i) => position >= 0 && sameScalar(at(from, position).extent, at(to, i).extent));
  if (fits) return order;
  return failAt(scanner.source, start, "dump-incomplete", `T${output.id} does not show how T${input.id} is permuted`, {
    found: `axes numbered ${to.map(({ id }) => id).join(", ")}`,
    expected: "numbers in the order of the operand's axes, or a root domain",
    help: domainsHelp,
  });
}
