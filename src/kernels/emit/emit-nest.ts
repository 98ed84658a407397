/**
 * Emits a nest as JavaScript: plain loops over views of the whole memory. Each loop carries offsets to the next, so the
 * innermost loop computes at most one multiplication per access.
 */
import type { ReductionSemantics } from "../../ir/ops/functions/expressions.ts";
import { dtypes } from "../../numerics/dtype.ts";
import { emitJs, jsConstant } from "../../numerics/scalar/emit-js.ts";
import { accumulatorDType, computeType, type ScalarType } from "../../numerics/scalar/expression.ts";
import { sumBlock } from "../../numerics/sum-order.ts";
import { at, unreachable } from "../../support/invariant.ts";
import { coefficientOf } from "../nests/affine.ts";
import { accumulatesRows } from "../nests/arrange-loops.ts";
import { type Access, accumulatorLevels, iterationCount, type Nest, type Ordered } from "../nests/nest.ts";
import { sortRowBytes } from "./sort-row.ts";
import {
  baseText,
  range,
  bodyText,
  storeBody,
  indexText,
  lastName,
  instructionName,
  loadText,
  blockedLoop,
  emitLoops,
  elementText,
  storeText,
  loopVariable,
  plainLoop,
  backwardLoop,
  type Cursor,
  type Inner,
  type NestAddresses,
} from "./nest-text.ts";

/** Bytes of the accumulators that the nest keeps in memory; most nests have none. */
export function rowAccumulatorBytes(nest: Nest): number {
  const { ordered } = nest;
  if (ordered?.kind === "sort") return sortRowBytes(iterationCount(nest.reducedLoops), bodyType(nest));
  const semantics = ordered?.kind === "scan" ? ordered.semantics : nest.reduction;
  if (semantics === null || !accumulatesRows(nest)) return 0;
  const elements = accumulatorLevels(nest) * at(nest.loops, nest.loops.length - 1).extent;
  return elements * dtypes[accumulatorDType[semantics.type]].bytes;
}

/**
 * The lines of one block. They refer to `inputs` and `outputs` (arrays of byte addresses), `origins`, and the views of
 * memory by dtype (below).
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
  const { reduction, ordered } = nest;
  if (ordered !== undefined) return orderedText(nest, ordered, start, addresses);
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

function orderedText(nest: Nest, ordered: Ordered, start: Cursor, addresses: NestAddresses): readonly string[] {
  switch (ordered.kind) {
    case "scatter":
      return scatterText(nest, ordered, start);
    case "scan":
      return scanText(nest, ordered, start, addresses);
    case "sort":
      return sortText(nest, ordered, start, addresses);
    default:
      return unreachable(ordered);
  }
}

/** One accumulator for each iteration of `loops`, or one in memory for each of the innermost of them. */
function scanText(
  nest: Nest,
  { semantics, reverse }: Extract<Ordered, { kind: "scan" }>,
  start: Cursor,
  addresses: NestAddresses,
): readonly string[] {
  const row = accumulatesRows(nest) ? nest.loops.at(-1) : undefined;
  const form = { enclosing: true, around: reverse ? backwardLoop : plainLoop };
  const identity = jsConstant(semantics.identity);
  const next = (cursor: Cursor, sum: string): readonly string[] => [
    ...bodyText(nest, cursor, true),
    `const next = ${emitJs(semantics.combine, [sum, lastName(nest)])};`,
    storeText(nest.target.dtype, indexText(nest, nest.target, cursor), semantics.finish, ["next"]),
  ];
  if (row === undefined) {
    return emitLoops(
      nest.loops,
      start,
      (outer) => [
        `let sum = ${identity};`,
        ...emitLoops(nest.reducedLoops, outer, (cursor) => [...next(cursor, "sum"), "sum = next;"], form),
      ],
      { enclosing: true },
    );
  }
  const dtype = accumulatorDType[semantics.type];
  const sum = elementText(dtype, `${addresses.accumulators / dtypes[dtype].bytes} + ${loopVariable(row)}`);
  const perRow: Inner = (outer) => [
    ...emitLoops([row], outer, () => [`${sum} = ${identity};`]),
    ...emitLoops(
      nest.reducedLoops,
      outer,
      (reduced) =>
        emitLoops([row], reduced, (cursor) => [`const sum = ${sum};`, ...next(cursor, "sum"), `${sum} = next;`]),
      form,
    ),
  ];
  return emitLoops(nest.loops.slice(0, -1), start, perRow, { enclosing: true });
}

/** Writes the keys of a row to memory of the accumulators, and sorts it (sort-row.ts). */
function sortText(
  nest: Nest,
  { descending }: Extract<Ordered, { kind: "sort" }>,
  start: Cursor,
  { accumulators }: NestAddresses,
): readonly string[] {
  const type = bodyType(nest);
  const dtype = accumulatorDType[type];
  const count = iterationCount(nest.reducedLoops);
  const inner = nest.reducedLoops.at(-1);
  const stride = inner === undefined ? 1 : coefficientOf(nest.target.offset, inner.atom);
  const key = elementText(dtype, `${accumulators / dtypes[dtype].bytes} + n++`);
  return emitLoops(
    nest.loops,
    start,
    (outer) => [
      "let n = 0;",
      ...emitLoops(nest.reducedLoops, outer, (cursor) => [
        ...bodyText(nest, cursor, true),
        `${key} = ${lastName(nest)};`,
      ]),
      `sortRow($words, ${accumulators / 4}, ${count}, "${type}", ${descending}, 2 * (${indexText(nest, nest.target, outer)}), ${2 * stride});`,
    ],
    { enclosing: true },
  );
}

function bodyType({ body }: Nest): ScalarType {
  const last = at(body, body.length - 1);
  switch (last.kind) {
    case "load":
      return computeType[last.access.dtype];
    case "index":
      return "i64";
    case "apply":
      return last.expression.type;
    default:
      return unreachable(last);
  }
}

type Scatter = Extract<Ordered, { kind: "scatter" }>;

/** Combines each value with the element at its target, in the order of the loops. */
function scatterText(nest: Nest, { combine, below }: Scatter, start: Cursor): readonly string[] {
  return emitLoops([...nest.loops, ...nest.reducedLoops], start, (cursor) => {
    const { dtype } = nest.target;
    const index = indexText(nest, nest.target, cursor);
    const sum = `const sum = ${loadText(dtype, index)};`;
    const check = below === undefined ? [] : [`requireBelow(${instructionName(below.instruction)}, ${below.extent});`];
    return [...bodyText(nest, cursor, true), ...check, sum, storeText(dtype, index, combine, ["sum", lastName(nest)])];
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
  const sum = (level: number): string => elementText(dtype, `${first + level * row.extent} + ${loopVariable(row)}`);
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
