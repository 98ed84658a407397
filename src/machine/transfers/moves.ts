/**
 * Transfers as data movement: copies and reductions between views of equal shape, derived from the table of
 * collectives. The machine's step and the back ends therefore need no code per type of collective.
 */
import { assembliesOf, type Assembly, sharesResult } from "../../commands/collectives.ts";
import type { Collective } from "../../commands/command.ts";
import { commonBox, sameNumbers, sameView, type View } from "../../commands/view.ts";
import type { ReductionOpType } from "../../ir/ops/op.ts";
import { at, invariant } from "../../support/invariant.ts";

/** A view of the input of the participant at position `from`. */
interface MoveSource {
  readonly from: number;
  readonly view: View;
}

/** One source is a copy; several are reduced in this order with `op`. All views have one shape and dtype. */
export interface Move {
  readonly op: ReductionOpType | null;
  readonly sources: readonly MoveSource[];
  readonly destination: View;
}

/**
 * Moves that depend on each other, in order. All have one shape, so that a chain may be cut into slices that run
 * independently.
 */
export type MoveChain = readonly Move[];

/** Chains that may run in any order and concurrently: none writes bytes that another reads or writes. */
export interface MovePhase {
  /** The number among the phases of all transfers of a Program. */
  readonly number: number;
  readonly chains: readonly MoveChain[];
}

/**
 * The moves that make the output of the participant at `position` from the inputs as they were before any output was
 * written.
 */
export function movesTo(participants: readonly Collective[], position: number): readonly Move[] {
  const { reduceOp } = at(participants, position);
  return assembliesOf(participants, position).flatMap((assembly) => moveOf(assembly, reduceOp));
}

/**
 * All moves of a collective after all participants have arrived: phases in order, each a set of chains. The in-place
 * forms make no chain wait for another. The bytes that a participant's output shares with its input are either its own
 * slice, which only its own chain reads, or the whole, as in an Allreduce.
 *
 * The shared result of an Allreduce is reduced once and then copied, slice by slice if one shape can index all views.
 * Otherwise the copies are a separate phase.
 */
export function collectiveChains(participants: readonly Collective[]): readonly (readonly MoveChain[])[] {
  const first = at(participants, 0);
  if (!sharesResult(first.type) || first.output === null)
    return [participants.flatMap((_, position) => apart(movesTo(participants, position)))];
  const sources = [{ from: 0, view: first.output }];
  const copies = participants
    .slice(1)
    .flatMap(({ output }) => (output === null ? [] : moveOf({ output, sources }, null)));
  const moves = [...movesTo(participants, 0), ...copies];
  if (moves.length === 0) return [];
  const chain = chained(moves);
  return chain === null ? [apart(movesTo(participants, 0)), apart(copies)] : [[chain]];
}

/** The copy from a send's view to its receive's. */
export function copyChains(from: number, source: View, destination: View): readonly MoveChain[] {
  return apart(moveOf({ output: destination, sources: [{ from, view: source }] }, null));
}

function apart(moves: readonly Move[]): readonly MoveChain[] {
  return moves.map((move) => [move]);
}

/** The moves under one common shape; null if there is none. */
function chained(moves: readonly Move[]): MoveChain | null {
  const views = moves.map(({ sources, destination }) => [destination, ...sources.map(({ view }) => view)]);
  const box = sharedShape(views.flat());
  if (box === null) return null;
  let next = 0;
  return moves.map(({ op, sources }) => {
    const destination = at(box, next++);
    return { op, destination, sources: sources.map(({ from }) => ({ from, view: at(box, next++) })) };
  });
}

/** Brings the views under one shape. Returns no move if the only source is the destination. */
function moveOf({ output, sources }: Assembly, op: ReductionOpType | null): readonly Move[] {
  const [destination, ...views] = underOneShape([output, ...sources.map(({ view }) => view)]);
  invariant(destination !== undefined && (views.length === 1 || op !== null), "several sources are combined", sources);
  if (views.length === 1 && sameView(at(views, 0), destination)) return [];
  const moved = sources.map(({ from }, i) => ({ from, view: at(views, i) }));
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
