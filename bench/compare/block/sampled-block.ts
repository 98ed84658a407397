/**
 * Checks of the outputs of a large block by samples: the norm of their errors, relative to the norm of their right
 * values, is at most twice that of PyTorch's block in the same dtype.
 */
import { indicesOn, layoutOfShape } from "../../../src/record/local-layout.ts";
import { contiguousStrides } from "../../../src/commands/view.ts";
import type { Runs } from "../../../src/ir/runs.ts";
import { type Tensor as IrTensor, withoutReductions } from "../../../src/ir/domain.ts";
import { elementsOf, storageView } from "../../../src/numerics/tensor/host-tensor.ts";
import { at } from "../../../src/support/invariant.ts";
import { createRandom } from "../../../src/support/random.ts";

/** An element of a device's part, in its buffer and in the whole tensor. */
export interface Sampled {
  readonly local: readonly number[];
  readonly whole: readonly number[];
}

const sampleCount = 512;

/** Random elements of a rank's part of a tensor of this whole shape. */
export function samplesOf(tensor: IrTensor, shape: readonly number[], rank: number): Sampled {
  const layout = layoutOfShape(tensor, shape, rank);
  const strides = contiguousStrides(shape);
  const runs = withoutReductions(tensor.domain.logical).map((axis, i) => indicesOn(tensor, axis, at(shape, i), rank));
  const random = createRandom(rank + 1);
  const picked = Array.from({ length: sampleCount }, () =>
    layout.shape.map((extent) => Math.floor(random.float() * extent)),
  );
  const offset = (index: readonly number[], of: readonly number[]): number =>
    index.reduce((sum, place, i) => sum + place * at(of, i), 0);
  return {
    local: picked.map((index) => offset(index, layout.strides)),
    whole: picked.map((index) =>
      offset(
        index.map((place, i) => nthOf(at(runs, i), place)),
        strides,
      ),
    ),
  };
}

/** The index at a place among the held ones. */
function nthOf(runs: Runs, place: number): number {
  let rest = place;
  for (const { start, stop } of runs) {
    if (rest < stop - start) return start + rest;
    rest -= stop - start;
  }
  return NaN;
}

export function elementsAt(tensor: IrTensor, bytes: Uint8Array, places: readonly number[]): readonly number[] {
  const aligned = bytes.byteOffset === 0 && bytes.length === bytes.buffer.byteLength ? bytes : bytes.slice();
  const elements = elementsOf(tensor.dtype, storageView(tensor.dtype, aligned.buffer));
  return places.map((place) => Number(elements.get(place)));
}

/** Infinity for a result that is not a number. */
export function relativeError(found: readonly number[], wanted: readonly number[]): number {
  const norm = (values: readonly number[]): number => Math.sqrt(values.reduce((sum, value) => sum + value ** 2, 0));
  const error = norm(found.map((value, i) => value - at(wanted, i))) / norm(wanted);
  return Number.isNaN(error) ? Infinity : error;
}
