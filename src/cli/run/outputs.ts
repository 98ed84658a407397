/** The report on a run's outputs: fingerprints, copies that differ, and the result of `--check`. */
import { createHash } from "node:crypto";
import type { Signature } from "../../compile/lower-all.ts";
import { nameOf } from "../../ir/origin.ts";
import { type Tensor, tensorBytes } from "../../numerics/tensor/host-tensor.ts";
import { at } from "../../support/invariant.ts";
import { compare } from "../../oracle/compare.ts";
import type { CheckedOutput, OutputCheck } from "./output-check.ts";
import type { OutputCopy } from "../../executor/output-copies.ts";
import { namesOfTensor } from "../tensor-files/tensor-names.ts";

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
