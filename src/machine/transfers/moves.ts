/**
 * Transfers as data movement: copies and combinations between views of equal shape, made from the table of collectives. So
 * neither the step of the machine nor a back end knows any type of collective.
 */
import { assembliesOf, type Assembly, sharesResult } from "../../commands/collectives.ts";
import type { Collective } from "../../commands/transfer.ts";
import { commonBox, sameNumbers, sameView, type View } from "../../commands/view.ts";
import type { ReductionOpType } from "../../ir/ops/op.ts";
import { at, invariant } from "../../support/invariant.ts";

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

/** Moves that depend on each other, in their order. All have one shape, so that they may be cut into slices that run apart. */
export type Chain = readonly Move[];

/** Chains that may run in any order and at the same time: none writes what another reads or writes. */
export interface Phase {
  /** Counts the phases of all transfers of a Program. */
  readonly number: number;
  readonly chains: readonly Chain[];
}

/** What makes the output of the member at `position`, given the inputs of all as they were before any output was written. */
export function movesTo(members: readonly Collective[], position: number): readonly Move[] {
  const { reduceOp } = at(members, position);
  return assembliesOf(members, position).flatMap((assembly) => moveOf(assembly, reduceOp));
}

/**
 * All moves of a collective whose members have all arrived: phases, one after the other, as chains. The in-place forms make no chain wait
 * for another: what a member's output shares with its input is either its own part of it, which its own chain alone reads,
 * or the whole, as of an Allreduce.
 *
 * The result that the members of an Allreduce share is combined once and then copied, slice by slice where all views can be
 * walked under one shape; else the copies are a phase of their own.
 */
export function collectiveChains(members: readonly Collective[]): readonly (readonly Chain[])[] {
  const first = at(members, 0);
  if (!sharesResult(first.type) || first.output === null)
    return [members.flatMap((_, position) => apart(movesTo(members, position)))];
  const sources = [{ from: 0, view: first.output }];
  const copies = members.slice(1).flatMap(({ output }) => (output === null ? [] : moveOf({ output, sources }, null)));
  const moves = [...movesTo(members, 0), ...copies];
  if (moves.length === 0) return [];
  const chain = chained(moves);
  return chain === null ? [apart(movesTo(members, 0)), apart(copies)] : [[chain]];
}

/** The copy from a send's view to its receive's. */
export function copyChains(from: number, source: View, destination: View): readonly Chain[] {
  return apart(moveOf({ output: destination, sources: [{ from, view: source }] }, null));
}

function apart(moves: readonly Move[]): readonly Chain[] {
  return moves.map((move) => [move]);
}

/** The moves under one shape; null where there is none. */
function chained(moves: readonly Move[]): Chain | null {
  const views = moves.map(({ sources, destination }) => [destination, ...sources.map(({ view }) => view)]);
  const box = sharedShape(views.flat());
  if (box === null) return null;
  let next = 0;
  return moves.map(({ op, sources }) => {
    const destination = at(box, next++);
    return { op, destination, sources: sources.map(({ member }) => ({ member, view: at(box, next++) })) };
  });
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
  const shared = sharedShape(views);
  invariant(shared !== null, "link lets only views pass that share a box", views);
  return shared;
}

function sharedShape(views: readonly View[]): readonly View[] | null {
  if (views.every(({ shape }, _, [first]) => first !== undefined && sameNumbers(shape, first.shape))) return views;
  const box = commonBox(views);
  return box === null ? null : views.map((view, i) => ({ ...view, shape: box.shape, strides: at(box.strides, i) }));
}
