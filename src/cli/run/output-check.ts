/** `--check`: compares each output of a run with the oracle's, within the oracle's error bounds. */
import type { Diagnostic } from "../../diagnostics/diagnostic.ts";
import type { FusionData } from "../../ir/fusion-data.ts";
import { printTensor } from "../../ir/print-tensor.ts";
import type { Sizes } from "../../ir/sizes.ts";
import type { Tensor } from "../../numerics/tensor/host-tensor.ts";
import { compare, type Difference } from "../../oracle/compare.ts";
import { evaluateFusion } from "../../oracle/evaluate.ts";
import type { Arithmetic } from "../../oracle/tolerance.ts";
import { at } from "../../support/invariant.ts";
import type { OutputCopy } from "./output-copies.ts";

export interface OutputCheck {
  /** Whether elements were compared, and no error exceeds its bound. */
  readonly ok: boolean;
  readonly largestError: number;
  /** The largest error over its element's bound. Above 1 the check fails. */
  readonly partOfBound: number;
  readonly elements: number;
  /** How many elements have a bound and were compared. */
  readonly compared: number;
  /** Why the others have none; null if all were compared. */
  readonly notCompared: string | null;
}

export interface CheckedOutput {
  readonly check: OutputCheck;
  readonly failure: Diagnostic | null;
}

/**
 * braid: the program was lowered from what it is checked with, and verified. program: it was written by hand, and its
 * reference besides. unverified: anything.
 */
export type Suspect = "braid" | "program" | "unverified";

const helpFor: { readonly [S in Suspect]: string } = {
  braid: "this is a bug in Braid: please report the program and the command line",
  program:
    "the host program or its reference is wrong: compare the statements that write this output with the reference",
  unverified: "the program was not verified: run braid verify on it",
};

/**
 * One check per output, in the order of the Fusion's outputs, for the copy with the largest error. `inputs` are whole
 * tensors. `suspect`: what may be wrong if an output differs.
 */
export function checkOutputs(
  fusion: FusionData,
  inputs: readonly Tensor[],
  sizes: Sizes,
  outputs: readonly (readonly OutputCopy[])[],
  suspect: Suspect,
  arithmetic?: Arithmetic,
): readonly CheckedOutput[] {
  const expected = evaluateFusion(fusion, inputs, sizes, arithmetic);
  return fusion.outputs.map((id, i) => {
    const copies = at(outputs, i).map(({ tensor, ranks }) => ({
      shape: tensor.shape,
      ranks,
      ...compare(tensor, at(expected.outputs, i), at(expected.bounds, i)),
    }));
    const bad = copies.find(({ firstBad }) => firstBad !== null);
    const name = printTensor(at(fusion.tensors, id));
    const where = bad === undefined || copies.length === 1 ? name : `${name} of ${rankText(bad.ranks)}`;
    const elements = at(expected.bounds, i).length;
    const compared = elements - Math.max(...copies.map(({ unbounded }) => unbounded));
    const notCompared = at(expected.unbounded, i);
    // Of an empty output there is nothing to compare.
    const isChecked = compared > 0 || elements === 0;
    const failure =
      bad === undefined || bad.firstBad === null ? null : failureOf(where, bad.shape, bad.firstBad, suspect);
    return {
      check: {
        ok: failure === null && isChecked,
        largestError: largest(copies.map(({ maxError }) => maxError)),
        partOfBound: largest(copies.map(({ maxRatio }) => maxRatio)),
        elements,
        compared,
        notCompared,
      },
      failure: failure ?? (isChecked ? null : notCheckedOf(name, notCompared)),
    };
  });
}

/**
 * The checks of the first inputs, with the failures of a second run on special values: negative zero, subnormals, large
 * numbers, infinities and NaN. There it is no failure if an output has no bound at all.
 */
export function withSpecialChecks(
  checks: readonly CheckedOutput[],
  special: readonly CheckedOutput[],
): readonly CheckedOutput[] {
  return checks.map((checked, i) => {
    const { check, failure } = at(special, i);
    if (!checked.check.ok || failure?.code !== "check-failed") return checked;
    const message = `${failure.message}, on inputs with special values`;
    const { largestError, partOfBound } = check;
    return { check: { ...checked.check, ok: false, largestError, partOfBound }, failure: { ...failure, message } };
  });
}

function notCheckedOf(output: string, reason: string | null): Diagnostic {
  return {
    code: "not-checked",
    message: "no element of an output could be compared with the oracle",
    place: { kind: "tensor", text: output },
    found: `no element with an error bound: ${reason ?? "of unknown values"}`,
    expected: "at least one element with a bound",
    help: "use smaller sizes, or a reference whose result is bounded",
  };
}

/** NaN if any value is NaN. */
function largest(values: readonly number[]): number {
  return values.reduce((a, b) => Math.max(a, b), 0);
}

function rankText(ranks: readonly number[]): string {
  return `${ranks.length === 1 ? "rank" : "ranks"} ${ranks.join(", ")}`;
}

function failureOf(
  output: string,
  shape: readonly number[],
  { index, ...difference }: Difference,
  suspect: Suspect,
): Diagnostic {
  const { actual, expected, error, bound } = difference;
  return {
    code: "check-failed",
    message: "an output differs from the oracle",
    place: { kind: "tensor", text: `${output}, element [${positionOf(index, shape).join(", ")}]` },
    found: `${String(actual)} (off by ${error.toPrecision(3)})`,
    expected: `${String(expected)} (within ${bound.toPrecision(3)})`,
    help: helpFor[suspect],
  };
}

/** The index along each axis, for a row-major position. */
function positionOf(index: number, shape: readonly number[]): readonly number[] {
  let rest = index;
  return shape
    .toReversed()
    .map((extent) => {
      const position = rest % extent;
      rest = Math.floor(rest / extent);
      return position;
    })
    .toReversed();
}
