/**
 * How an axis is cut: into parts, outermost first. Parts are the one vocabulary for splits of axes over devices and
 * chunks; they follow from the transforms of a domain, which the API and dumps have.
 *
 *   [i{8} split outer 2 on DIDx]                DIDx 2 by 4, Serial 4 by 1        device d holds 4d .. 4d+3
 *   [i{8} split outer 2, inner 2 on DIDx]       Serial 2 by 4, DIDx 2 by 2, ...   device d holds 2d, 2d+1, 4+2d, 5+2d
 *   [i{7} split outer 3 on DIDx]                DIDx 3 by 3, Serial 3 by 1        0 1 2 | 3 4 5 | 6
 *   [i{5} split outer 4 on DIDx]                DIDx 4 by 2, Serial 2 by 1        0 1 | 2 3 | 4 |
 *
 * The index of an element is the sum of its indices in the parts, each times the stride of the part. Inner parts address
 * only indices below the stride of the part outside of them. Indices beyond the extent do not exist, so that later parts
 * are shorter or empty. Neighbouring parts of no type are one.
 */
import { at, invariant } from "../support/invariant.ts";
import { type DIDType, isDID, type IterDomain, type ParallelType, type TensorDomain } from "./domain.ts";
import { joinedRuns, type Runs, runsBetween, countIn } from "./runs.ts";
import { constantValue, foldCeilDiv, foldDiv, foldMul, foldProduct, isConstant, sameScalar } from "./scalar/fold.ts";
import { constant, type Scalar } from "./scalar/scalar.ts";

/** `E` is a symbolic extent or a size. */
export interface Part<E = Scalar> {
  /** The number of its indices. */
  readonly extent: E;
  /** How far apart on the axis two neighbouring indices are. */
  readonly stride: E;
  readonly type: ParallelType;
}

/** An axis and its parts. */
export interface CutAxis<E = Scalar> {
  readonly extent: E;
  readonly parts: readonly Part<E>[];
}

const one = constant(1);

/** The axes of the loop domain that a logical axis is split into, outermost first, with the parallel type of each. */
export function loopAxesOf(domain: TensorDomain, axis: IterDomain): readonly (Part & Pick<IterDomain, "id">)[] {
  const typeOf = (id: IterDomain["id"]): ParallelType => typeIn(domain, id) ?? "Serial";
  let axes: readonly (Part & Pick<IterDomain, "id">)[] = [
    { id: axis.id, extent: axis.extent, stride: one, type: typeIn(domain, axis.id) ?? axis.parallelType },
  ];
  for (const split of domain.transforms) {
    if (split.kind !== "split") continue;
    const position = axes.findIndex(({ id }) => id === split.input);
    const whole = axes[position];
    if (whole === undefined) continue;
    const factor = constant(split.factor);
    const rest = foldCeilDiv(whole.extent, factor);
    const [outer, inner] = split.innerSplit ? [rest, factor] : [factor, rest];
    axes = axes.toSpliced(
      position,
      1,
      { id: split.outer, extent: outer, stride: foldMul(whole.stride, inner), type: typeOf(split.outer) },
      { id: split.inner, extent: inner, stride: whole.stride, type: typeOf(split.inner) },
    );
  }
  return axes;
}

function typeIn({ loop }: TensorDomain, id: IterDomain["id"]): ParallelType | undefined {
  return loop.find((axis) => axis.id === id)?.parallelType;
}

/** The logical axis that a loop axis is, or is a part of; null for an axis made by merge. */
export function logicalAxisOf(domain: TensorDomain, { id }: Pick<IterDomain, "id">): IterDomain | null {
  return domain.logical.find((axis) => loopAxesOf(domain, axis).some((part) => part.id === id)) ?? null;
}

/** A logical axis and its parts. */
export function cutOf(domain: TensorDomain, axis: IterDomain): CutAxis {
  const { extent } = axis;
  // Fast path: most axes have no parts.
  if (!domain.transforms.some((each) => each.kind === "split" && each.input === axis.id))
    return wholeAxis(extent, typeIn(domain, axis.id) ?? axis.parallelType);
  return { extent, parts: withoutNeighbours(extent, loopAxesOf(domain, axis)) };
}

/** The axis with the given size, and its parts. */
export function sizedCut(domain: TensorDomain, axis: IterDomain, size: number): CutAxis<number> {
  return numbersOf(cutOf(domain, { ...axis, extent: constant(size) }));
}

/** The axis, whose extent is a number. */
export function numbersOf({ extent, parts }: CutAxis): CutAxis<number> {
  const valueOf = (scalar: Scalar): number => {
    const value = constantValue(scalar);
    invariant(value !== null, "an extent is a number", { scalar });
    return value;
  };
  return {
    extent: valueOf(extent),
    parts: parts.map((part) => ({ extent: valueOf(part.extent), stride: valueOf(part.stride), type: part.type })),
  };
}

/**
 * Joins neighbouring parts of no type, where the inner one divides the outer one evenly. A part of no type has only the
 * indices that exist.
 */
function withoutNeighbours(extent: Scalar, parts: readonly Part[]): readonly Part[] {
  const made: Part[] = [];
  for (const { extent: count, stride, type } of parts) {
    const last = made.at(-1);
    const isJoined = type === "Serial" && last?.type === "Serial" && divides(stride, last.stride);
    if (isJoined) made.pop();
    const length = made.at(-1)?.stride ?? extent;
    const existing = foldCeilDiv(length, stride);
    const isKnown = type === "Serial" && constantValue(stride) !== 0 && existing.kind === "constant";
    made.push({ extent: isJoined || isKnown ? existing : count, stride, type });
  }
  return made;
}

function divides(stride: Scalar, by: Scalar): boolean {
  const [inner, outer] = [constantValue(stride), constantValue(by)];
  return inner === 1 || (inner !== null && outer !== null && outer % inner === 0);
}

/** The axis with the types that `keeps` accepts alone. */
export function withTypes(cut: CutAxis, keeps: (type: ParallelType) => boolean): CutAxis {
  const { extent, parts } = cut;
  const isKept = ({ type }: Part): boolean => type === "Serial" || keeps(type);
  // Passes ask for each axis many times, and mostly for types that it has.
  if (parts.every(isKept)) return cut;
  const typed = parts.map((part): Part => (isKept(part) ? part : { ...part, type: "Serial" }));
  return { extent, parts: withoutNeighbours(extent, typed) };
}

/** The axis without the parts that `drops` accepts, which have one index each. */
export function withoutUnitParts({ extent, parts }: CutAxis, drops: (part: Part) => boolean): CutAxis {
  const kept = parts.filter((part) => !drops(part));
  return kept.length === 0 ? wholeAxis(extent) : { extent, parts: withoutNeighbours(extent, kept) };
}

/** An axis that nothing cuts. */
export function wholeAxis(extent: Scalar, type: ParallelType = "Serial"): CutAxis {
  return { extent, parts: [{ extent, stride: one, type }] };
}

export function isCut({ parts }: CutAxis): boolean {
  return parts.some(({ type }) => type !== "Serial");
}

/**
 * The parts of both on one axis: parts of no type are cut as the other has it. Null if parts with types cross, or if both
 * have a type.
 */
export function overlay(a: CutAxis, b: CutAxis): CutAxis | null {
  if (a.parts.some(({ type }) => type !== "Serial" && b.parts.some((part) => part.type === type))) return null;
  const [x, y] = [[...a.parts], [...b.parts]];
  const made: Part[] = [];
  for (let [p, q] = [x[0], y[0]]; p !== undefined && q !== undefined; [p, q] = [x[0], y[0]]) {
    if (sameScalar(p.stride, q.stride)) {
      if (p.type !== "Serial" && q.type !== "Serial") return null;
      made.push(q.type === "Serial" ? p : q);
      x.shift();
      y.shift();
      continue;
    }
    const [outer, inner] = divides(q.stride, p.stride) ? [x, y] : [y, x];
    const [first, cut] = [at(outer, 0), at(inner, 0)];
    if (cut.type !== "Serial" || !divides(cut.stride, first.stride)) return null;
    made.push(first);
    outer.shift();
    inner[0] = { ...cut, extent: foldCeilDiv(first.stride, cut.stride) };
  }
  return { extent: a.extent, parts: withoutNeighbours(a.extent, [...made, ...x, ...y]) };
}

/** An axis of a loop domain, or the split that makes two of it. */
export type SplitTree = { readonly extent: Scalar } & (
  | { readonly kind: "axis"; readonly type: ParallelType }
  | {
      readonly kind: "split";
      readonly factor: number;
      readonly innerSplit: boolean;
      readonly outer: SplitTree;
      readonly inner: SplitTree;
    }
);

/**
 * The splits that make the parts, each of one part off the rest wherever such a split makes it. Null if there are none.
 * `unit` is the stride of the innermost part.
 */
export function splitsOf({ extent, parts }: CutAxis, unit: Scalar = one): SplitTree | null {
  const [first] = parts;
  if (first !== undefined && parts.length === 1) return oneAxis(extent, first);
  for (let count = 1; count < parts.length; count++) {
    const [before, after] = [parts.slice(0, count), parts.slice(count)];
    const { stride } = at(before, count - 1);
    const length = foldDiv(stride, unit);
    const product = foldProduct(before.map((part) => part.extent));
    for (const outerExtent of outerExtents(product, foldCeilDiv(extent, length))) {
      const split = splitInto(extent, outerExtent, length);
      const outer = split === null ? null : splitsOf({ extent: outerExtent, parts: before }, stride);
      const inner = outer === null ? null : splitsOf({ extent: length, parts: after }, unit);
      if (split !== null && outer !== null && inner !== null) return { kind: "split", extent, ...split, outer, inner };
    }
  }
  return null;
}

/** An axis with one part, which may have more indices than the axis: then those beyond it do not exist. */
function oneAxis(extent: Scalar, part: Part): SplitTree | null {
  const { type } = part;
  if (type === "Serial" || sameScalar(extent, part.extent)) return { kind: "axis", extent, type };
  const count = constantValue(part.extent);
  if (count === null || !isConstant(foldCeilDiv(extent, part.extent), 1)) return null;
  const outer: SplitTree = { kind: "axis", extent: part.extent, type };
  const inner: SplitTree = { kind: "axis", extent: one, type: "Serial" };
  return { kind: "split", extent, factor: count, innerSplit: false, outer, inner };
}

/** As many indices as the outer parts have together, or as exist. Of few, uneven splits may leave any number less. */
function outerExtents(product: Scalar, existing: Scalar): readonly Scalar[] {
  const most = constantValue(product) ?? 0;
  const fewer = most > 64 ? [existing] : Array.from({ length: most }, (_, i) => constant(most - i));
  return [product, ...fewer];
}

/** The split that cuts `count` parts of `stride` off an axis; null if none does. */
function splitInto(
  extent: Scalar,
  count: Scalar,
  stride: Scalar,
): { readonly factor: number; readonly innerSplit: boolean } | null {
  const [outer, inner] = [constantValue(count), constantValue(stride)];
  if (outer !== null && sameScalar(foldCeilDiv(extent, count), stride)) return { factor: outer, innerSplit: false };
  if (inner !== null && sameScalar(foldCeilDiv(extent, stride), count)) return { factor: inner, innerSplit: true };
  return null;
}

/** The axis cut in the same way with another extent. */
export function rescaled({ extent, parts }: CutAxis, to: Scalar): CutAxis {
  if (sameScalar(extent, to)) return { extent, parts };
  let [from, length] = [extent, to];
  const made = parts.map((part, i): Part => {
    if (i === parts.length - 1) return { ...part, extent: length };
    const isOuter = splitInto(from, part.extent, part.stride)?.innerSplit === false;
    const stride = isOuter ? foldCeilDiv(length, part.extent) : part.stride;
    const own = { ...part, stride, extent: isOuter ? part.extent : foldCeilDiv(length, stride) };
    [from, length] = [part.stride, stride];
    return own;
  });
  return { extent: to, parts: made };
}

/** A type on the whole axis gives each index to a device or a chunk, as a split into as many parts does. */
export function inParts({ extent, parts }: CutAxis): CutAxis {
  const [first] = parts;
  if (first === undefined || parts.length > 1 || first.type === "Serial" || constantValue(extent) === null)
    return { extent, parts };
  return { extent, parts: [first, { extent: one, stride: one, type: "Serial" }] };
}

/** Whether the last part has no type, and those before it divide the extent evenly. A symbolic one is divided by 1. */
export function dividesEvenly({ extent, parts }: CutAxis): boolean {
  let length = extent;
  return parts.every(({ extent: count, stride, type }, i) => {
    const [own, whole] = [constantValue(count), constantValue(length)];
    length = stride;
    if (i === parts.length - 1) return type === "Serial";
    return own === 1 || (own !== null && whole !== null && whole % own === 0);
  });
}

/** Whether the parts together have as many indices as the axis, as far as extents are numbers. */
export function isEven({ extent, parts }: CutAxis): boolean {
  return constantValue(extent) === null || sameScalar(foldProduct(parts.map((part) => part.extent)), extent);
}

/** The index of a part that is held; null if all of them are. */
export type CoordinateOf = (type: ParallelType) => number | null;

/** Everything of every part but those with a DID type, of which the device holds the given index. */
export function onDevice(coordinate: (type: DIDType) => number): CoordinateOf {
  return (type) => (isDID(type) ? coordinate(type) : null);
}

/** The indices of the axis that lie in the given parts. */
export function heldRuns({ extent, parts }: CutAxis<number>, coordinateOf: CoordinateOf): Runs {
  const [part, ...inner] = parts;
  if (part === undefined) return runsBetween(0, extent);
  const held = coordinateOf(part.type);
  const [start, stop] = held === null ? [0, part.extent] : [held, held + 1];
  const runs = heldRuns({ extent: part.stride, parts: inner }, coordinateOf);
  // All of the part's indices, so that the inner ones follow each other.
  if (countIn(runs) === part.stride) return runsBetween(start * part.stride, Math.min(stop * part.stride, extent));
  const last = Math.min(stop, Math.ceil(extent / part.stride));
  return joinedRuns(
    Array.from({ length: Math.max(0, last - start) }, (_, i) => {
      const from = (start + i) * part.stride;
      return runs.flatMap((run) => runsBetween(from + run.start, Math.min(from + run.stop, extent)));
    }).flat(),
  );
}

/** Which index of part `position` the index of the axis lies in, and the first index after it that may lie in another. */
export function indexInPart(
  { extent, parts }: CutAxis<number>,
  position: number,
  index: number,
): { readonly held: number; readonly end: number } {
  const { stride } = at(parts, position);
  const starts = parts
    .slice(0, position)
    .reduce((start, part) => start + Math.floor((index - start) / part.stride) * part.stride, 0);
  const limit = position === 0 ? extent : starts + at(parts, position - 1).stride;
  const held = Math.floor((index - starts) / stride);
  return { held, end: Math.min(starts + (held + 1) * stride, limit) };
}
