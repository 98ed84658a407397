/** Grouped contractions on the CPU: a GEMM per group, of as many rows or terms as the run gives it. */
import { dtypes } from "../../numerics/dtype.ts";
import { requireGroupEnds } from "../../numerics/sum-order.ts";
import { at } from "../../support/invariant.ts";
import type { Contraction, Groups } from "./contraction.ts";
import type { Gemm } from "./gemm.ts";
import { contractionScratchBytes } from "./widened-gemm.ts";

/** `bias` of a GEMM is the address of the ends. Throws `group-ends-invalid` when it runs. */
export function prepareGrouped(
  contraction: Contraction,
  groups: Groups,
  prepare: (contraction: Contraction) => Gemm,
  buffer: ArrayBufferLike,
): Gemm {
  const { dtype, batch, m, n, k, a, b, c } = contraction;
  const { bytes } = dtypes[dtype];
  const ofRows = groups.of === "m";
  const total = ofRows ? m : k;
  // A run has few sizes, and another run mostly other ones.
  const gemms = new Map<number, Gemm>();
  const gemmOf = (size: number): Gemm => {
    const known = gemms.get(size);
    if (known !== undefined) return known;
    const { groups: _, ...alone } = contraction;
    const made = prepare({ ...alone, batch: [], [groups.of]: size });
    if (gemms.size >= mostSizes) gemms.clear();
    gemms.set(size, made);
    return made;
  };
  const all = new Uint8Array(buffer);
  const clear = (address: number, rows: number): void => {
    for (let i = 0; i < rows; i++) {
      const row = address + i * c.row * bytes;
      if (c.column === 1) all.fill(0, row, row + n * bytes);
      else for (let j = 0; j < n; j++) all.fill(0, row + j * c.column * bytes, row + (j * c.column + 1) * bytes);
    }
  };
  const one: Gemm = (left, right, endsAt, target) => {
    const ends = readEnds(groups, buffer, endsAt);
    requireGroupEnds(ends, total);
    let start = 0;
    ends.forEach((end, group) => {
      const size = end - start;
      const step = group * groups.stride * bytes;
      const from = left + start * (ofRows ? a.row : a.column) * bytes;
      const to = target + (ofRows ? start * c.row * bytes : step);
      if (size > 0 && k > 0) gemmOf(size)(from, right + (ofRows ? step : start * b.row * bytes), 0, to);
      else clear(to, ofRows ? size : m);
      start = end;
    });
    if (ofRows) clear(target + start * c.row * bytes, m - start);
  };
  return batch.reduceRight<Gemm>(
    (inner, axis, i) => (left, right, ends, target) => {
      const step = at(groups.ends.batch, i) * dtypes[groups.ends.dtype].bytes;
      for (let j = 0; j < axis.extent; j++) {
        inner(left + j * axis.a * bytes, right + j * axis.b * bytes, ends + j * step, target + j * axis.c * bytes);
      }
    },
    one,
  );
}

const mostSizes = 256;

function readEnds({ count, ends: { dtype, stride } }: Groups, buffer: ArrayBufferLike, address: number): number[] {
  const first = address / dtypes[dtype].bytes;
  const elements = dtype === "int" ? new Int32Array(buffer) : new BigInt64Array(buffer);
  return Array.from({ length: count }, (_, group) => Number(elements[first + group * stride]));
}

/** The most that a group of any size needs: blocks of a smaller extent can be larger. */
export function groupedScratchBytes(contraction: Contraction, { of }: Groups): number {
  const sizes = [Infinity, ...blockExtents].map((most) => Math.min(contraction[of], most));
  return Math.max(...sizes.map((size) => contractionScratchBytes({ ...contraction, [of]: Math.max(1, size) })));
}

/** The extents of the largest blocks of gemm.ts and widened-gemm.ts. */
const blockExtents = [256, 512, 1024];
