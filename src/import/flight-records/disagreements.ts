/** Where the ranks of a group first issue different collectives under one number, or a send meets another recv. */
import { at, pushTo } from "../../support/invariant.ts";
import { recordedElements, rowOfOp } from "./collective-rows.ts";
import type { Issued, TorchRank } from "./issued.ts";
import { type GroupCollectives, sidesOf, type Transfers } from "./peers.ts";
import type { RecordedShape, TorchEntry } from "./torch-record.ts";
import { elementCount } from "../../numerics/tensor/host-tensor.ts";

/** What ranks may disagree on, in the order of looking. */
export type Aspect = "op" | "dtype" | "elements" | "shape";

export interface Disagreement {
  readonly number: number;
  readonly aspect: Aspect;
  /** The ranks by what they have issued, most ranks first. */
  readonly sides: readonly (readonly Issued[])[];
  /** The elements of all inputs and of all outputs, where these differ. */
  readonly totals: { readonly inputs: number; readonly outputs: number } | null;
  /** How the later collectives of a side fit those of the first; null if they do not. */
  readonly shift: Shift | null;
}

/** A rank left a collective out, has one more than the others, or issues two in another order. */
export interface Shift {
  readonly kind: "left out" | "one more" | "swapped";
  readonly ranks: readonly number[];
}

/** The first of a group that the library sees, and the first before it of shapes alone, which it does not see. */
export function firstDisagreements(group: GroupCollectives): readonly Disagreement[] {
  let shape: Disagreement | null = null;
  for (const number of group.byNumber.keys()) {
    const found = disagreementOf(number, sidesOf(group, number), group);
    if (found === null) continue;
    if (found.aspect !== "shape") return shape === null ? [found] : [found, shape];
    shape ??= found;
  }
  return shape === null ? [] : [shape];
}

function disagreementOf(number: number, all: readonly Issued[], group: GroupCollectives): Disagreement | null {
  for (const aspect of ["op", "dtype", "elements", "shape"] as const) {
    const sides = sidesBy(all, (each) => each.ops.map((op) => signature(op, aspect)).join("; "));
    if (sides.length > 1)
      return { number, aspect, sides, totals: null, shift: aspect === "shape" ? null : shiftOf(sides, group) };
    if (aspect !== "elements") continue;
    const totals = wrongTotals(all, group.group.ranks.length);
    if (totals !== null) return { number, aspect, sides, totals, shift: null };
  }
  return null;
}

function sidesBy(all: readonly Issued[], textOf: (each: Issued) => string): readonly (readonly Issued[])[] {
  const sides = new Map<string, Issued[]>();
  for (const each of all) {
    const text = textOf(each);
    pushTo(sides, text, each);
  }
  return [...sides.values()].toSorted((a, b) => b.length - a.length);
}

function signature(op: TorchEntry, aspect: Aspect): string {
  const { alike: sides, isExchange } = rowOfOp(op);
  switch (aspect) {
    case "op":
      return op.op;
    case "dtype":
      // A rank may have nothing to send or to receive.
      if (isExchange === true) return [...new Set([...op.inputs, ...op.outputs].map(({ dtype }) => dtype))].join(" ");
      return sides.map((side) => [...new Set(op[side].map(({ dtype }) => dtype))].join(" ")).join("|");
    case "elements":
      return sides.map((side) => recordedElements(op, side)).join("|");
    case "shape":
      return sides.map((side) => op[side].map(recordedShapeText).join(" ")).join("|");
  }
}

function wrongTotals(all: readonly Issued[], members: number): Disagreement["totals"] {
  const first = all[0];
  for (const [i, op] of (first?.ops ?? []).entries()) {
    const { whole, isExchange } = rowOfOp(op);
    const totals = { inputs: 0, outputs: 0 };
    for (const { ops } of isExchange === true ? all : all.slice(0, 1)) {
      totals.inputs += recordedElements(at(ops, i), "inputs");
      totals.outputs += recordedElements(at(ops, i), "outputs");
    }
    if (isExchange === true && all.length === members && totals.inputs !== totals.outputs) return totals;
    if (whole === "outputs" && totals.outputs !== members * totals.inputs) return totals;
    if (whole === "inputs" && totals.inputs !== members * totals.outputs) return totals;
  }
  return null;
}

/** Fewer would be a coincidence. */
const leastAlike = 2;

function shiftOf(sides: readonly (readonly Issued[])[], group: GroupCollectives): Shift | null {
  const [usual, other] = [at(at(sides, 0), 0), at(at(sides, 1), 0)];
  const ranks = at(sides, 1).map(({ record }) => record.rank);
  const seriesOf = ({ record, number }: Issued): readonly string[] =>
    [...group.byNumber].flatMap(([each, of]) => {
      const issued = each < number ? undefined : of.get(record.rank);
      return issued === undefined ? [] : [issued.ops.map((op) => `${op.op} ${signature(op, "elements")}`).join("; ")];
    });
  const [a, b] = [seriesOf(usual), seriesOf(other)];
  const fits = (first: readonly string[], second: readonly string[]): boolean => {
    const count = Math.min(first.length, second.length);
    return count >= leastAlike && first.slice(0, count).every((text, i) => text === second[i]);
  };
  if (a[0] !== undefined && a[0] === b[1] && a[1] === b[0]) return { kind: "swapped", ranks };
  if (fits(a.slice(1), b)) return { kind: "left out", ranks };
  if (fits(a, b.slice(1))) return { kind: "one more", ranks };
  return null;
}

/** A send and the recv that it meets, where they do not fit. */
export interface PairMismatch {
  readonly send: { readonly issued: Issued; readonly op: TorchEntry };
  readonly recv: { readonly issued: Issued; readonly op: TorchEntry };
}

/** The first between each two ranks of a group. */
export function pairMismatches(ranks: ReadonlyMap<number, TorchRank>, { peersOf }: Transfers): readonly PairMismatch[] {
  const found = new Map<string, PairMismatch>();
  for (const { issued } of ranks.values())
    for (const each of issued) {
      if (!each.isPointToPoint) continue;
      const ops = each.ops.filter(({ peers }) => peers !== null);
      for (const [i, peer] of peersOf(each).entries()) {
        const op = at(ops, i);
        if (op.op !== "send" || peer.kind !== "issued") continue;
        const key = `${each.queue}: ${each.record.rank} ${peer.rank}`;
        const [sent, received] = [countsText(op.inputs), countsText(peer.op.outputs)];
        if (sent !== received && !found.has(key)) found.set(key, { send: { issued: each, op }, recv: peer });
      }
    }
  return [...found.values()];
}

function countsText(tensors: readonly RecordedShape[]): string {
  return tensors.map(({ dtype, sizes }) => `${dtype} ${elementCount(sizes)}`).join(" ");
}

export function recordedShapeText({ dtype, sizes }: RecordedShape): string {
  return `${dtype === "" ? "" : `${dtype} `}[${sizes.join(", ")}]`;
}
