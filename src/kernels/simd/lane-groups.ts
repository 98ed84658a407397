/** The code of a nest for groups of neighbours along its innermost loop: loads, expressions and stores. */
import type { Expression } from "../../numerics/scalar/expression.ts";
import { at, invariant } from "../../support/invariant.ts";
import { unreachable } from "../../support/unreachable.ts";
import { coefficientOf } from "../nests/affine.ts";
import type { Access, IndexInstruction, Loop, Nest } from "../nests/nest.ts";
import type { FunctionWriter } from "../../support/wasm/function-writer.ts";
import { evaluateLanes } from "./lane-expressions.ts";
import { type Pointers, stepBytes } from "./lane-loops.ts";
import { type Group, loadGroup, loadStored, storeGroup, storeStored } from "./lane-memory.ts";
import { groupElements, type Lanes } from "./lanes.ts";

/** The nest under construction, and the pointers of its accesses. */
export interface Target {
  readonly nest: Nest;
  readonly writer: FunctionWriter;
  readonly pointers: Pointers;
}

/** Up to four neighbours along the row. `first` is relative to the pointers. */
export interface RowGroup {
  readonly row: Loop;
  readonly first: number;
  readonly count: number;
}

export function place({ pointers }: Target, access: Access, { row, first, count }: RowGroup): Group {
  const step = coefficientOf(access.offset, row.atom);
  const pointer = pointers.get(access);
  invariant(pointer !== undefined, "every access has a pointer");
  return { pointer, offset: first * stepBytes(access, row), dtype: access.dtype, step, count };
}

/** Computes the instructions that are constant along the row, once, before it. */
export function writeInvariant(target: Target, row: Loop): ReadonlyMap<number, Lanes> {
  const { nest } = target;
  const last = nest.body.length - 1;
  const known = new Map<number, Lanes>();
  for (const [i, step] of nest.body.entries()) {
    if (i === last) break;
    const same =
      step.kind === "load"
        ? coefficientOf(step.access.offset, row.atom) === 0
        : step.kind === "apply" && step.operands.every((operand) => known.has(operand));
    if (same) writeStep(target, known, i, { row, first: 0, count: groupElements });
  }
  return known;
}

/** Computes instruction `i` into `values`. */
export function writeStep(target: Target, values: Map<number, Lanes>, i: number, group: RowGroup): void {
  const { nest, writer } = target;
  const step = at(nest.body, i);
  switch (step.kind) {
    case "load":
      values.set(i, loadGroup(writer, place(target, step.access, group)));
      break;
    case "apply":
      values.set(i, evaluateLanes(writer, step.expression, operandsOf(values, step.operands)));
      break;
    case "index":
      failIndex(step);
      break;
    default:
      unreachable(step);
  }
}

function failIndex(step: IndexInstruction): never {
  invariant(false, "indices of whole tensors are computed in JavaScript", step);
}

export function valueOf(values: ReadonlyMap<number, Lanes>, instruction: number): Lanes {
  const value = values.get(instruction);
  invariant(value !== undefined, "operands come before what uses them", { instruction });
  return value;
}

function operandsOf(values: ReadonlyMap<number, Lanes>, operands: readonly number[]): readonly Lanes[] {
  return operands.map((operand) => valueOf(values, operand));
}

export function writeElements(target: Target, groups: readonly RowGroup[], hoisted: ReadonlyMap<number, Lanes>): void {
  const { nest, writer } = target;
  const last = nest.body.length - 1;
  for (const group of groups) {
    writer.block(() => {
      const values = new Map(hoisted);
      for (let i = 0; i < last; i++) if (!values.has(i)) writeStep(target, values, i, group);
      const step = at(nest.body, last);
      const stored = place(target, nest.target, group);
      switch (step.kind) {
        case "load":
          // A plain copy moves the stored bits unchanged.
          storeStored(writer, stored, loadStored(writer, place(target, step.access, group)));
          break;
        case "apply":
          storeExpression(writer, stored, step.expression, operandsOf(values, step.operands));
          break;
        case "index":
          failIndex(step);
          break;
        default:
          unreachable(step);
      }
    });
  }
}

/** The value's last rounding and its packing into words are one step. */
export function storeExpression(
  writer: FunctionWriter,
  group: Group,
  value: Expression,
  operands: readonly Lanes[],
): void {
  const unrounded = value.kind === "round" && value.to === group.dtype ? value.operand : value;
  storeGroup(writer, group, evaluateLanes(writer, unrounded, operands));
}
