/**
 * Emits a nest as JavaScript: plain loops over views of the whole memory. Each loop carries offsets to the next, so the
 * innermost loop computes at most one multiplication per access.
 */
import { dtypes } from "../../numerics/dtype.ts";
import { emitJs, jsConstant } from "../../numerics/scalar/emit-js.ts";
import type { Expression } from "../../numerics/scalar/expression.ts";
import type { ReductionSemantics } from "../../ir/ops/functions/expressions.ts";
import { sumBlock } from "../../numerics/sum-order.ts";
import { at } from "../../support/invariant.ts";
import { accumulatesRows } from "../nests/arrange-loops.ts";
import { bodyText, indexText, lastName, storeBody } from "./body-text.ts";
import { accumulatorDType, addressAsIndex, elementText, loadText, storeText } from "./element-text.ts";
import { blockedLoop, type Cursor, emitLoops, type Inner, plainLoop } from "./emit-loops.ts";
import { loopName } from "./index-text.ts";
import { type Access, accumulatorLevels, type Memory, type Nest } from "../nests/nest.ts";

/** Byte addresses that are fixed when the kernel is prepared. */
export interface NestAddresses {
  /** The start of `Memory` of kind scratch. */
  readonly scratch: number;
  /** The start of the row accumulators, of `rowAccumulatorBytes` bytes. */
  readonly accumulators: number;
}

/** Bytes of the accumulators that the nest keeps in memory; most nests have none. */
export function rowAccumulatorBytes(nest: Nest): number {
  if (nest.reduction === null || !accumulatesRows(nest)) return 0;
  const elements = accumulatorLevels(nest) * at(nest.loops, nest.loops.length - 1).extent;
  return elements * dtypes[accumulatorDType[nest.reduction.type]].bytes;
}

/**
 * The lines of one block. They refer to `inputs` and `outputs` (arrays of byte addresses), `origins`, and the views of
 * element-text.ts.
 */
export function emitNest(nest: Nest, addresses: NestAddresses): readonly string[] {
  const accesses = new Map<Access, string>();
  for (const instruction of nest.body) {
    if (instruction.kind === "load") accesses.set(instruction.access, `a${accesses.size}`);
  }
  accesses.set(nest.target, "t");
  const start: Cursor = new Map([...accesses].map(([access, name]) => [access, { name, text: name }]));
  const bases = [...accesses].map(([access, name]) => `const ${name} = ${baseText(access, addresses)};`);
  return ["{", ...bases, ...loopsText(nest, start, addresses), "}"];
}

function loopsText(nest: Nest, start: Cursor, addresses: NestAddresses): readonly string[] {
  const { reduction, scatter } = nest;
  if (scatter !== undefined) return scatterText(nest, scatter, start);
  if (reduction === null) {
    return emitLoops(nest.loops, start, (cursor) => [...bodyText(nest, cursor), storeBody(nest, cursor)]);
  }
  if (accumulatesRows(nest)) return rowAccumulation(nest, reduction, start, addresses);
  const levels = accumulatorLevels(nest);
  const sum = (level: number): string => `sum${level}`;
  const innermost = levels === 1 ? plainLoop : blockedLoop(carryText(levels, (to) => addText(reduction, sum, to)));
  const accumulate: Inner = (outer) => [
    ...counterNames(levels).map((name) => `let ${name} = ${sumBlock};`),
    ...range(levels).map((level) => `let ${sum(level)} = ${jsConstant(reduction.identity)};`),
    ...emitLoops(
      nest.reducedLoops,
      outer,
      (cursor) => [...bodyText(nest, cursor), `${sum(0)} = ${emitJs(reduction.combine, [sum(0), lastName(nest)])};`],
      { innermost },
    ),
    ...range(levels - 1).map(
      (level) => `${sum(level + 1)} = ${emitJs(reduction.combine, [sum(level + 1), sum(level)])};`,
    ),
    storeText(nest.target.dtype, indexText(nest, nest.target, outer), reduction.finish, [sum(levels - 1)]),
  ];
  return emitLoops(nest.loops, start, accumulate, { enclosing: true });
}

/** Combines each value with the element at its target, in the order of the loops. */
function scatterText(nest: Nest, combine: Expression, start: Cursor): readonly string[] {
  return emitLoops([...nest.loops, ...nest.reducedLoops], start, (cursor) => {
    const { dtype } = nest.target;
    const index = indexText(nest, nest.target, cursor);
    const sum = `const sum = ${loadText(dtype, index)};`;
    return [...bodyText(nest, cursor, true), sum, storeText(dtype, index, combine, ["sum", lastName(nest)])];
  });
}

/** Adds the accumulator below level `to` to that of level `to`, and resets it. */
function addText(reduction: ReductionSemantics, sum: (level: number) => string, to: number): readonly string[] {
  return [
    `${sum(to)} = ${emitJs(reduction.combine, [sum(to), sum(to - 1)])};`,
    `${sum(to - 1)} = ${jsConstant(reduction.identity)};`,
  ];
}

/** The text after a full block: `add` for its level, and for each further level whose block is now full. */
function carryText(levels: number, add: (to: number) => readonly string[]): readonly string[] {
  return counterNames(levels).reduceRight<readonly string[]>(
    (outer, name, level) => [
      ...(level === 0 ? [] : [`if (--${name} === 0) {`]),
      `${name} = ${sumBlock};`,
      ...add(level + 1),
      ...outer,
      ...(level === 0 ? [] : ["}"]),
    ],
    [],
  );
}

/** Counters of the terms that each level's block still lacks; the last level has no limit. */
function counterNames(levels: number): readonly string[] {
  return range(levels - 1).map((level) => `left${level}`);
}

function rowAccumulation(
  nest: Nest,
  reduction: ReductionSemantics,
  start: Cursor,
  addresses: NestAddresses,
): readonly string[] {
  const dtype = accumulatorDType[reduction.type];
  const row = at(nest.loops, nest.loops.length - 1);
  const levels = accumulatorLevels(nest);
  const first = addresses.accumulators / dtypes[dtype].bytes;
  const sum = (level: number): string => elementText(dtype, `${first + level * row.extent} + ${loopName(row)}`);
  const overRow = (cursor: Cursor, inner: Inner): readonly string[] => emitLoops([row], cursor, inner);
  const addRow = (outer: Cursor, to: number): readonly string[] =>
    overRow(outer, () => [
      `const sum = ${sum(to)};`,
      `const part = ${sum(to - 1)};`,
      `${sum(to)} = ${emitJs(reduction.combine, ["sum", "part"])};`,
      `${sum(to - 1)} = ${jsConstant(reduction.identity)};`,
    ]);
  const accumulate: Inner = (reduced) => [
    ...overRow(reduced, (cursor) => [
      ...bodyText(nest, cursor),
      `const sum = ${sum(0)};`,
      `${sum(0)} = ${emitJs(reduction.combine, ["sum", lastName(nest)])};`,
    ]),
    ...(levels === 1 ? [] : ["if (--left0 === 0) {", ...carryText(levels, (to) => addRow(reduced, to)), "}"]),
  ];
  const perRow: Inner = (outer) => [
    ...counterNames(levels).map((name) => `let ${name} = ${sumBlock};`),
    ...overRow(outer, () => range(levels).map((level) => `${sum(level)} = ${jsConstant(reduction.identity)};`)),
    ...emitLoops(nest.reducedLoops, outer, accumulate, { enclosing: true }),
    ...range(levels - 1).flatMap((level) => addRow(outer, level + 1)),
    ...overRow(outer, (cursor) => [
      `const sum = ${sum(levels - 1)};`,
      storeText(nest.target.dtype, indexText(nest, nest.target, cursor), reduction.finish, ["sum"]),
    ]),
  ];
  return emitLoops(nest.loops.slice(0, -1), start, perRow, { enclosing: true });
}

function baseText(access: Access, addresses: NestAddresses): string {
  const bytes = dtypes[access.dtype].bytes;
  const { memory } = access;
  if (memory.kind === "scratch") return `${(addresses.scratch + memory.offset) / bytes + access.offset.constant}`;
  return `${addressAsIndex(access.dtype, memoryText(memory))} + ${access.offset.constant}`;
}

/** The byte address of an operand. */
export function memoryText(memory: Exclude<Memory, { kind: "scratch" }>): string {
  return `${memory.kind}s[${memory.position}]`;
}

function range(count: number): readonly number[] {
  return Array.from({ length: count }, (_, i) => i);
}
