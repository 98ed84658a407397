/** Sets of indices of an axis, as runs. */
import { at } from "../support/invariant.ts";
import { isUnitAxis, type Tensor, type TensorId, withoutReductions } from "./domain.ts";
import type { FusionData } from "./fusion-data.ts";
import type { Op } from "./ops/op.ts";
import { rowOf } from "./ops/rows.ts";
import { constantValue } from "./scalar/fold.ts";
import { evaluateExtent, type Sizes } from "./sizes.ts";

/** The indices from `start` to `stop` - 1. */
export interface Run {
  readonly start: number;
  readonly stop: number;
}

/** Not empty, ascending, and joined where they touch. */
export type Runs = readonly Run[];

/** One run, or none if it would be empty. */
export function runsBetween(start: number, stop: number): Runs {
  return start < stop ? [{ start, stop }] : [];
}

/** The runs in ascending order, joined where they touch. */
export function joinedRuns(runs: Runs): Runs {
  const result: Run[] = [];
  for (const run of runs) {
    const last = result.at(-1);
    if (last?.stop === run.start) result[result.length - 1] = { start: last.start, stop: run.stop };
    else result.push(run);
  }
  return result;
}

/** The number of indices. */
export function countIn(runs: Runs): number {
  return runs.reduce((count, { start, stop }) => count + stop - start, 0);
}

/** The number of indices below `index`: the position of that index in memory if it is held. */
export function countBelow(runs: Runs, index: number): number {
  return runs.reduce((count, { start, stop }) => count + Math.max(0, Math.min(stop, index) - start), 0);
}

export function sameRuns(a: Runs, b: Runs): boolean {
  return (
    a === b || (a.length === b.length && a.every(({ start, stop }, i) => b[i]?.start === start && b[i].stop === stop))
  );
}

/** The indices in both. */
export function intersection(a: Runs, b: Runs): Runs {
  const result: Run[] = [];
  for (let i = 0, j = 0; i < a.length && j < b.length;) {
    const [one, other] = [at(a, i), at(b, j)];
    result.push(...runsBetween(Math.max(one.start, other.start), Math.min(one.stop, other.stop)));
    if (one.stop <= other.stop) i++;
    else j++;
  }
  return result;
}

/** The indices of `a` that are not in `b`. */
export function difference(a: Runs, b: Runs): Runs {
  return a.flatMap(({ start, stop }) => {
    const rest: Run[] = [];
    let from = start;
    for (const taken of b) {
      if (taken.stop <= from || taken.start >= stop) continue;
      rest.push(...runsBetween(from, taken.start));
      from = taken.stop;
    }
    return [...rest, ...runsBetween(from, stop)];
  });
}

/** The indices in positions `start` to `stop` - 1 of memory. */
export function onPositions(runs: Runs, start: number, stop: number): Runs {
  let position = 0;
  return runs.flatMap((run) => {
    const from = run.start - position;
    position += run.stop - run.start;
    return runsBetween(Math.max(run.start, from + start), Math.min(run.stop, from + stop));
  });
}

// Which elements of a tensor somebody holds, or lacks: a region has some indices of each axis, and all elements with
// these indices.

/** The indices of each axis. Empty if one of them is. */
export type IndexRegion = readonly Runs[];

export function elementsIn(region: IndexRegion): number {
  return region.reduce((count, runs) => count * countIn(runs), 1);
}

export function commonRegion(a: IndexRegion, b: IndexRegion): IndexRegion {
  return a.map((runs, axis) => intersection(runs, at(b, axis)));
}

/** The elements of `a` that are not in `b`, as regions without common elements. */
function regionsWithout(a: IndexRegion, b: IndexRegion): readonly IndexRegion[] {
  const found: IndexRegion[] = [];
  const common: Runs[] = [];
  for (const [axis, runs] of a.entries()) {
    const rest = [...common, difference(runs, at(b, axis)), ...a.slice(axis + 1)];
    if (!isEmptyRegion(rest)) found.push(rest);
    common.push(intersection(runs, at(b, axis)));
  }
  return found;
}

function isEmptyRegion(region: IndexRegion): boolean {
  return region.some((runs) => runs.length === 0);
}

/** A region, and all who hold it. */
export interface Holding<T> {
  readonly region: IndexRegion;
  readonly holders: readonly T[];
}

export function holdingsOf<T>(holders: readonly T[], heldBy: (holder: T) => IndexRegion): readonly Holding<T>[] {
  const found = new Map<string, { readonly region: IndexRegion; readonly holders: T[] }>();
  for (const holder of holders) {
    const region = heldBy(holder);
    const key = JSON.stringify(region);
    const known = found.get(key);
    if (known === undefined) found.set(key, { region, holders: [holder] });
    else known.holders.push(holder);
  }
  return [...found.values()];
}

/**
 * What each holder gives of `wanted`. The reader gives itself what it has; holders of equal copies take turns, by the
 * reader's position among the readers.
 */
export function givenTo<T>(
  reader: T,
  position: number,
  wanted: IndexRegion,
  holdings: readonly Holding<T>[],
): ReadonlyMap<T, readonly IndexRegion[]> {
  const given = new Map<T, readonly IndexRegion[]>();
  let rest: readonly IndexRegion[] = isEmptyRegion(wanted) ? [] : [wanted];
  const own = holdings.findIndex(({ holders }) => holders.includes(reader));
  const first = Math.max(0, own);
  for (let i = 0; i < holdings.length && rest.length > 0; i++) {
    const { region, holders } = at(holdings, (first + i) % holdings.length);
    const taken = rest.map((left) => commonRegion(left, region)).filter((common) => !isEmptyRegion(common));
    if (taken.length === 0) continue;
    given.set(i === 0 && own >= 0 ? reader : at(holders, position % holders.length), taken);
    rest = rest.flatMap((left) => regionsWithout(left, region));
  }
  return given;
}

// Which inputs are indices, and of how long an axis: random indices below that read what a program reads.

/**
 * By position among the inputs: the shortest extent that the input indexes, itself or through views and casts. Of an axis
 * whose end a mask leaves out, as of classes that are padded, the part before that.
 */
export function indexLimits({ tensors, ops, inputs }: FusionData, sizes: Sizes): ReadonlyMap<number, number> {
  const producers = new Map(ops.map((op) => [op.output, op]));
  const limits = new Map<TensorId, number>();
  const limit = (id: TensorId, extent: number): void => {
    limits.set(id, Math.min(extent, limits.get(id) ?? Infinity));
  };
  // The largest elements of numbers from 0 on: a start plus those is below the limit.
  const largest = new Map<TensorId, number>();
  for (const { kind, inputs: operands, output } of ops) {
    const { extent } = at(tensors, output).domain.logical[0] ?? {};
    if (kind === "Iota" && extent !== undefined) largest.set(output, evaluateExtent(extent, sizes) - 1);
    const known = rowOf({ kind }).isView ? largest.get(at(operands, 0)) : undefined;
    if (known !== undefined) largest.set(output, known);
  }
  for (const op of ops.toReversed()) {
    const own = limits.get(op.output);
    const isMoved = op.kind === "Cast" || rowOf(op).isView;
    if (own !== undefined && isMoved) limit(at(op.inputs, 0), own);
    if (own !== undefined && op.kind === "Binary" && op.op === "add") {
      op.inputs.forEach((id, i) => limit(id, Math.max(1, own - (largest.get(op.inputs[1 - i] ?? id) ?? 0))));
    }
    if (!readsIndices(op)) continue;
    const { extent } = at(withoutReductions(at(tensors, at(op.inputs, 0)).domain.logical), op.axis);
    const unmasked = unmaskedExtent(at(op.inputs, 0), op.axis, tensors, producers) ?? Infinity;
    limit(at(op.inputs, 1), Math.min(evaluateExtent(extent, sizes), unmasked));
  }
  return new Map(
    inputs.flatMap((id, i): readonly [number, number][] => {
      const own = limits.get(id);
      return own === undefined ? [] : [[i, own]];
    }),
  );
}

/** n of `where(iota < n, x, number)` along the axis; null without such a mask. */
function unmaskedExtent(
  id: TensorId,
  axis: number,
  tensors: readonly Tensor[],
  producers: ReadonlyMap<TensorId, Op>,
): number | null {
  const masked = producers.get(id);
  if (masked?.kind === "Cast") return unmaskedExtent(at(masked.inputs, 0), axis, tensors, producers);
  if (masked?.kind !== "Ternary" || masked.op !== "where" || masked.scalar?.position !== 2) return null;
  const condition = at(masked.inputs, 0);
  const axes = withoutReductions(at(tensors, condition).domain.logical);
  if (!axes.every((each, i) => isUnitAxis(each) === (i !== axis))) return null;
  let less = producers.get(condition);
  while (less !== undefined && rowOf(less).isView) less = producers.get(at(less.inputs, 0));
  if (less?.kind !== "Binary" || less.op !== "lt" || less.scalar?.position !== 1) return null;
  const counted = producers.get(at(less.inputs, 0));
  const isCount = counted?.kind === "Iota" && constantValue(counted.start) === 0 && constantValue(counted.step) === 1;
  const count = Number(less.scalar.text);
  return isCount && count >= 1 ? Math.ceil(count) : null;
}

/** Whether the op's second operand has indices along its axis of the first. */
export function readsIndices(op: Op): op is Extract<Op, { readonly kind: "IndexSelect" | "Gather" | "ScatterAdd" }> {
  return op.kind === "IndexSelect" || op.kind === "Gather" || op.kind === "ScatterAdd";
}
