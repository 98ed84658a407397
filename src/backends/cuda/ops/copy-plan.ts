/**
 * Plans the copy of a strided box: as few copy engine calls as possible (contiguous runs or pitched planes), or a
 * kernel if rows are short or planes are many. Between GPUs the copy engines move long rows at the link's rate and
 * leave the SMs to the GEMM. Within a GPU a kernel is as fast and takes any strides.
 */
import type { View } from "../../../commands/view.ts";
import { type CopyAxis, copyAxes, joinAxes } from "../../../kernels/copy-axes.ts";
import { dtypes } from "../../../numerics/dtype.ts";
import { at } from "../../../support/invariant.ts";

export type CopyPlan =
  | { readonly kind: "none" }
  /** One run of bytes. */
  | { readonly kind: "run"; readonly bytes: number }
  /** Rows of `width` bytes, `height` of them, at equal pitches; once per offset. */
  | {
      readonly kind: "planes";
      readonly width: number;
      readonly height: number;
      readonly pitch: Sides;
      readonly offsets: readonly Sides[];
    }
  | { readonly kind: "kernel" };

/** In bytes. */
export interface Sides {
  readonly source: number;
  readonly destination: number;
}

/** A kernel copies rows shorter than this many bytes faster than the copy engine. */
const shortestRow = 512;
const mostPlanes = 16;
/** The largest pitch that every driver accepts. */
const largestPitch = 2 ** 31 - 1;

/** `crossesLink`: one side is in a peer's memory. */
export function planCopy(source: View, destination: View, crossesLink: boolean): CopyPlan {
  if (destination.shape.includes(0)) return { kind: "none" };
  const element = dtypes[source.dtype].bytes;
  const axes = joinAxes(copyAxes(destination.shape, element, source.strides, destination.strides));
  const inner = axes.at(-1);
  if (inner === undefined) return { kind: "run", bytes: element };
  const dense = inner.source === element && inner.destination === element;
  if (axes.length === 1 && dense) return { kind: "run", bytes: inner.extent * element };
  if (!crossesLink || !dense) return { kind: "kernel" };
  const width = inner.extent * element;
  const rows = at(axes, axes.length - 2);
  const outer = axes.slice(0, -2);
  const planes = outer.reduce((count, { extent }) => count * extent, 1);
  const pitched = [rows.source, rows.destination].every((pitch) => pitch >= width && pitch <= largestPitch);
  if (width < shortestRow || planes > mostPlanes || !pitched) return { kind: "kernel" };
  const pitch = { source: rows.source, destination: rows.destination };
  return { kind: "planes", width, height: rows.extent, pitch, offsets: offsetsOver(outer) };
}

function offsetsOver(axes: readonly CopyAxis[]): readonly Sides[] {
  return axes.reduce<readonly Sides[]>(
    (offsets, { extent, source, destination }) =>
      offsets.flatMap((offset) =>
        Array.from({ length: extent }, (_, i) => ({
          source: offset.source + i * source,
          destination: offset.destination + i * destination,
        })),
      ),
    [{ source: 0, destination: 0 }],
  );
}
