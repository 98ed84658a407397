/** Compares emulated kernels with their expected results. */
import type { UnitKernel } from "../../../../src/commands/kernel.ts";
import { at } from "../../../../src/support/invariant.ts";
import type { Random } from "../../../../src/support/random.ts";
import type { Value } from "../../../../src/numerics/tensor/host-tensor.ts";
import type { Values } from "../../../kernels/run-kernel.ts";
import { firstDifference } from "../../../kernels/values.ts";
import { type EmulatedCase, runEmulated } from "./run-emulated.ts";

export interface Expected extends EmulatedCase {
  readonly name: string;
  readonly expected: readonly Values[];
}

/** The first difference of every case, with its name. */
export function differences(cases: readonly Expected[], alignments?: readonly number[]): readonly string[] {
  const found = runEmulated(cases, alignments);
  return cases.flatMap(({ name, expected, kernel }, i) =>
    expected.flatMap((values, output) => {
      const difference = firstDifference(at(at(found, i), output), values);
      return difference === null ? [] : [`${name}, output ${output}: ${difference} in ${JSON.stringify(kernel)}`];
    }),
  );
}

/** Small whole numbers: sums and products of them are exact in every order. */
export function wholeValues(dtype: UnitKernel["values"][number]["dtype"], length: number, random: Random): Values {
  return Array.from({ length }, (): Value => {
    const value = random.integer(5) - 2;
    return dtype === "int64" ? BigInt(value) : dtype === "bool" ? Math.abs(value) % 2 : value;
  });
}
