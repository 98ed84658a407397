/**
 * Emits a nest as JavaScript: plain loops over views of the whole memory. Each loop carries offsets to the next, so the
 * innermost loop computes at most one multiplication per access.
 */
import type { ReductionSemantics } from "../../ir/ops/functions/expressions.ts";
import { type DType, dtypes } from "../../numerics/dtype.ts";
import { emitJs, jsConstant } from "../../numerics/scalar/emit-js.ts";
import { computeType, type Expression, operand, type ScalarType } from "../../numerics/scalar/expression.ts";
import { sumBlock } from "../../numerics/sum-order.ts";
import { storageView } from "../../numerics/tensor/storage.ts";
import { at } from "../../support/invariant.ts";
import { keysOf } from "../../support/is-one-of.ts";
import { unreachable } from "../../support/unreachable.ts";
import { type Affine, type Atom, coefficientOf, lastNeeded } from "../nests/affine.ts";
import { accumulatesRows } from "../nests/arrange-loops.ts";
import {
  type Access,
  accumulatorLevels,
  type Instruction,
  iterationCount,
  type Loop,
  type NestMemory,
  type Nest,
  type Ordered,
} from "../nests/nest.ts";
import { sortRow, sortRowBytes } from "./sort-row.ts";

/** Byte addresses that are fixed when the kernel is prepared. */
export interface NestAddresses {
  /** The start of `NestMemory` of kind scratch. */
  readonly scratch: number;
  /** The start of the row accumulators, of `rowAccumulatorBytes` bytes. */
  readonly accumulators: number;
}

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
      return scatterText(nest, ordered.combine, start);
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
  const sum = elementText(dtype, `${addresses.accumulators / dtypes[dtype].bytes} + ${loopName(row)}`);
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
export function memoryText(memory: Exclude<NestMemory, { kind: "scratch" }>): string {
  return `${memory.kind}s[${memory.position}]`;
}

function range(count: number): readonly number[] {
  return Array.from({ length: count }, (_, i) => i);
}

// The JavaScript text of what a nest computes and stores inside all its loops.

/** Computes every instruction into a separate constant, and the indices that follow from it. */
function bodyText(nest: Nest, cursor: Cursor, keepsLast = nest.reduction !== null): readonly string[] {
  const last = nest.body.length - 1;
  return [
    ...atomsText(nest.atoms, -1),
    ...nest.body.flatMap((instruction, i) =>
      // storeBody stores the last instruction directly, without a constant.
      i === last && !keepsLast
        ? []
        : [`const ${nameOf(i)} = ${valueText(nest, instruction, cursor)};`, ...atomsText(nest.atoms, i)],
    ),
  ];
}

function valueText(nest: Nest, instruction: Instruction, cursor: Cursor): string {
  switch (instruction.kind) {
    case "load":
      return loadText(instruction.access.dtype, indexText(nest, instruction.access, cursor));
    case "index":
      return `BigInt(${affineText(instruction.index, nest.atoms)} + origins[${instruction.origin}])`;
    case "apply":
      return emitJs(instruction.expression, instruction.operands.map(nameOf));
    default:
      return unreachable(instruction);
  }
}

function storeBody(nest: Nest, cursor: Cursor): string {
  const { dtype } = nest.target;
  const index = indexText(nest, nest.target, cursor);
  const last = at(nest.body, nest.body.length - 1);
  switch (last.kind) {
    case "load":
      // A plain copy moves the stored bits unchanged.
      return `${elementText(dtype, index)} = ${elementText(dtype, indexText(nest, last.access, cursor))};`;
    case "index":
      return storeText(dtype, index, operand("i64", 0), [valueText(nest, last, cursor)]);
    case "apply":
      return storeText(dtype, index, last.expression, last.operands.map(nameOf));
    default:
      return unreachable(last);
  }
}

/** The atoms that are known after instruction `after`; -1 for those that need none. */
function atomsText(atoms: readonly Atom[], after: number): readonly string[] {
  return atoms.flatMap((atom, i) => {
    if (atom.kind === "loop" || lastNeeded(atoms, i) !== after) return [];
    if (atom.kind === "loaded") return [`const ${atomName(i, atoms)} = ${nameOf(atom.instruction)};`];
    const dividend = affineText(atom.dividend, atoms);
    const text =
      atom.kind === "remainder" ? `(${dividend}) % ${atom.divisor}` : `Math.floor((${dividend}) / ${atom.divisor})`;
    return [`const ${atomName(i, atoms)} = ${text};`];
  });
}

/** The element index of an access inside all loops. */
function indexText(nest: Nest, access: Access, cursor: Cursor): string {
  const divided = access.offset.terms.filter(({ atom }) => at(nest.atoms, atom).kind !== "loop");
  const terms = divided.map(({ atom, coefficient }) => product(atomName(atom, nest.atoms), coefficient));
  return [cursor.get(access)?.text, ...terms].join(" + ");
}

function nameOf(instruction: number): string {
  return `v${instruction}`;
}

function lastName(nest: Nest): string {
  return nameOf(nest.body.length - 1);
}

// Emits loops that carry the offset of each access from a loop to the one inside it.

/** For each access, the text of its offset in the loops emitted so far. */
type Cursor = ReadonlyMap<Access, { readonly name: string; readonly text: string }>;
type Inner = (cursor: Cursor) => readonly string[];

/** Wraps lines that use a loop's variable in the loop. */
type LoopText = (loop: Loop, lines: readonly string[]) => readonly string[];

const plainLoop: LoopText = (loop, lines) => {
  const name = loopName(loop);
  return [`for (let ${name} = 0; ${name} < ${loop.extent}; ${name}++) {`, ...lines, "}"];
};

const backwardLoop: LoopText = (loop, lines) => {
  const name = loopName(loop);
  return [`for (let ${name} = ${loop.extent - 1}; ${name} >= 0; ${name}--) {`, ...lines, "}"];
};

/** Runs `carry` after every `sumBlock` elements of the whole reduction. */
function blockedLoop(carry: readonly string[]): LoopText {
  return (loop, lines) => {
    const name = loopName(loop);
    return [
      `for (let ${name} = 0; ${name} < ${loop.extent};) {`,
      `const stop = Math.min(${loop.extent}, ${name} + left0);`,
      `left0 -= stop - ${name};`,
      `for (; ${name} < stop; ${name}++) {`,
      ...lines,
      "}",
      "if (left0 === 0) {",
      ...carry,
      "}",
      "}",
    ];
  };
}

interface LoopForm {
  /** `inner` emits further loops. */
  readonly enclosing?: boolean;
  readonly innermost?: LoopText;
  /** All loops but the innermost one; and that too, without `innermost`. */
  readonly around?: LoopText;
}

/** Emits `loops` around the text that `inner` makes from the offsets inside them. */
function emitLoops(loops: readonly Loop[], cursor: Cursor, inner: Inner, form: LoopForm = {}): readonly string[] {
  const [loop, ...rest] = loops;
  if (loop === undefined) return inner(cursor);
  const name = loopName(loop);
  const declarations: string[] = [];
  const next = new Map(
    [...cursor].map(([access, { name: base, text }]) => {
      const coefficient = coefficientOf(access.offset, loop.atom);
      if (coefficient === 0) return [access, { name: base, text }];
      const moved = `${text} + ${product(name, coefficient)}`;
      // The innermost loop adds the offset at each access; the other loops keep the sum in a variable.
      if (rest.length === 0 && form.enclosing !== true) return [access, { name: base, text: moved }];
      const variable = `${base}_${loop.atom}`;
      declarations.push(`const ${variable} = ${moved};`);
      return [access, { name: base, text: variable }];
    }),
  );
  const { around: each = plainLoop, innermost = each } = form;
  const around = rest.length === 0 ? innermost : each;
  return around(loop, [...declarations, ...emitLoops(rest, next, inner, form)]);
}

// The text of generated code that reads or writes one element of memory, by dtype. `$float` and similar names are views
// of the whole memory.

/** The dtype that stores values of a compute type without conversion, which accumulators in memory use. */
const accumulatorDType: { readonly [T in ScalarType]: DType } = {
  f64: "double",
  f32: "float",
  i32: "int",
  i64: "int64",
};

interface Coding {
  readonly decode: string;
  readonly encode: string;
}

const codings: { readonly [D in DType]: Coding | null } = {
  double: null,
  float: null,
  half: { decode: "halfToFloat", encode: "floatToHalf" },
  bfloat16: { decode: "bfloat16ToFloat", encode: "floatToBFloat16" },
  int: null,
  int64: null,
  bool: null,
};

/** The environment of a generated function: the views that the texts here refer to. */
export function memoryViews(buffer: ArrayBufferLike): Readonly<Record<string, unknown>> {
  const views = Object.fromEntries(keysOf(dtypes).map((dtype) => [viewName(dtype), storageView(dtype, buffer)]));
  return { ...views, $words: new Uint32Array(buffer), sortRow };
}

function viewName(dtype: DType): string {
  return `$${dtype}`;
}

/** The stored element itself: a word for half and bfloat16. */
function elementText(dtype: DType, index: string): string {
  return `${viewName(dtype)}[${index}]`;
}

/** The element as a value of the dtype's compute type. */
function loadText(dtype: DType, index: string): string {
  const coding = codings[dtype];
  const element = elementText(dtype, index);
  return coding === null ? element : `${coding.decode}(${element})`;
}

/**
 * Stores `value`, an expression over `operands`. The last rounding of the value and its packing into a word are one
 * step.
 */
function storeText(dtype: DType, index: string, value: Expression, operands: readonly string[]): string {
  const coding = codings[dtype];
  const element = elementText(dtype, index);
  if (coding === null) return `${element} = ${emitJs(value, operands)};`;
  const unrounded = value.kind === "round" && value.to === dtype ? value.operand : value;
  return `${element} = ${coding.encode}(${emitJs(unrounded, operands)});`;
}

/**
 * Converts a byte address in a variable to an element index. Addresses are unsigned, because memory may be larger than
 * 2 GiB.
 */
function addressAsIndex(dtype: DType, address: string): string {
  return `(${address} >>> ${Math.log2(dtypes[dtype].bytes)})`;
}

// The JavaScript text of loop variables, and of indices made from them.

function affineText(index: Affine, atoms: readonly Atom[]): string {
  const terms = index.terms.map(({ atom, coefficient }) => product(atomName(atom, atoms), coefficient));
  return [...terms, `${index.constant}`].join(" + ");
}

function product(name: string, coefficient: number): string {
  return coefficient === 1 ? name : `${name} * ${coefficient}`;
}

function loopName({ atom }: Loop): string {
  return `i${atom}`;
}

function atomName(atom: number, atoms: readonly Atom[]): string {
  return at(atoms, atom).kind === "loop" ? `i${atom}` : `d${atom}`;
}
