/**
 * Which values of a unit are stored; each gets a separate loop nest. All others are inlined where they are read. The
 * stored values are results, reductions, contractions, joined values, computed operands of contractions, and computations that
 * inlining would repeat: several nests read them, or one nest reads them at several indices or along an axis that they
 * do not have.
 */
import type { UnitKernel, UnitStep } from "../../commands/kernel.ts";
import { elementCount } from "../../commands/view.ts";
import { dtypes } from "../../numerics/dtype.ts";
import { at } from "../../support/invariant.ts";
import { isViewStep } from "./view-index.ts";

/** With more computations in one nest, JavaScript engines no longer optimize the function well. */
const mostInlined = 64;

/** What cannot be computed where another nest reads it. */
const ownNest: ReadonlySet<UnitStep["kind"]> = new Set(["Reduction", "Matmul", "Linear", "Cat", "Pad", "ScatterAdd"]);

/** One read of a value by a nest. */
interface Use {
  /** The stored value that the reading nest computes. */
  readonly nest: number;
  /** The views and broadcasts between the nest's index and the value's. Equal paths give equal indices. */
  readonly path: string;
  /**
   * Whether this read requires a stored value: a contraction reads memory, or the nest reads each element more than
   * once.
   */
  readonly store: boolean;
}

export function storedValues(unit: Pick<UnitKernel, "values" | "steps" | "results">): ReadonlySet<number> {
  const stored = new Set<number>(unit.results);
  const uses = unit.values.map(() => new Map<string, Use>());
  const inlined = new Map<number, number>();

  const record = (value: number, use: Use): void => {
    const key = `${use.nest}${use.path}`;
    const known = at(uses, value).get(key);
    at(uses, value).set(key, known === undefined ? use : { ...use, store: use.store || known.store });
  };

  const readers = readersOf(unit);
  /** Whether the boxes of a cat are those of the stored value that is made of it. */
  const isJoined = (cat: number): boolean => {
    let value = cat;
    while (!stored.has(value)) {
      const [reader, ...others] = at(readers, value);
      if (reader === undefined || others.length > 0 || !joinsThrough(reader)) return false;
      value = reader.output;
    }
    return value !== cat;
  };
  for (const [position, step] of [...unit.steps.entries()].toReversed()) {
    const value = step.output;
    const own = [...at(uses, value).values()];
    if (own.length === 0 && !stored.has(value)) continue;
    const repeats = own.length > 1 || own.some((use) => use.store);
    const hasOwnNest = ownNest.has(step.kind) && !(step.kind === "Cat" && !repeats && isJoined(value));
    if (hasOwnNest || (repeats && !isFree(unit, step))) stored.add(value);
    const nest = own[0]?.nest;
    if (!stored.has(value) && !isViewStep(step) && nest !== undefined) {
      const count = (inlined.get(nest) ?? 0) + 1;
      inlined.set(nest, count);
      if (count > mostInlined) stored.add(value);
    }
    const nests: readonly Use[] = stored.has(value) ? [{ nest: value, path: "", store: false }] : own;
    for (const [i, input] of step.inputs.entries()) {
      const change = pathChange(unit, step, i);
      for (const use of nests) {
        record(input, {
          nest: use.nest,
          path: change === null ? use.path : `${use.path}/${position}.${i}`,
          store: use.store || change === "contracted" || change === "stretched",
        });
      }
    }
  }
  return stored;
}

function readersOf({ values, steps }: Pick<UnitKernel, "values" | "steps">): readonly (readonly UnitStep[])[] {
  const readers = values.map((): UnitStep[] => []);
  for (const step of steps) for (const input of step.inputs) at(readers, input).push(step);
  return readers;
}

/** Whether each box of a step's operand is a box of its result, so that a cat before it need not be stored. */
export function joinsThrough(
  step: UnitStep,
): step is Extract<UnitStep, { kind: "Cat" | "Permute" | "Unary" | "Cast" }> {
  return step.kind === "Cat" || step.kind === "Permute" || step.kind === "Unary" || step.kind === "Cast";
}

/**
 * Views and constants cost nothing where they are inlined. A 16-bit float is read as fast as the same value in float,
 * and takes less memory.
 */
export function isFree({ values }: Pick<UnitKernel, "values">, step: UnitStep): boolean {
  if (step.kind !== "Cast") return isViewStep(step) || step.kind === "Full";
  const { dtype } = at(values, at(step.inputs, 0));
  return step.to === "float" && dtypes[dtype].family === "float" && dtypes[dtype].bytes === 2;
}

/** How the index of a step's operand differs from the index of its output; null if they are equal. */
function pathChange(
  { values }: Pick<UnitKernel, "values">,
  step: UnitStep,
  input: number,
): "view" | "stretched" | "contracted" | null {
  if (step.kind === "Matmul" || step.kind === "Linear") return "contracted";
  if (step.kind === "RandomBits") return "stretched";
  if (step.kind === "Set") return null;
  if (isViewStep(step) && step.kind !== "Expand") return "view";
  if (step.kind === "Cat" || step.kind === "Pad" || step.kind === "ScatterAdd") return "view";
  if (step.kind === "IndexSelect" || step.kind === "Gather") {
    if (input === 1) return step.kind === "Gather" ? null : "stretched";
    // What is read at most once per element on average is not worth storing.
    const [read, made] = [at(step.inputs, 0), step.output].map((value) => elementCount(at(values, value).shape));
    return (made ?? 0) <= (read ?? 0) ? "view" : "stretched";
  }
  if (step.kind !== "Binary" && step.kind !== "Ternary" && step.kind !== "Expand") return null;
  const { shape } = at(values, at(step.inputs, input));
  return shape.some((extent, axis) => extent === 1 && at(values, step.output).shape[axis] !== 1) ? "stretched" : null;
}
