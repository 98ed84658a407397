/** Cuts a rank's part out of a whole row-major tensor, and puts it back, as the plan's tensors say. */
import { contiguousStrides } from "../commands/view.ts";
import { dtypes } from "../numerics/dtype.ts";
import { at } from "../support/invariant.ts";
import type { PlanTensor } from "./rank-document.ts";

/** The bytes of the rank's buffer. */
export function planShard(tensor: PlanTensor, wholeShape: readonly number[], whole: Uint8Array): Uint8Array {
  const part = new Uint8Array(tensor.bytes);
  eachElement(tensor, wholeShape, (inPart, inWhole, bytes) => {
    part.set(whole.subarray(inWhole, inWhole + bytes), inPart);
  });
  return part;
}

/** Writes the bytes of the rank's buffer into their place in the whole. */
export function putPart(tensor: PlanTensor, wholeShape: readonly number[], part: Uint8Array, whole: Uint8Array): void {
  eachElement(tensor, wholeShape, (inPart, inWhole, bytes) => {
    whole.set(part.subarray(inPart, inPart + bytes), inWhole);
  });
}

/** Visits runs of elements that lie side by side on both sides; places and `bytes` in bytes. */
function eachElement(
  { held, strides, dtype }: PlanTensor,
  wholeShape: readonly number[],
  visit: (inPart: number, inWhole: number, bytes: number) => void,
): void {
  const { bytes } = dtypes[dtype];
  const wholeStrides = contiguousStrides(wholeShape);
  const last = held.length - 1;
  const walk = (axis: number, inPart: number, inWhole: number): void => {
    if (axis > last) return visit(inPart * bytes, inWhole * bytes, bytes);
    let local = 0;
    for (const [start, stop] of at(held, axis)) {
      const [step, wholeStep] = [at(strides, axis), at(wholeStrides, axis)];
      if (axis === last && step === 1) {
        visit((inPart + local) * bytes, (inWhole + start) * bytes, (stop - start) * bytes);
        local += stop - start;
        continue;
      }
      for (let i = start; i < stop; i++, local++) walk(axis + 1, inPart + local * step, inWhole + i * wholeStep);
    }
  };
  walk(0, 0, 0);
}
