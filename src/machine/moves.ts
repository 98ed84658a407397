/**
 * Transfers as data movement: copies and combinations between views of equal shape, made from the table of collectives. So
 * neither the step of the machine nor a back end knows any type of collective.
 */
import { assembliesOf, type Assembly, collectiveRules } from "../commands/collectives.ts";
import type { Collective, View } from "../commands/transfer.ts";
import { commonBox, sameNumbers, sameView } from "../commands/view.ts";
import type { ReductionOpType } from "../ir/ops.ts";
import { at, invariant } from "../support/invariant.ts";

/** A view on what the member at position `member` reads. */
interface MoveSource {
  readonly member: number;
  readonly view: View;
}

/** One source is a copy; several are combined in this order with `op`. All views have one shape and dtype. */
export interface Move {
  readonly op: ReductionOpType | null;
  readonly sources: readonly MoveSource[];
  readonly destination: View;
}

/** What makes the output of the member at `position`, given the inputs of all as they were before any output was written. */
export function movesTo(members: readonly Collective[], position: number): readonly Move[] {
  const { reduceOp } = at(members, position);
  return assembliesOf(members, position).flatMap((assembly) => moveOf(assembly, reduceOp));
}

/**
 * All moves of a collective whose members have all arrived, in an order that serves the in-place forms too. The result that
 * the members of an Allreduce share is combined once and then copied.
 */
export function collectiveMoves(members: readonly Collective[]): readonly Move[] {
  const first = at(members, 0);
  const rule = collectiveRules[first.type];
  const shared = rule.reduces && rule.writes === "all" && !rule.splitsInput;
  if (!shared || first.output === null) return members.flatMap((_, position) => movesTo(members, position));
  const sources = [{ from: 0, view: first.output }];
  const copies = members.slice(1).flatMap(({ output }) => (output === null ? [] : moveOf({ output, sources }, null)));
  return [...movesTo(members, 0), ...copies];
}

/** The copy from a send's view to its receive's. */
export function copyMove(from: number, source: View, destination: View): readonly Move[] {
  return moveOf({ output: destination, sources: [{ from, view: source }] }, null);
}

/** Brings the views under one shape. Nothing is left to do where one source already is the destination. */
function moveOf({ output, sources }: Assembly, op: ReductionOpType | null): readonly Move[] {
  const [destination, ...views] = underOneShape([output, ...sources.map(({ view }) => view)]);
  invariant(destination !== undefined && (views.length === 1 || op !== null), "several sources are combined", sources);
  if (views.length === 1 && sameView(at(views, 0), destination)) return [];
  const moved = sources.map(({ from }, i) => ({ member: from, view: at(views, i) }));
  return [{ op: views.length === 1 ? null : op, sources: moved, destination }];
}

function underOneShape(views: readonly View[]): readonly View[] {
  const { shape } = at(views, 0);
  if (views.every((view) => sameNumbers(view.shape, shape))) return views;
  const box = commonBox(views);
  invariant(box !== null, "link lets only views pass that share a box", views);
  return views.map((view, i) => ({ ...view, shape: box.shape, strides: at(box.strides, i) }));
}
