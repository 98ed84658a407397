/** `--input` and `--expect`: the arguments that a framework called a model with, and the results that it computed. */
import path from "node:path";
import type { Signature } from "../../compile/lower-all.ts";
import type { InputFile } from "../../compile/options/run.ts";
import { type Diagnostic, fail } from "../../diagnostics/diagnostic.ts";
import type { OutputCopy } from "../../executor/output-copies.ts";
import type { ImportedModel } from "../../import/model.ts";
import type { Sizes } from "../../ir/sizes.ts";
import { byDType, type DType, dtypes } from "../../numerics/dtype.ts";
import type { Tensor } from "../../numerics/tensor/host-tensor.ts";
import { elementsOf, positionOf } from "../../numerics/tensor/storage.ts";
import { at } from "../../support/invariant.ts";
import { namedTensors, namesFor } from "../tensor-files/named-tensors.ts";

/** The files that have all arguments of a call, and the others: those of a framework use its names and dtypes. */
export function wholeFiles(
  given: readonly InputFile[],
  model: ImportedModel | null,
): readonly [whole: readonly string[], single: readonly InputFile[]] {
  const isWhole = ({ name, file }: InputFile): boolean => {
    const extension = path.extname(file);
    return name === null && (extension === ".npz" || (extension === ".safetensors" && model !== null));
  };
  return [given.filter(isWhole).map(({ file }) => file), given.filter((each) => !isWhole(each))];
}

/**
 * By position, with the constants of the model; the last of `files` that has an input gives it. Throws `option-value`
 * where they lack an input.
 */
export async function inputsFrom(
  files: readonly string[],
  signature: Signature,
  model: ImportedModel | null,
  sizes: Sizes,
  given: ReadonlyMap<number, Tensor>,
): Promise<ReadonlyMap<number, Tensor>> {
  const constants = (model?.inputs ?? []).flatMap(({ value }, i): [number, Tensor][] =>
    value === null ? [] : [[i, value]],
  );
  const own = new Map([...constants, ...given]);
  if (files.length === 0) return own;
  const names = namesFor(signature, model, "inputs");
  const found = new Map<number, Tensor>();
  for (const file of files) {
    const read = await namedTensors({ flag: "--input", file }, names, signature, signature.inputs, sizes);
    for (const [i, tensor] of read.entries()) if (tensor !== null) found.set(i, tensor);
  }
  const missing = names.find((_, i) => !found.has(i) && !own.has(i));
  if (missing !== undefined) {
    fail("option-value", `the file of --input has no tensor for input ${at(missing, 0)}`, {
      place: { kind: "option", text: `--input ${files.join(" --input ")}` },
      found: "none of its names",
      expected: missing.join(", "),
      help: "save all arguments in order: np.savez(path, in0=x, in1=w), or take single ones with --input NAME=FILE",
    });
  }
  return new Map([...found, ...own]);
}

/** What the file of `--expect` holds for an output; null where it has none. */
export interface ExpectedOutput {
  /** The output's name in messages. */
  readonly name: string;
  readonly tensor: Tensor | null;
}

/** Throws `option-value` for a file that has none of the outputs. */
export async function expectedOutputs(
  file: string,
  signature: Signature,
  model: ImportedModel | null,
  sizes: Sizes,
): Promise<readonly ExpectedOutput[]> {
  const names = namesFor(signature, model, "outputs");
  const found = await namedTensors({ flag: "--expect", file }, names, signature, signature.outputs, sizes);
  if (found.every((tensor) => tensor === null)) {
    fail("option-value", "the file of --expect has none of the outputs", {
      place: { kind: "option", text: `--expect ${file}` },
      found: "none of their names",
      expected: names.flat().join(", "),
      help: "save all results in order: np.savez(path, out0=y)",
    });
  }
  return found.map((tensor, i) => ({ name: names[i]?.[1] ?? at(at(names, i), 0), tensor }));
}

/**
 * How many round-offs of the dtype an element may be off, relative to its size and to that of the whole output. Orders
 * of sums differ between a framework and Braid, and 16-bit floats round after every op.
 */
const accepted: { readonly [D in DType]: number } = byDType(({ family, packed }) =>
  family !== "float" ? 0 : packed ? 16 : 256,
);

/** A row of the report. */
export interface Expectation {
  readonly name: string;
  /** Null where the file has no such output. */
  readonly largestError: number | null;
  readonly failure: Diagnostic | null;
}

export function compareExpected(
  expected: readonly ExpectedOutput[],
  copies: readonly (readonly OutputCopy[])[],
): readonly Expectation[] {
  return expected.map(({ name, tensor }, i): Expectation => {
    if (tensor === null) return { name, largestError: null, failure: null };
    const each = at(copies, i).map((copy) => worstOf(copy.tensor, tensor));
    const worst = each.reduce((a, b) => (b.ratio > a.ratio ? b : a));
    return { name, largestError: worst.error, failure: worst.ratio > 1 ? failureOf(name, tensor, worst) : null };
  });
}

interface Worst {
  readonly index: number;
  readonly actual: number;
  readonly expected: number;
  readonly error: number;
  readonly bound: number;
  /** The error over its bound; infinite for one of an exact dtype, and where only one of the two is NaN. */
  readonly ratio: number;
}

function worstOf(actual: Tensor, expected: Tensor): Worst {
  const [own, given] = [elementsOf(actual.dtype, actual.data), elementsOf(expected.dtype, expected.data)];
  let squares = 0;
  for (let i = 0; i < given.length; i++) {
    const element = Number(given.get(i));
    if (Number.isFinite(element)) squares += element * element;
  }
  const typical = given.length === 0 ? 0 : Math.sqrt(squares / given.length);
  const unit = accepted[actual.dtype] * dtypes[actual.dtype].epsilon;
  let worst: Worst = { index: 0, actual: 0, expected: 0, error: 0, bound: 0, ratio: 0 };
  for (let i = 0; i < given.length; i++) {
    const [a, e] = [Number(own.get(i)), Number(given.get(i))];
    if (Object.is(a, e) || a === e) continue;
    const [error, bound] = [Math.abs(a - e), unit * (Math.abs(e) + typical)];
    const ratio = Number.isFinite(error) && bound > 0 ? error / bound : Infinity;
    if (ratio > worst.ratio) worst = { index: i, actual: a, expected: e, error, bound, ratio };
  }
  return worst;
}

function failureOf(name: string, { shape }: Tensor, { index, actual, expected, error, bound }: Worst): Diagnostic {
  return {
    code: "check-failed",
    message: "an output differs from the file of --expect",
    place: { kind: "tensor", text: `${name}, element [${positionOf(index, shape).join(", ")}]` },
    found: `${String(actual)} (off by ${error.toPrecision(3)})`,
    expected: `${String(expected)} (within ${bound.toPrecision(3)})`,
    help: "pass the results of the same model with the same arguments; if they are, please report the model",
  };
}
