/** Readers of ops that move, name or leave out elements and compute nothing. */
import { type Tensor, withoutReductions } from "../../../ir/domain.ts";
import type { Op } from "../../../ir/ops/op.ts";
import { parseNamed } from "../../syntax/names.ts";
import { permuteOrder } from "./op-axes.ts";
import { opened, type OpContext, type OpReader } from "./op-context.ts";
import { axisPosition, parseAxis } from "../../syntax/axis.ts";
import { failAt } from "../../syntax/parse-error.ts";
import {
  expect,
  expectField,
  expectNumber,
  failExpected,
  readWord,
  type Scanner,
  skipBlanks,
  take,
} from "../../syntax/scanner.ts";

/** `, cache_op=Streaming )`: how nvFuser's copy goes through caches, which says nothing about the copy. */
function closeSet(scanner: Scanner): void {
  expect(scanner, ",");
  expectField(scanner, "cache_op");
  if (readWord(scanner) === "") failExpected(scanner, "a cache operation");
  expect(scanner, ")");
}

function set(context: OpContext, output: Tensor): Op {
  const input = opened(context);
  closeSet(context.scanner);
  return { kind: "Set", inputs: [input.id], output: output.id };
}

function segmenterSet(context: OpContext, output: Tensor): Op {
  const input = opened(context);
  skipBlanks(context.scanner);
  if (context.scanner.text[context.scanner.position] === ",") closeSet(context.scanner);
  else expect(context.scanner, ")");
  return { kind: "Set", inputs: [input.id], output: output.id };
}

function permute(context: OpContext, output: Tensor, start: number): Op {
  const input = opened(context);
  closeSet(context.scanner);
  const root = context.tensors.notes.get(output.id)?.root ?? null;
  const order = permuteOrder(context.scanner, start, input, output, root);
  return { kind: "Permute", order, inputs: [input.id], output: output.id };
}

function reshape(context: OpContext, output: Tensor): Op {
  const input = opened(context);
  expect(context.scanner, ")");
  return { kind: "Reshape", inputs: [input.id], output: output.id };
}

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

function broadcast(context: OpContext, output: Tensor): Op {
  const input = opened(context);
  return { kind: "Broadcast", flags: flags(context), inputs: [input.id], output: output.id };
}

function squeeze(context: OpContext, output: Tensor, start: number): Op {
  const input = opened(context);
  const squeezed = flags(context);
  const rank = withoutReductions(input.domain.logical).length;
  if (squeezed.length !== rank) {
    failAt(context.scanner.source, start, {
      code: "dump-contradiction",
      message: "a squeeze has not one flag per axis of its operand",
      found: `number of flags ${squeezed.length}, number of axes ${rank}`,
      expected: "one flag per axis",
      help: "correct the flags",
    });
  }
  return {
    kind: "Squeeze",
    axes: squeezed.flatMap((flag, i) => (flag ? [i] : [])),
    inputs: [input.id],
    output: output.id,
  };
}

/** `{ {0, 8, 1} {2, 6, 1} }`: start, stop and step of every axis. */
function slice(context: OpContext, output: Tensor): Op {
  const { scanner } = context;
  const input = opened(context);
  expect(scanner, ",");
  expect(scanner, "{");
  const ranges: { start: number; stop: number }[] = [];
  while (take(scanner, "{")) {
    const start = bound(scanner);
    expect(scanner, ",");
    const stop = bound(scanner);
    expect(scanner, ",");
    const { position } = scanner;
    if (bound(scanner) !== 1) failStep(scanner, position);
    expect(scanner, "}");
    ranges.push({ start, stop });
    take(scanner, ",");
    skipBlanks(scanner);
  }
  expect(scanner, "}");
  expect(scanner, ")");
  return { kind: "Slice", ranges, inputs: [input.id], output: output.id };
}

function failStep(scanner: Scanner, position: number): never {
  failAt(scanner.source, position, {
    code: "dump-unsupported",
    message: "a slice has a step",
    expected: "step 1",
    help: "reshape and select instead; Braid's slices take every element",
  });
}

function bound(scanner: Scanner): number {
  skipBlanks(scanner);
  const { position } = scanner;
  if (/^[a-z(]/u.test(scanner.text.slice(position, position + 1))) {
    failAt(scanner.source, position, {
      code: "dump-unsupported",
      message: "a slice has a bound that is not constant",
      expected: "constant bounds",
      help: "give the tensor constant extents",
    });
  }
  return expectNumber(scanner, "a bound of the slice");
}

function select(context: OpContext, output: Tensor): Op {
  const { scanner, names } = context;
  const input = opened(context);
  expect(scanner, ",");
  expectField(scanner, "axis");
  const axisStart = scanner.position;
  const axis = axisPosition(scanner, axisStart, input, parseAxis(scanner).id, withoutReductions(input.domain.logical));
  expect(scanner, ",");
  expectField(scanner, "index");
  const index = parseNamed(scanner, names, "a slice index");
  expect(scanner, ")");
  return { kind: "Select", axis, index, inputs: [input.id], output: output.id };
}

export const layoutReaders: readonly (readonly [name: string, reader: OpReader])[] = [
  ["Set", set],
  ["SegmenterSet", segmenterSet],
  ["Set.Permute", permute],
  ["view", reshape],
  ["reshape", reshape],
  ["broadcast", broadcast],
  ["squeeze", squeeze],
  ["slice", slice],
  ["select", select],
];
