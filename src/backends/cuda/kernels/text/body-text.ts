/**
 * The body of a nest for `width` neighbouring indices: first all loads into registers, so that many are in flight, then
 * the arithmetic element by element.
 */
import { dtypes } from "../../../../numerics/dtype.ts";
import { coefficientOf, lastNeeded } from "../../../../kernels/nests/affine.ts";
import type { Access, Instruction, Loop, Nest } from "../../../../kernels/nests/nest.ts";
import { computeType, type ScalarType } from "../../../../numerics/scalar/expression.ts";
import { at, unreachable } from "../../../../support/invariant.ts";
import { accessType, decodeElementText, elementBytes } from "./element-text.ts";
import { expressionText, scalarTypes } from "./expression-text.ts";
import { affineText, divisionVariables, loopName } from "./index-text.ts";
import type { Parameter } from "../kernel-source.ts";
import { accessForm } from "../plan/vector-width.ts";

export interface BodyContext {
  readonly nest: Nest;
  /** Prefix of this nest's variables, which keeps them apart from those of other nests. */
  readonly prefix: string;
  /** The loop along which `width` elements are taken; undefined for nests without loops. */
  readonly loop: Loop | undefined;
  readonly width: number;
  readonly nameOf: (parameter: Parameter) => string;
  /** For the offsets of accesses. */
  readonly offsetType: string;
  /** Loads whose value is already in a register: its name, by instruction. */
  readonly given: ReadonlyMap<number, string>;
}

/** Declares the registers that `loadLines` fills. `copies` is the first dimension. */
export function registerLines(context: BodyContext, copies: number): readonly string[] {
  return loadsOf(context).map(({ access, position }) => {
    const count = loadedElements(context, access);
    const type = dtypes[access.dtype].cuda.c;
    return `alignas(16) ${type} ${registerName(context, position)}[${copies}][${count}];`;
  });
}

/** Elements of a load that a copy has in registers. */
export function loadedElements(context: BodyContext, access: Access): number {
  return formOf(context, access) === "same" ? 1 : context.width;
}

/** Fills the registers of copy `copy` at the loop variables in scope, and declares the indices that they load. */
export function loadLines(context: BodyContext, copy: string): readonly string[] {
  return loadsBetween(context, copy, 0, context.nest.body.length, new Set());
}

/** `loadLines` for the instructions from `first` to `end` - 1. `declared` has the indices that are declared before. */
export function loadsBetween(
  context: BodyContext,
  copy: string,
  first: number,
  end: number,
  declared: Set<number>,
): readonly string[] {
  return loadsOf(context).flatMap(({ access, position }) =>
    position < first || position >= end
      ? []
      : [...declaredIndices(context, access, copy, declared), ...registerOf(context, access, position, copy)],
  );
}

/** Declares the indices in an access, of registers that are filled. */
export function declaredIndices(
  context: BodyContext,
  access: Access,
  copy: string,
  declared: Set<number>,
): readonly string[] {
  return [...neededIndices(context, access)].flatMap((loaded) => indexLines(context, loaded, copy, declared));
}

function registerOf(context: BodyContext, access: Access, position: number, copy: string): readonly string[] {
  const register = `${registerName(context, position)}[${copy}]`;
  const offset = `${context.prefix}l${position}`;
  const from = `${context.nameOf(access.memory)} + ${offset}`;
  const declaration = `const ${context.offsetType} ${offset} = ${affineText(access.offset, `${context.prefix}i`)};`;
  const form = formOf(context, access);
  if (form === "contiguous") return [declaration, ...moveLines(access, register, from, context.width)];
  const step = context.loop === undefined ? 0 : coefficientOf(access.offset, context.loop.atom);
  const count = form === "same" ? 1 : context.width;
  const elements = Array.from(
    { length: count },
    (_, i) => `${register}[${i}] = *(${from}${i === 0 ? "" : ` + ${i * step}u`});`,
  );
  return [declaration, ...elements];
}

/** The instructions that load the indices in an access. */
function neededIndices({ nest: { atoms } }: BodyContext, { offset }: Access): ReadonlySet<number> {
  return new Set(offset.terms.map(({ atom }) => lastNeeded(atoms, atom)).filter((instruction) => instruction >= 0));
}

/**
 * Declares the index that an instruction computes of registers, and what follows from it. A vector has one index: else
 * it has one element.
 */
function indexLines(context: BodyContext, loaded: number, copy: string, declared: Set<number>): readonly string[] {
  const { nest, prefix, offsetType } = context;
  const lines: string[] = [];
  const nameOf = (instruction: number): string => `${prefix}x${instruction}`;
  const declare = (instruction: number): void => {
    if (declared.has(instruction)) return;
    declared.add(instruction);
    const step = at(nest.body, instruction);
    if (step.kind === "apply") step.operands.forEach(declare);
    const text =
      step.kind === "apply"
        ? expressionText(step.expression, step.operands.map(nameOf))
        : valueText(context, step, instruction, copy, "0");
    lines.push(`const ${scalarTypes[typeOf(step)]} ${nameOf(instruction)} = ${text};`);
    for (const [i, atom] of nest.atoms.entries()) {
      if (atom.kind !== "loaded" || atom.instruction !== instruction) continue;
      lines.push(`const ${offsetType} ${loopName(`${prefix}i`, i)} = (${offsetType})${nameOf(instruction)};`);
    }
    lines.push(...divisionVariables(nest.atoms, offsetType, `${prefix}i`, instruction));
  };
  declare(loaded);
  return lines;
}

/** The arithmetic for element `element` of copy `copy`. The last instruction's value is `resultName`. */
export function valueLines(context: BodyContext, copy: string, element: string): readonly string[] {
  return context.nest.body.map((instruction, i) => {
    const text = context.given.get(i) ?? valueText(context, instruction, i, copy, element);
    return `const ${scalarTypes[typeOf(instruction)]} ${valueName(context, i)} = ${text};`;
  });
}

function typeOf(instruction: Instruction): ScalarType {
  switch (instruction.kind) {
    case "load":
      return computeType[instruction.access.dtype];
    case "index":
      return "i64";
    case "apply":
      return instruction.expression.type;
    default:
      return unreachable(instruction);
  }
}

export function resultName(context: BodyContext): string {
  return valueName(context, context.nest.body.length - 1);
}

export function operandNames(context: BodyContext, operands: readonly number[]): readonly string[] {
  return operands.map((operand) => valueName(context, operand));
}

/** The stored element that the last instruction loaded, if it is a load from memory: a copy keeps its bits. */
export function loadedElement(context: BodyContext, copy: string, element: string): string | null {
  const last = context.nest.body.length - 1;
  const instruction = context.nest.body[last];
  if (instruction?.kind !== "load" || context.given.has(last)) return null;
  return elementOf(context, instruction.access, last, copy, element);
}

/** Moves `width` neighbouring elements between a register array and memory, in the widest possible accesses. */
export function moveLines(access: Access, to: string, from: string, width: number): readonly string[] {
  const bytes = elementBytes(access.dtype);
  const { text, bytes: chunk } = accessType(width * bytes);
  const elements = chunk / bytes;
  return Array.from({ length: (width * bytes) / chunk }, (_, i) => {
    const at = (place: string): string => (i === 0 ? place : `${place} + ${i * elements}`);
    return `*(${text} *)(${at(to)}) = *(const ${text} *)(${at(from)});`;
  });
}

function valueText(
  context: BodyContext,
  instruction: Instruction,
  position: number,
  copy: string,
  element: string,
): string {
  switch (instruction.kind) {
    case "load":
      return decodeElementText(
        instruction.access.dtype,
        elementOf(context, instruction.access, position, copy, element),
      );
    case "index": {
      const { index, origin } = instruction;
      const step = context.loop === undefined ? 0 : coefficientOf(index, context.loop.atom);
      const along = step === 0 || context.width === 1 ? "" : ` + ${element} * ${step}`;
      return `(long long)(${affineText(index, `${context.prefix}i`)})${along} + ${context.nameOf({ kind: "origin", position: origin })}`;
    }
    case "apply":
      return expressionText(instruction.expression, operandNames(context, instruction.operands));
    default:
      return unreachable(instruction);
  }
}

function elementOf(context: BodyContext, access: Access, position: number, copy: string, element: string): string {
  const index = formOf(context, access) === "same" ? "0" : element;
  return `${registerName(context, position)}[${copy}][${index}]`;
}

function formOf({ nest, loop }: BodyContext, access: Access): ReturnType<typeof accessForm> {
  return loop === undefined ? "same" : accessForm(access, nest.atoms, loop);
}

function loadsOf({ nest, given }: BodyContext): readonly { readonly access: Access; readonly position: number }[] {
  return nest.body.flatMap((instruction, position) =>
    instruction.kind === "load" && !given.has(position) ? [{ access: instruction.access, position }] : [],
  );
}

export function registerName({ prefix }: Pick<BodyContext, "prefix">, position: number): string {
  return `${prefix}r${position}`;
}

export function valueName({ prefix }: BodyContext, position: number): string {
  return `${prefix}v${position}`;
}
