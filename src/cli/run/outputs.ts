/** The report on a run's outputs: fingerprints, copies that differ, and the result of `--check`. */
import { createHash } from "node:crypto";
import type { Signature } from "../../compile/lower-all.ts";
import type { Diagnostic } from "../../diagnostics/diagnostic.ts";
import type { OutputCopy } from "../../executor/output-copies.ts";
import type { TensorId } from "../../ir/domain.ts";
import type { FusionData } from "../../ir/fusion-data.ts";
import { nameOf } from "../../ir/origin.ts";
import { printTensor } from "../../ir/print-tensor.ts";
import { shapeOf, type Sizes } from "../../ir/sizes.ts";
import { dtypes } from "../../numerics/dtype.ts";
import { type Tensor, tensorBytes, elementsOf, positionOf } from "../../numerics/tensor/host-tensor.ts";
import {
  areBoundsWide,
  compare,
  compareNorms,
  type Difference,
  doZerosPass,
  inDouble,
  type NormComparison,
  toDouble,
} from "../../oracle/value.ts";
import { evaluateFusion, evaluateValues, type OnOp } from "../../oracle/evaluate.ts";
import { sampledRows, sampleRows } from "../../oracle/sample/rows.ts";
import { type Sample, sampleTensor, wholePosition, wholeSample } from "../../oracle/sample/sample.ts";
import type { Arithmetic } from "../../oracle/tolerance.ts";
import { at } from "../../support/invariant.ts";
import { createRandom } from "../../support/random.ts";
import { namesOfTensor } from "../tensor-files/tensor-names.ts";
import type { GradientCheck } from "./gradient-check.ts";

export interface OutputResult {
  /** The printed name: `T2`. */
  readonly name: string;
  /** The name that the program gave it with `named`. */
  readonly named: string | null;
  readonly dtype: Tensor["dtype"];
  readonly shape: readonly number[];
  /** Equal for equal bits: the first 16 hexadecimal digits of the SHA-256 of the elements' bytes. */
  readonly fingerprint: string;
  /** Copies on other devices with different bits; compared with --check and --interleaving. */
  readonly unlike: readonly Unlike[];
  /** Null unless --check was given. */
  readonly check: OutputCheck | null;
}

export interface Unlike {
  readonly ranks: readonly number[];
  readonly fingerprint: string;
  /** The largest difference of an element from the first copy: 0 for the sign of a zero, or the bits of a NaN. */
  readonly apart: number;
}

/** `checks`: null without --check. */
export function outputResults(
  { tensors, outputs }: Signature,
  copies: readonly (readonly OutputCopy[])[],
  checks: readonly CheckedOutput[] | null,
): readonly OutputResult[] {
  return copies.map((copiesHere, i) => {
    const { tensor } = at(copiesHere, 0);
    const [own = "", ...others] = copiesHere.map((copy) => fingerprint(copy.tensor));
    return {
      name: `T${at(outputs, i)}`,
      named: nameOf(at(tensors, at(outputs, i))),
      dtype: tensor.dtype,
      shape: tensor.shape,
      fingerprint: own,
      unlike: others.flatMap((other, k): readonly Unlike[] => {
        const copy = at(copiesHere, k + 1);
        if (other === own) return [];
        const { maxError } = compare(copy.tensor, tensor, new Float64Array(tensor.data.length));
        return [{ ranks: copy.ranks, fingerprint: other, apart: maxError }];
      }),
      check: checks === null ? null : at(checks, i).check,
    };
  });
}

/** The first copy of each output, by its name. */
export function outputsByName(
  { tensors, outputs }: Signature,
  copies: readonly (readonly OutputCopy[])[],
): ReadonlyMap<string, Tensor> {
  return new Map(outputs.map((id, i) => [at(namesOfTensor(at(tensors, id)), 0), at(at(copies, i), 0).tensor]));
}

/** Equal for equal bits. */
export function fingerprint(tensor: Tensor): string {
  return createHash("sha256").update(tensorBytes(tensor)).digest("hex").slice(0, 16);
}

// `--check`: compares each output of a run with the oracle's, within the oracle's error bounds. Where these are too wide
// to say much, the output as a whole is compared besides, by the norm of its errors.

export interface OutputCheck {
  /** Whether elements were compared, and no error exceeds its bound. */
  readonly ok: boolean;
  readonly largestError: number;
  /** The largest error over its element's bound. Above 1 the check fails. */
  readonly partOfBound: number;
  /** How many elements were looked at. */
  readonly elements: number;
  /** How many rows of a large output were looked at; absent if all were. */
  readonly rows?: { readonly compared: number; readonly of: number };
  /** How many elements have a bound and were compared. */
  readonly compared: number;
  /** What the check cannot tell from a result that was never computed; absent if zeros would fail. */
  readonly trivial?: Trivial;
  /** Why no element was compared on special values; absent if some were. */
  readonly specialNotCompared?: string;
  /** Why the others have none; null if all were compared. */
  readonly notCompared: string | null;
  /** The comparison by norm; absent where the bounds say enough. */
  readonly norm?: NormComparison;
  /** The op of the output whose indices are outside of their axis, and how many; absent if all are inside. */
  readonly outside?: string;
}

/**
 * empty: there are no elements. zeros, NaN: the oracle has nothing else; infinite: nothing that is finite. small: elements
 * are 0 within the bounds, and within the norm's limit.
 */
export type Trivial = "empty" | "zeros" | "NaN" | "infinite" | "small";

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

/** What a check may depend on beside the program and its inputs. */
interface CheckSetting {
  readonly arithmetic?: Arithmetic;
  /** Whether inputs have special values, with which norms say nothing. */
  readonly special?: boolean;
  /** Of the rows of large outputs that are compared; null for all rows. */
  readonly rowSeed?: number | null;
  readonly onOp?: OnOp;
}

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
  { arithmetic, special = false, rowSeed = null, onOp }: CheckSetting = {},
): readonly CheckedOutput[] {
  const random = rowSeed === null ? null : createRandom(rowSeed);
  const samples = fusion.outputs.map((id): Sample => {
    const shape = shapeOf(at(fusion.tensors, id), sizes);
    return random === null ? wholeSample(shape) : sampleRows(shape, random);
  });
  const expected = evaluateFusion(fusion, inputs, sizes, arithmetic, samples, onOp);
  const wide = expected.outputs.map((output, i) => !special && areBoundsWide(output, at(expected.bounds, i)));
  const exact = wide.includes(true)
    ? evaluateValues(inDouble(fusion), inputs.map(toDouble), sizes, samples, onOp)
    : null;
  const sampled = outputs.map((copies, i) =>
    copies.map(({ tensor, ranks }) => ({
      tensor: sampleTensor(tensor, at(samples, i)),
      shape: tensor.shape,
      ranks,
    })),
  );
  const normOf = (i: number): NormComparison | null => {
    if (exact === null || !at(wide, i)) return null;
    const norms = at(sampled, i).map(({ tensor }) => compareNorms(tensor, at(expected.outputs, i), at(exact, i)));
    return norms.reduce((worst, norm) => (norm !== null && norm.error >= (worst?.error ?? 0) ? norm : worst), null);
  };
  const ordered = orderedFloats(fusion);
  return fusion.outputs.map((id, i) => {
    const copies = at(sampled, i).map(({ tensor, shape, ranks }) => ({
      shape,
      ranks,
      ...compare(tensor, at(expected.outputs, i), at(expected.bounds, i)),
    }));
    const bad = copies.find(({ firstBad }) => firstBad !== null);
    const name = printTensor(at(fusion.tensors, id));
    const where = bad === undefined || copies.length === 1 ? name : `${name} of ${rankText(bad.ranks)}`;
    const elements = at(expected.bounds, i).length;
    const compared = elements - Math.max(...copies.map(({ unbounded }) => unbounded));
    const notCompared = at(expected.unbounded, i);
    const outside = at(expected.outside, i);
    // Of an empty output there is nothing to compare.
    const norm = normOf(i);
    const isChecked = compared > 0 || elements === 0 || norm !== null;
    const failure =
      bad === undefined || bad.firstBad === null
        ? normFailureOf(name, norm, suspect, ordered)
        : failureOf(where, bad.shape, inWhole(bad.firstBad, at(samples, i), bad.shape), suspect);
    const rows = sampledRows(at(samples, i), at(copies, 0).shape);
    const trivial = trivialOf(at(expected.outputs, i), at(expected.bounds, i), norm);
    return {
      check: {
        ok: failure === null && isChecked,
        largestError: largest(copies.map(({ maxError }) => maxError)),
        partOfBound: largest(copies.map(({ maxRatio }) => maxRatio)),
        elements,
        ...(rows === null ? {} : { rows }),
        compared,
        notCompared,
        ...(trivial === null ? {} : { trivial }),
        ...(norm === null ? {} : { norm }),
        ...(outside === null ? {} : { outside }),
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
    if (!checked.check.ok || failure === null) return checked;
    if (failure.code !== "check-failed") {
      const specialNotCompared = check.notCompared ?? "of unknown values";
      return { ...checked, check: { ...checked.check, specialNotCompared } };
    }
    const message = `${failure.message}, on inputs with special values`;
    const { largestError, partOfBound } = check;
    return { check: { ...checked.check, ok: false, largestError, partOfBound }, failure: { ...failure, message } };
  });
}

function trivialOf(expected: Tensor, bounds: Float64Array, norm: NormComparison | null): Trivial | null {
  const elements = elementsOf(expected.dtype, expected.data);
  if (elements.length === 0) return "empty";
  const isAll = (is: (element: number) => boolean): boolean => bounds.every((_, i) => is(Number(elements.get(i))));
  if (isAll((element) => element === 0)) return "zeros";
  if (isAll(Number.isNaN)) return "NaN";
  if (isAll((element) => !Number.isFinite(element))) return "infinite";
  return doZerosPass(expected, bounds) && norm?.zerosPass !== false ? "small" : null;
}

/** A gradient that is not the slope of its function fails, though the oracle computes the same. */
export function withGradientChecks(
  checks: readonly CheckedOutput[],
  outputs: readonly TensorId[],
  gradients: readonly GradientCheck[],
): readonly CheckedOutput[] {
  const wrong = new Set(gradients.flatMap(({ gradient, failure }) => (failure === null ? [] : [gradient])));
  return checks.map((checked, i) =>
    wrong.has(at(outputs, i)) ? { ...checked, check: { ...checked.check, ok: false } } : checked,
  );
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

/** With its place in the whole output. */
function inWhole(difference: Difference, sample: Sample, shape: readonly number[]): Difference {
  return { ...difference, index: wholePosition(difference.index, sample, shape) };
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

/** Computed floats that the program orders: where a router weighs two experts nearly alike, a token may go to either. */
function orderedFloats({ ops, tensors, inputs }: FusionData): string | null {
  for (const op of ops) {
    const [source] = op.inputs;
    if (op.kind !== "Argsort" || source === undefined || inputs.includes(source)) continue;
    const tensor = at(tensors, source);
    if (dtypes[tensor.dtype].family === "float") return nameOf(tensor) ?? `T${tensor.id}`;
  }
  return null;
}

/** Null if the output passes. `ordered`: numbers on whose order the program depends. */
function normFailureOf(
  output: string,
  norm: NormComparison | null,
  suspect: Suspect,
  ordered: string | null,
): Diagnostic | null {
  if (norm === null || norm.error <= norm.limit) return null;
  return {
    code: "check-failed",
    message: "an output as a whole differs from the oracle",
    place: { kind: "tensor", text: output },
    found: `a relative error of ${norm.error.toPrecision(3)} in norm`,
    expected: `at most ${norm.limit.toPrecision(3)}: the bounds of the elements say too little`,
    help:
      ordered === null
        ? helpFor[suspect]
        : `rounding may order nearly equal elements of ${ordered} otherwise: check the program in float`,
  };
}
