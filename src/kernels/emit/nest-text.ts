/**
 * The JavaScript text inside a nest's loops: loops, indices, loads, values and stores. emit-nest.ts puts it around
 * accumulators.
 */
import { type DType, dtypes, isPacked } from "../../numerics/dtype.ts";
import { emitJs } from "../../numerics/scalar/emit-js.ts";
import { type Expression, operand } from "../../numerics/scalar/expression.ts";
import { storageView } from "../../numerics/tensor/host-tensor.ts";
import { at, unreachable, keysOf } from "../../support/invariant.ts";
import { type Affine, type Atom, coefficientOf, lastNeeded } from "../nests/affine.ts";
import type { Access, Instruction, Loop, NestMemory, Nest } from "../nests/nest.ts";
import { requireBelow } from "../../numerics/past-end.ts";
import { sortRow } from "./sort-row.ts";

/** Byte addresses that are fixed when the kernel is prepared. */
export interface NestAddresses {
  /** The start of `NestMemory` of kind scratch. */
  readonly scratch: number;
  /** The start of the row accumulators, of `rowAccumulatorBytes` bytes. */
  readonly accumulators: number;
}

export function baseText(access: Access, addresses: NestAddresses): string {
  const bytes = dtypes[access.dtype].bytes;
  const { memory } = access;
  if (memory.kind === "scratch") return `${(addresses.scratch + memory.offset) / bytes + access.offset.constant}`;
  return `${addressAsIndex(access.dtype, memoryText(memory))} + ${access.offset.constant}`;
}

/** The byte address of an operand. */
export function memoryText(memory: Exclude<NestMemory, { kind: "scratch" }>): string {
  return `${memory.kind}s[${memory.position}]`;
}

export function range(count: number): readonly number[] {
  return Array.from({ length: count }, (_, i) => i);
}

// The JavaScript text of what a nest computes and stores inside all its loops.

/** Computes every instruction into a separate constant, and the indices that follow from it. */
export function bodyText(nest: Nest, cursor: Cursor, keepsLast = nest.reduction !== null): readonly string[] {
  const last = nest.body.length - 1;
  return [
    ...atomsText(nest.atoms, -1),
    ...nest.body.flatMap((instruction, i) =>
      // storeBody stores the last instruction directly, without a constant.
      i === last && !keepsLast
        ? []
        : [`const ${instructionName(i)} = ${valueText(nest, instruction, cursor)};`, ...atomsText(nest.atoms, i)],
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
      return emitJs(instruction.expression, instruction.operands.map(instructionName));
    default:
      return unreachable(instruction);
  }
}

export function storeBody(nest: Nest, cursor: Cursor): string {
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
      return storeText(dtype, index, last.expression, last.operands.map(instructionName));
    default:
      return unreachable(last);
  }
}

/** The atoms that are known after instruction `after`; -1 for those that need none. */
function atomsText(atoms: readonly Atom[], after: number): readonly string[] {
  return atoms.flatMap((atom, i) => {
    if (atom.kind === "loop" || lastNeeded(atoms, i) !== after) return [];
    if (atom.kind === "loaded") return [`const ${atomName(i, atoms)} = ${instructionName(atom.instruction)};`];
    const dividend = affineText(atom.dividend, atoms);
    const text =
      atom.kind === "remainder" ? `(${dividend}) % ${atom.divisor}` : `Math.floor((${dividend}) / ${atom.divisor})`;
    return [`const ${atomName(i, atoms)} = ${text};`];
  });
}

/** The element index of an access inside all loops. */
export function indexText(nest: Nest, access: Access, cursor: Cursor): string {
  const divided = access.offset.terms.filter(({ atom }) => at(nest.atoms, atom).kind !== "loop");
  const terms = divided.map(({ atom, coefficient }) => product(atomName(atom, nest.atoms), coefficient));
  return [cursor.get(access)?.text, ...terms].join(" + ");
}

export function instructionName(instruction: number): string {
  return `v${instruction}`;
}

export function lastName(nest: Nest): string {
  return instructionName(nest.body.length - 1);
}

// Emits loops that carry the offset of each access from a loop to the one inside it.

/** For each access, the text of its offset in the loops emitted so far. */
export type Cursor = ReadonlyMap<Access, { readonly name: string; readonly text: string }>;
export type Inner = (cursor: Cursor) => readonly string[];

/** Wraps lines that use a loop's variable in the loop. */
export type LoopText = (loop: Loop, lines: readonly string[]) => readonly string[];

export const plainLoop: LoopText = (loop, lines) => {
  const name = loopVariable(loop);
  return [`for (let ${name} = 0; ${name} < ${loop.extent}; ${name}++) {`, ...lines, "}"];
};

export const backwardLoop: LoopText = (loop, lines) => {
  const name = loopVariable(loop);
  return [`for (let ${name} = ${loop.extent - 1}; ${name} >= 0; ${name}--) {`, ...lines, "}"];
};

/** Runs `carry` after every `sumBlock` elements of the whole reduction. */
export function blockedLoop(carry: readonly string[]): LoopText {
  return (loop, lines) => {
    const name = loopVariable(loop);
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
export function emitLoops(
  loops: readonly Loop[],
  cursor: Cursor,
  inner: Inner,
  form: LoopForm = {},
): readonly string[] {
  const [loop, ...rest] = loops;
  if (loop === undefined) return inner(cursor);
  const name = loopVariable(loop);
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

/** The environment of a generated function: the views that the texts here refer to. */
export function memoryViews(buffer: ArrayBufferLike): Readonly<Record<string, unknown>> {
  const views = Object.fromEntries(keysOf(dtypes).map((dtype) => [viewName(dtype), storageView(dtype, buffer)]));
  return { ...views, $words: new Uint32Array(buffer), sortRow, requireBelow };
}

function viewName(dtype: DType): string {
  return `$${dtype}`;
}

/** The stored element itself: a word for half and bfloat16. */
export function elementText(dtype: DType, index: string): string {
  return `${viewName(dtype)}[${index}]`;
}

/** The element as a value of the dtype's compute type. */
export function loadText(dtype: DType, index: string): string {
  const element = elementText(dtype, index);
  return isPacked(dtype) ? `decode_${dtype}(${element})` : element;
}

/**
 * Stores `value`, an expression over `operands`. The last rounding of the value and its packing into a word are one
 * step.
 */
export function storeText(dtype: DType, index: string, value: Expression, operands: readonly string[]): string {
  const element = elementText(dtype, index);
  if (!isPacked(dtype)) return `${element} = ${emitJs(value, operands)};`;
  const unrounded = value.kind === "round" && value.to === dtype ? value.operand : value;
  return `${element} = encode_${dtype}(${emitJs(unrounded, operands)});`;
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

export function loopVariable({ atom }: Loop): string {
  return `i${atom}`;
}

function atomName(atom: number, atoms: readonly Atom[]): string {
  return at(atoms, atom).kind === "loop" ? `i${atom}` : `d${atom}`;
}
