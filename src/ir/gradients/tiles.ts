/**
 * Slices that cut a tensor in parts, as `split` makes them: its cotangent is the cotangents of the parts, one after the
 * other, rather than their sum with zeros around each.
 */
import type { FusionData } from "../fusion-data.ts";
import type { Op, SliceOp } from "../ops/op.ts";
import { type TensorId, withoutReductions } from "../domain.ts";
import { isWholeRange } from "../ops/kinds/views/slice.ts";
import { constantValue } from "../scalar/fold.ts";
import { at } from "../../support/invariant.ts";
import type { Region } from "./regions.ts";

export interface Tiles {
  /** The axis that is cut. */
  readonly axis: number;
  /** In order of their ranges. */
  readonly slices: readonly SliceOp[];
  /** The first one among the ops: when the sweep reaches it, all parts have their cotangents. */
  readonly first: SliceOp;
}

/** The tiles of each slice that is one of them. Slices of compositions, which have closed forms, are none. */
export function tilesOf(
  { ops, tensors }: FusionData,
  regions: ReadonlyMap<TensorId, readonly Region[]>,
): ReadonlyMap<Op, Tiles> {
  const composed = new Set([...regions.values()].flatMap((own) => own.flatMap(({ made }) => made)));
  const byInput = new Map<number, SliceOp[]>();
  for (const op of ops) {
    if (op.kind !== "Slice") continue;
    const source = at(op.inputs, 0);
    const list = byInput.get(source);
    if (list) list.push(op);
    else byInput.set(source, [op]);
  }
  const tiles = new Map<Op, Tiles>();
  for (const slices of byInput.values()) {
    const [first] = slices;
    if (first === undefined || slices.length < 2 || slices.some(({ output }) => composed.has(output))) continue;
    const axes = withoutReductions(at(tensors, at(first.inputs, 0)).domain.logical);
    const axis = first.ranges.findIndex((range, i) => !isWholeRange(range, at(axes, i)));
    const cutsOnly = (op: SliceOp): boolean =>
      op.ranges.every((range, i) => (i === axis ? (range.step ?? 1) === 1 : isWholeRange(range, at(axes, i))));
    if (axis < 0 || !slices.every(cutsOnly)) continue;
    const bounds = slices.map((op) => {
      const { start, stop } = at(op.ranges, axis);
      return { op, start: constantValue(start), stop: constantValue(stop) };
    });
    // Bounds that are known only at run time may leave gaps.
    if (bounds.some(({ start, stop }) => start === null || stop === null)) continue;
    const ordered = bounds.toSorted((a, b) => (a.start ?? 0) - (b.start ?? 0));
    const extent = constantValue(at(axes, axis).extent);
    const tile = ordered.every(({ start }, i) => start === (i === 0 ? 0 : at(ordered, i - 1).stop));
    if (!tile || extent === null || at(ordered, ordered.length - 1).stop !== extent) continue;
    const group: Tiles = { axis, slices: ordered.map(({ op }) => op), first };
    for (const op of slices) tiles.set(op, group);
  }
  return tiles;
}
