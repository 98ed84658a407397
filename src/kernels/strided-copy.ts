/**
 * Copies a strided box of elements to another box of the same shape, in one memory. What is contiguous on both sides moves as
 * one run: whole by copyWithin if it is long, element by element if it is short, because a call then costs more than
 * the loop.
 */
import { at, invariant } from "../support/invariant.ts";
import { compileFunction } from "../support/compile-function.ts";

export interface CopyShape {
  readonly shape: readonly number[];
  readonly elementBytes: number;
  /** In elements, one per axis of `shape`. */
  readonly source: readonly number[];
  readonly destination: readonly number[];
}

/** Takes byte addresses, multiples of the element size. The boxes do not overlap. */
export type PreparedCopy = (source: number, destination: number) => void;

/** Runs shorter than this, in bytes, are copied in a loop. */
const longRun = 64;

interface Axis {
  readonly extent: number;
  /** In bytes. */
  readonly source: number;
  readonly destination: number;
}

export function prepareCopy(
  buffer: ArrayBufferLike,
  { shape, elementBytes, source, destination }: CopyShape,
): PreparedCopy {
  const axes = joinAxes(
    shape.map((extent, i) => ({
      extent,
      source: at(source, i) * elementBytes,
      destination: at(destination, i) * elementBytes,
    })),
  );
  const inner = axes.at(-1);
  const contiguous = inner !== undefined && inner.source === elementBytes && inner.destination === elementBytes;
  const run = contiguous ? inner.extent * elementBytes : elementBytes;
  const outer = contiguous ? axes.slice(0, -1) : axes;
  if (run >= longRun) return compileCopy(outer, runText(run), { bytes: new Uint8Array(buffer) });
  const words = wordsOf(buffer, elementBytes);
  const shift = Math.log2(elementBytes);
  const move = `words[to >>> ${shift}] = words[from >>> ${shift}];`;
  return compileCopy(axes, move, { words });
}

function runText(run: number): string {
  return `bytes.copyWithin(to, from, from + ${run});`;
}

/** Any typed array whose elements keep their bits when copied: floats would not have to keep a NaN's. */
function wordsOf(buffer: ArrayBufferLike, elementBytes: number): unknown {
  switch (elementBytes) {
    case 1:
      return new Uint8Array(buffer);
    case 2:
      return new Uint16Array(buffer);
    case 4:
      return new Int32Array(buffer);
    case 8:
      return new Float64Array(buffer);
    default:
      return invariant(false, "elements have 1, 2, 4 or 8 bytes", { elementBytes });
  }
}

/** Drops axes of one element and merges neighbours that step evenly on both sides; the smallest step goes inside. */
function joinAxes(axes: readonly Axis[]): readonly Axis[] {
  const ordered = axes.filter(({ extent }) => extent > 1).toSorted((a, b) => b.destination - a.destination);
  return ordered.reduce<readonly Axis[]>((joined, axis) => {
    const outer = joined.at(-1);
    const joins = outer?.source === axis.source * axis.extent && outer.destination === axis.destination * axis.extent;
    if (!joins) return [...joined, axis];
    return [...joined.slice(0, -1), { ...axis, extent: axis.extent * outer.extent }];
  }, []);
}

function compileCopy(
  axes: readonly Axis[],
  move: string,
  environment: Readonly<Record<string, unknown>>,
): PreparedCopy {
  const loops = axes.reduceRight(
    (inner, { extent, source, destination }) =>
      `for (let i = 0, outerFrom = from, outerTo = to; i < ${extent}; i++) {
const from = outerFrom + i * ${source}, to = outerTo + i * ${destination};
${inner}
}`,
    move,
  );
  return compileFunction<PreparedCopy>(["from", "to"], loops, environment);
}
