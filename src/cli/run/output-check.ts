/** `--check`: compares each output of a run with the oracle's, within the oracle's error bounds. */
import type { Diagnostic } from "../../diagnostics/diagnostic.ts";
import type { FusionData } from "../../ir/fusion-data.ts";
import { printTensor } from "../../ir/print-tensor.ts";
import type { Sizes } from "../../ir/sizes.ts";
import type { Tensor } from "../../numerics/tensor/host-tensor.ts";
import { compare, type Difference } from "../../oracle/compare.ts";
import { evaluateFusion } from "../../oracle/evaluate.ts";
import { at } from "../../support/invariant.ts";
import type { OutputCopy } from "./output-copies.ts";

export interface OutputCheck {
  readonly ok: boolean;
  readonly largestError: number;
  /** The largest error over its element's bound. Above 1 the check fails. */
  readonly partOfBound: number;
}

export interface CheckedOutput {
  readonly check: OutputCheck;
  readonly failure: Diagnostic | null;
}

/**
 * One check per output, in the order of the Fusion's outputs, for the copy with the largest error. `inputs` are whole
 * tensors. `proven`: the program was verified, so a difference is a bug in Braid.
 */
export function checkOutputs(
  fusion: FusionData,
  inputs: readonly Tensor[],
  sizes: Sizes,
  outputs: readonly (readonly OutputCopy[])[],
  proven: boolean,
): readonly CheckedOutput[] {
  const expected = evaluateFusion(fusion, inputs, sizes);
  return fusion.outputs.map((id, i) => {
    const copies = at(outputs, i).map(({ tensor, ranks }) => ({
      shape: tensor.shape,
      ranks,
      ...compare(tensor, at(expected.outputs, i), at(expected.bounds, i)),
    }));
    const bad = copies.find(({ firstBad }) => firstBad !== null);
    const name = printTensor(at(fusion.tensors, id));
    const where = bad === undefined || copies.length === 1 ? name : `${name} of ${rankText(bad.ranks)}`;
    return {
      check: {
        ok: bad === undefined,
        largestError: largest(copies.map(({ maxError }) => maxError)),
        partOfBound: largest(copies.map(({ maxRatio }) => maxRatio)),
      },
      failure: bad === undefined || bad.firstBad === null ? null : failureOf(where, bad.shape, bad.firstBad, proven),
    };
  });
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
  proven: boolean,
): Diagnostic {
  const { actual, expected, error, bound } = difference;
  return {
    code: "check-failed",
    message: "an output differs from the oracle",
    place: { kind: "tensor", text: `${output}, element [${positionOf(index, shape).join(", ")}]` },
    found: `${String(actual)} (off by ${error.toPrecision(3)})`,
    expected: `${String(expected)} (within ${bound.toPrecision(3)})`,
    help: proven
      ? "this is a bug in Braid: please report the program and the command line"
      : "the program was not verified: run braid verify on it",
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
