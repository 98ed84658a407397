/** Copies of strided boxes: by the copy engines or by a kernel, as their plans choose. */
import type { Copy } from "../../../commands/command.ts";
import type { Operand } from "../../../commands/kernel.ts";
import type { View } from "../../../commands/view.ts";
import { stridedCopyAxes, type CopyAxis, joinCopyAxes } from "../../../kernels/strided-copy.ts";
import { dtypes } from "../../../numerics/dtype.ts";
import { at } from "../../../support/invariant.ts";
import { copyKernel } from "../kernels/plan/kernel-steps.ts";
import { alignmentOf, type AddressPlace, plus } from "./address.ts";
import type { DeviceOp, LaunchOp } from "./device-op.ts";
import { launchOf, type Planning } from "./planning.ts";

/** `crossesLink`: one side is in a peer's memory. `command` is its position in the list. */
export function copyOps(
  { source, destination, stream }: Copy,
  command: number,
  crossesLink: boolean,
  planning: Planning,
): readonly DeviceOp[] {
  const plan = planCopy(source, destination, crossesLink);
  const [from, to] = [planning.places.addressOf(source), planning.places.addressOf(destination)];
  const base = { stream, command };
  switch (plan.kind) {
    case "none":
      return [];
    case "run":
      return [{ kind: "copy", ...base, to, from, bytes: plan.bytes }];
    case "planes": {
      const { width, height, pitch, offsets } = plan;
      const pitches = { toPitch: pitch.destination, fromPitch: pitch.source };
      return offsets.map((offset) => ({
        kind: "copy2d",
        ...base,
        to: plus(to, offset.destination),
        from: plus(from, offset.source),
        ...pitches,
        width,
        height,
      }));
    }
    case "kernel":
      return [copyLaunch(base, [source, from], [destination, to], planning)];
  }
}

/** A box of elements, and where it begins. */
export type PlacedBox = readonly [Operand, AddressPlace];

/** The launch of a kernel that copies one box to another of its shape. */
export function copyLaunch(
  at: Pick<LaunchOp, "stream" | "command">,
  [source, from]: PlacedBox,
  [destination, to]: PlacedBox,
  planning: Planning,
): LaunchOp {
  const kernel = copyKernel(source, destination, ({ kind }) => alignmentOf(kind === "input" ? from : to));
  const parameters = kernel.parameters.map(({ kind }) => (kind === "input" ? from : to));
  return launchOf(planning, at, kernel, parameters);
}

// Plans the copy of a strided box: as few copy engine calls as possible (contiguous runs or pitched planes), or a
// kernel if rows are short or planes are many. Between GPUs the copy engines move long rows at the link's rate and
// leave the SMs to the GEMM. Within a GPU a kernel is as fast and takes any strides.

type CopyPlan =
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
interface Sides {
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
  const axes = joinCopyAxes(stridedCopyAxes(destination.shape, element, source.strides, destination.strides));
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
