/** `--check`: each output of a run against the oracle's, within the oracle's error bounds. */
import type { Diagnostic } from "../diagnostics/diagnostic.ts";
import type { FusionData } from "../ir/fusion-data.ts";
import { printTensor } from "../ir/print-tensor.ts";
import type { Sizes } from "../ir/sizes.ts";
import type { Tensor } from "../numerics/host-tensor.ts";
import { compare, type Difference } from "../oracle/compare.ts";
import { evaluateFusion } from "../oracle/evaluate.ts";
import { at } from "../support/invariant.ts";

export interface OutputCheck {
  readonly ok: boolean;
  readonly largestError: number;
  /** The largest error as a part of what is allowed for its element; above 1 the check fails. */
  readonly partOfBound: number;
}

export interface CheckedOutput {
  readonly check: OutputCheck;
  readonly failure: Diagnostic | null;
}

/** In the order of the Fusion's outputs. `inputs` and `outputs` are whole tensors. */
export function checkOutputs(
  fusion: FusionData,
  inputs: readonly Tensor[],
  sizes: Sizes,
  outputs: readonly Tensor[],
): readonly CheckedOutput[] {
  const expected = evaluateFusion(fusion, inputs, sizes);
  return fusion.outputs.map((id, i) => {
    const actual = at(outputs, i);
    const { maxError, maxRatio, firstBad } = compare(actual, at(expected.outputs, i), at(expected.bounds, i));
    return {
      check: { ok: firstBad === null, largestError: maxError, partOfBound: maxRatio },
      failure: firstBad === null ? null : failureOf(printTensor(at(fusion.tensors, id)), actual.shape, firstBad),
    };
  });
}

function failureOf(output: string, shape: readonly number[], { index, ...difference }: Difference): Diagnostic {
  const { actual, expected, error, bound } = difference;
  return {
    code: "check-failed",
    message: "an output differs from the oracle",
    place: { kind: "tensor", text: `${output}, element [${positionOf(index, shape).join(", ")}]` },
    found: `${String(actual)} (off by ${error.toPrecision(3)})`,
    expected: `${String(expected)} (within ${bound.toPrecision(3)})`,
    help: "this is a bug in Braid: please report the program and the command line",
  };
}

/** The index along each axis of the element at a row-major position. */
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
