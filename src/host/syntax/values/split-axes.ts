/**
 * Split axes in dumps of nvFuser's FusionExecutorCache path, which prints both parts of an axis and not the axis:
 *
 *   T0_g_float[istreamIdx12{3}, iS13{( ceilDiv(i0, 3) )}, iS1{i2}]      logical domain: an axis of i0, iS1
 *
 * The parts have consecutive numbers; a device's swizzle numbers the outer one last. A tensor that a loop computes, or
 * a view of one chunk, has the inner part in its logical domain, since a chunk is all that it holds.
 */
import type { IterDomain, IterDomainId, TensorDomain, Transform } from "../../../ir/domain.ts";
import { foldMul, isConstant } from "../../../ir/scalar/fold.ts";
import { makeId } from "../../../support/invariant.ts";
import { transformsTitle } from "../text/source.ts";

/** What of a container tells its split axes. */
export interface SplitReading {
  /**
   * Parts of constant extents have at least this number. Parts are numbered after all logical axes: no lower than the
   * first part whose extent rounds up, and after the missing number of the first axis that was split.
   */
  readonly first: number;
  /** The indices of the loops around the statement that is being read. */
  readonly loops: readonly string[];
  /** The next free number of an axis. */
  next: number;
}

const otherPath =
  /\b(?:iS\d{1,9}\{\( ceilDiv\(|ShardByStream\(|CollectivePermute \d|LaunchKernel\(|ALLOCATE\(mem_type=)/u;
const roundedNumber = /\biS(\d{1,9})\{\( ceilDiv\(/gu;
const axisNumber = /\b[irb](?:S|deviceIdx\.[a-z]|[Ss]tream(?:Idx)?)(\d{1,9})\{/gu;

/**
 * Null for a container of the MultiDeviceExecutor path, which splits no axes, and for one with a section of transforms,
 * which names all split axes.
 */
export function createSplitReading(text: string, loops: readonly string[]): SplitReading | null {
  if (!otherPath.test(text) || text.includes(`\n${transformsTitle}`)) return null;
  const numbers = new Set([...text.matchAll(axisNumber)].map(([, number]) => Number(number)));
  let [missing, rounded, next] = [0, Infinity, 0];
  while (numbers.has(missing)) missing++;
  for (const [, number] of text.matchAll(roundedNumber)) rounded = Math.min(rounded, Number(number) - 1);
  for (const number of numbers) next = Math.max(next, number + 1);
  return { first: Math.max(missing + 1, Number.isFinite(rounded) ? rounded : 0), loops, next };
}

export interface SplitAxis {
  readonly outer: IterDomain;
  readonly inner: IterDomain;
  readonly isSwizzled: boolean;
}

/** The parts of split axes among the printed ones. */
export function splitAxes(loop: readonly IterDomain[], first: SplitReading["first"]): readonly SplitAxis[] {
  const splits: SplitAxis[] = [];
  for (const outer of loop) {
    if (outer.parallelType === "Serial" || outer.iterType !== "iteration") continue;
    for (const [distance, isSwizzled] of [
      [1, false],
      [-1, true],
    ] as const) {
      const inner = loop.find(({ id }) => id === outer.id + distance);
      if (inner === undefined || splits.some((split) => split.inner === inner)) continue;
      if (!isInner(inner, outer, first)) continue;
      splits.push({ outer, inner, isSwizzled });
      break;
    }
  }
  return splits;
}

/** Whether the axes are parts of one. An extent that rounds up says so, else their numbers do. */
function isInner(inner: IterDomain, outer: IterDomain, first: number): boolean {
  const { extent, iterType, parallelType } = inner;
  if (iterType !== "iteration" || parallelType !== "Serial" || outer.extent.kind !== "constant") return false;
  if (extent.kind === "binary") return extent.op === "ceilDiv" && isConstant(extent.rhs, outer.extent.value);
  return extent.kind === "constant" && Math.min(inner.id, outer.id) >= first;
}

/** The domain of a tensor with split axes; null if none is split. */
export function splitDomain(loop: readonly IterDomain[], reading: SplitReading): TensorDomain | null {
  const splits = splitAxes(loop, reading.first);
  if (splits.length === 0) return null;
  const isChunk = reading.loops.length > 0;
  const transforms: Transform[] = [];
  const outers = new Set(splits.map(({ outer }) => outer));
  const logical: IterDomain[] = [];
  for (const axis of loop) {
    if (axis.iterType === "reduction" || axis.parallelType !== "Serial") continue;
    const split = splits.find(({ inner }) => inner === axis);
    logical.push(
      split === undefined || (isChunk && split.outer.parallelType === "Stream")
        ? axis
        : joined(split, transforms, reading),
    );
  }
  // A whole axis of devices: partial results come last, others by their number.
  for (const axis of loop) {
    if (axis.parallelType === "Serial" || axis.iterType === "reduction" || outers.has(axis)) continue;
    const isPartial = loop.some(({ id, iterType }) => id === axis.id + 1 && iterType === "reduction");
    const place = isPartial ? -1 : logical.findIndex(({ id }) => id > axis.id);
    logical.splice(place < 0 ? logical.length : place, 0, axis);
  }
  logical.push(...loop.filter(({ iterType }) => iterType === "reduction"));
  return { logical, transforms, loop, allocation: null };
}

/** The axis that was split, under a number that no other axis has. */
function joined({ outer, inner }: SplitAxis, transforms: Transform[], reading: SplitReading): IterDomain {
  const id = makeId<IterDomainId>(reading.next++);
  const factor = outer.extent.kind === "constant" ? outer.extent.value : 1;
  const extent =
    inner.extent.kind === "binary" && inner.extent.op === "ceilDiv"
      ? inner.extent.lhs
      : foldMul(outer.extent, inner.extent);
  transforms.push({ kind: "split", input: id, outer: outer.id, inner: inner.id, factor, innerSplit: false });
  return { id, extent, iterType: "iteration", parallelType: "Serial" };
}
