/**
 * `--check`: compares random elements of a result, spread over all rows of a device, with sums in double precision.
 * At the timed sizes, checking all elements would take hours.
 */
import { type DType, dtypes } from "../../src/numerics/dtype.ts";
import { elementsOf, storageView } from "../../src/numerics/tensor/host-tensor.ts";
import { createRandom } from "../../src/support/random.ts";
import type { Matrices } from "../../src/numerics/tensor/random-matrices.ts";
import { type Expected, expectedElement, type Layout, outputColumns, outputRows, rowAt } from "./braid/operands.ts";

export interface SampledCheck {
  /** The largest error over its element's bound. Above 1 the result is wrong. */
  readonly partOfBound: number;
  /** How many samples have a bound. Without one, nothing was checked. */
  readonly compared: number;
}

const mostSamples = 512;
/** A bound on the multiplications of one check. */
const mostTerms = 2e8;

/** Checks samples of output number `position` on a device; `output` is its bytes. */
export function checkSamples(
  layout: Layout,
  rank: number,
  position: number,
  output: Uint8Array,
  matrices: Matrices,
): SampledCheck {
  const { dtype } = matrices;
  const elements = elementsOf(dtype, storageView(dtype, aligned(output).buffer));
  const columns = outputColumns(layout);
  const rows = outputRows(layout, position, rank);
  const count = Math.max(16, Math.min(mostSamples, elements.length, Math.floor(mostTerms / termsOf(layout))));
  const random = createRandom(rank + 1);
  let partOfBound = 0;
  let compared = 0;
  for (let sample = 0; sample < count; sample++) {
    // One sample in each of `count` equal ranges of memory, so every chunk has some.
    const index = Math.min(elements.length - 1, Math.floor(((sample + random.float()) / count) * elements.length));
    const row = rowAt(rows, Math.floor(index / columns));
    const expected = expectedElement(layout, rank, row, index % columns, matrices);
    const bound = boundOf(expected, dtype);
    if (bound === Infinity) continue;
    compared++;
    const error = Math.abs(Number(elements.get(index)) - expected.value);
    const part = error === 0 ? 0 : error / bound;
    partOfBound = Math.max(partOfBound, Number.isNaN(part) ? Infinity : part);
  }
  return { partOfBound, compared };
}

function termsOf({ problem: { k, devices } }: Layout): number {
  return k * devices;
}

/**
 * Each device's summand is rounded to the dtype, and so is every partial sum along a ring. Terms are added in float32
 * (double for double), where the error of one addition is proportional to the sum so far. Infinity if a sum has so many
 * terms that a result of zeros would pass.
 */
function boundOf({ value, partials, size, terms }: Expected, dtype: DType): number {
  // A copy.
  if (terms === 0 && partials.length === 1) return 0;
  const hops = partials.reduce((sum, partial) => sum + Math.abs(partial), 0) * partials.length;
  if (!Number.isFinite(value)) return Infinity;
  const accumulation = dtype === "double" ? dtypes.double.epsilon : dtypes.float.epsilon;
  const relative = 4 * accumulation * Math.max(16, terms);
  return relative < 1 ? 2 * dtypes[dtype].epsilon * (hops + Math.abs(value)) + relative * size : Infinity;
}

function aligned(bytes: Uint8Array): Uint8Array {
  return bytes.byteOffset === 0 && bytes.length === bytes.buffer.byteLength ? bytes : bytes.slice();
}
