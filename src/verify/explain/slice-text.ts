/**
 * Names bytes of a buffer as a slice of its tensor. The box is decomposed along the tensor's strides, and recomposed to
 * check that it is the same set. Bytes that are not a box are given as byte ranges.
 */
import { dtypes } from "../../numerics/dtype.ts";
import type { PlacedBuffer } from "../../commands/buffer.ts";
import type { Program } from "../../commands/program.ts";
import { canonicalRegion, type Region } from "../../commands/region.ts";
import { contiguousStrides, type View } from "../../commands/view.ts";
import { at } from "../../support/invariant.ts";
import { spanOf } from "../check/shared-bytes.ts";
import { sameRegionRuns } from "../check/region-table.ts";
import { elementCount } from "../../numerics/tensor/host-tensor.ts";

/** Index ranges per axis, the end not included. */
type Box = readonly { readonly start: number; readonly end: number }[];

/** The slice that both regions of a buffer share. Pass the same region twice for its own slice. */
export function sliceText(program: Program, a: Region, b: Region): string {
  const buffer = at(program.buffers, a.buffer);
  const strides = stridesOf(program, buffer);
  const [first, second] = [boxOf(buffer, strides, a), a.buffer === b.buffer ? boxOf(buffer, strides, b) : null];
  if (first !== null && second !== null) {
    const box = first.map(({ start, end }, axis) => {
      const other = at(second, axis);
      return { start: Math.max(start, other.start), end: Math.min(end, other.end) };
    });
    return boxText(buffer, box);
  }
  const start = Math.max(a.offset, a.buffer === b.buffer ? b.offset : 0);
  const ends = [a, ...(a.buffer === b.buffer ? [b] : [])].map((region) => region.offset + spanOf(region));
  return `bytes ${start} to ${Math.min(...ends) - 1} of ${buffer.name}`;
}

/** Bytes `start` to `end` of a buffer. */
export function rangeText(program: Program, buffer: PlacedBuffer["id"], start: number, end: number): string {
  const region = canonicalRegion(buffer, start, [], end - start);
  return sliceText(program, region, region);
}

function boxText({ name, shape }: PlacedBuffer, box: Box): string {
  const axes = box.map(({ start, end }, axis) => {
    if (start === 0 && end === shape[axis]) return ":";
    return end === start + 1 ? String(start) : `${start}:${end}`;
  });
  return `${name}[${axes.join(", ")}]`;
}

/** Strides in elements, from a view of the whole buffer if a command has one, since memory need not be row-major. */
function stridesOf(program: Program, { id, shape, rank }: PlacedBuffer): readonly number[] {
  const whole = (view: View): boolean =>
    view.buffer === id &&
    view.offset === 0 &&
    view.shape.length === shape.length &&
    view.shape.every((n, i) => n === shape[i]);
  for (const command of at(program.ranks, rank).commands) {
    const views =
      command.kind === "copy"
        ? [command.source, command.destination]
        : command.kind === "transfer" && command.operation.kind === "collective"
          ? [command.operation.input, command.operation.output].filter((view) => view !== null)
          : [];
    const found = views.find(whole);
    if (found !== undefined) return found.strides;
    if (command.kind !== "launch") continue;
    const { inputs, outputs } = at(program.kernels, command.kernel);
    const operands = [...inputs, ...outputs];
    // Most commands have other buffers, and each finding looks through all of them.
    const refs = [...command.inputs, ...command.outputs];
    const operand = operands.find((each, i) => at(refs, i).buffer === id && whole({ ...each, ...at(refs, i) }));
    if (operand !== undefined && operand.strides.every((stride) => stride > 0)) return operand.strides;
  }
  return contiguousStrides(shape);
}

/** Null if the region is not a box of the tensor. */
function boxOf({ id, shape, dtype }: PlacedBuffer, strides: readonly number[], region: Region): Box | null {
  const { bytes } = dtypes[dtype];
  if (elementCount(shape) === 0) return null;
  const [first, last] = [region.offset, region.offset + spanOf(region) - bytes].map((byte) =>
    indexOf(byte / bytes, shape, strides),
  );
  if (first === undefined || last === undefined || first === null || last === null) return null;
  const box = first.map((start, axis) => ({ start, end: at(last, axis) + 1 }));
  if (box.some(({ start, end }) => end <= start)) return null;
  const dims = box.map(({ start, end }, axis) => ({ count: end - start, stride: at(strides, axis) * bytes }));
  return sameRegionRuns(canonicalRegion(id, region.offset, dims, bytes), region) ? box : null;
}

/** The index of an element; null if there is none. */
function indexOf(element: number, shape: readonly number[], strides: readonly number[]): readonly number[] | null {
  const index = shape.map(() => 0);
  let rest = element;
  const axes = [...shape.keys()].sort((a, b) => at(strides, b) - at(strides, a));
  for (const axis of axes) {
    if (at(shape, axis) === 1) continue;
    index[axis] = Math.floor(rest / at(strides, axis));
    rest -= at(index, axis) * at(strides, axis);
    if (at(index, axis) >= at(shape, axis)) return null;
  }
  return rest === 0 ? index : null;
}
