/**
 * Checks that the ranks of a collective post the same one: its type, team and root, which ranks read and write, dtypes,
 * slices and counts.
 */
import type { Diagnostic } from "../../../diagnostics/diagnostic.ts";
import { at } from "../../../support/invariant.ts";
import { counted, withArticle } from "../../../support/wording.ts";
import { assembliesOf, collectives, isRooted, sideOf } from "../../collectives.ts";
import type { Collective } from "../../command.ts";
import { commonBox, sameNumbers, type View } from "../../view.ts";
import { type CommandRef, type Listed, type Mismatch, mismatch } from "./problems.ts";
import { elementCount } from "../../../numerics/tensor/storage.ts";

export type CollectiveUse = CommandRef & { readonly operation: Collective };

/** The properties that all ranks must agree on, as text. */
const agreed: { readonly [what: string]: (operation: Collective) => string } = {
  type: ({ type }) => type,
  team: ({ team }) => `[${team.join(", ")}]`,
  root: ({ root }) => (root === null ? "none" : String(root)),
  reduction: ({ reduceOp }) => reduceOp ?? "none",
};

/** How `use` differs from the collective `anchor`; null if it does not. */
export function disagreement(lists: readonly Listed[], anchor: CollectiveUse, use: CollectiveUse): Diagnostic | null {
  if (agree(use.operation, anchor.operation)) return null;
  for (const [what, textOf] of Object.entries(agreed)) {
    const [found, expected] = [textOf(use.operation), textOf(anchor.operation)];
    if (found === expected) continue;
    return mismatch(lists, {
      message: `ranks ${anchor.rank} and ${use.rank} do not agree on the ${what} of a collective`,
      at: use,
      against: anchor,
      found: `${what} ${found} on rank ${use.rank}, ${expected} on rank ${anchor.rank}`,
      expected: `the same ${what} on every rank of the team`,
      help: "post the same collectives on a communicator in the same order on all ranks",
    });
  }
  return null;
}

function agree(a: Collective, b: Collective): boolean {
  const teams = a.team === b.team || sameNumbers(a.team, b.team);
  return teams && a.type === b.type && a.root === b.root && a.reduceOp === b.reduceOp;
}

/** Why the views do not form a collective, or null if they do. `participants` is the whole team in team order. */
export function unfitViews(lists: readonly Listed[], participants: readonly CollectiveUse[]): Diagnostic | null {
  const first = at(participants, 0);
  const problem =
    badKind(first) ??
    participants.reduce<Found | null>((found, use, i) => found ?? badSides(use, i), null) ??
    badSizes(participants);
  return problem === null ? null : mismatch(lists, { against: problem.at === first ? null : first, ...problem });
}

type Found = Omit<Mismatch, "against"> & { readonly at: CollectiveUse };

function badKind(use: CollectiveUse): Found | null {
  const { type, team, root, reduceOp } = use.operation;
  const rule = collectives[type];
  const rooted = isRooted(type);
  const isRoot = root !== null && Number.isInteger(root) && root >= 0 && root < team.length;
  if (rooted !== isRoot) {
    return {
      message: rooted ? `${withArticle(type)} needs a root in its team` : `${withArticle(type)} has no root`,
      at: use,
      found: `root ${root ?? "none"} in a team of ${team.length}`,
      expected: rooted ? `a position from 0 to ${team.length - 1}` : "no root",
      help: "give the root as a position in the team",
    };
  }
  if (rule.reduces === (reduceOp !== null)) return null;
  return {
    message: rule.reduces ? `${withArticle(type)} needs a reduction` : `${withArticle(type)} has no reduction`,
    at: use,
    found: reduceOp ?? "none",
    expected: rule.reduces ? "sum, prod, max or min" : "none",
    help: "give a reduction to every collective that reduces, and to no other",
  };
}

function badSides(use: CollectiveUse, position: number): Found | null {
  const { type, root } = use.operation;
  for (const side of ["input", "output"] as const) {
    const demand = sideOf(type, side, root, position);
    const has = use.operation[side] !== null;
    if (demand === "optional" || has === (demand === "required")) continue;
    return {
      message: has
        ? `rank ${use.rank} gives an ${side} to ${withArticle(type)} that takes none from it`
        : `rank ${use.rank} gives no ${side} to ${withArticle(type)}`,
      at: use,
      found: has ? `an ${side}` : `no ${side}`,
      expected: demand === "required" ? `an ${side} at position ${position}` : `no ${side} at position ${position}`,
      help: "give each rank the input and output that the type of the collective requires",
    };
  }
  return null;
}

/** One slice of one rank's side. All slices of a collective have one dtype and one element count. */
interface SideSlice {
  readonly use: CollectiveUse;
  readonly side: "input" | "output";
  readonly view: View;
  readonly elements: number;
}

function badSizes(participants: readonly CollectiveUse[]): Found | null {
  const { type } = at(participants, 0).operation;
  const rule = collectives[type];
  const parts = {
    input: rule.splitsInput ? participants.filter(({ operation }) => operation.output !== null).length : null,
    output: rule.splitsOutput ? participants.filter(({ operation }) => operation.input !== null).length : null,
  };
  const slices: SideSlice[] = [];
  for (const use of participants) {
    for (const side of ["input", "output"] as const) {
      const view = use.operation[side];
      if (view === null) continue;
      const count = parts[side];
      if (count !== null && view.shape[0] !== count) return badParts(use, side, view, count);
      const shape = count === null ? view.shape : view.shape.slice(1);
      const strides = count === null ? view.strides : view.strides.slice(1);
      slices.push({ use, side, view: { ...view, shape, strides }, elements: elementCount(shape) });
    }
  }
  const first = at(slices, 0);
  for (const slice of slices) {
    if (slice.view.dtype !== first.view.dtype) return differing("dtype", slice, first, ({ view }) => view.dtype);
    if (slice.elements !== first.elements)
      return differing("size", slice, first, ({ elements }) => counted(elements, "element"));
  }
  if (slices.every(({ view }) => sameNumbers(view.shape, first.view.shape))) return null;
  const operations = participants.map(({ operation }) => operation);
  const aligned =
    commonBox(slices.map(({ view }) => view)) !== null || operations.every((_, i) => aligns(operations, i));
  return aligned ? null : differing("shape", at(slices, slices.length - 1), first, ({ view }) => shapeText(view));
}

/** Whether the sources of each region of the output have a common box with it. */
function aligns(operations: readonly Collective[], position: number): boolean {
  return assembliesOf(operations, position).every(
    ({ output, sources }) => commonBox([output, ...sources.map(({ view }) => view)]) !== null,
  );
}

function badParts(use: CollectiveUse, side: "input" | "output", view: View, count: number): Found {
  const { type } = use.operation;
  return {
    message: `the ${side} of ${withArticle(type)} on rank ${use.rank} does not have one slice per rank`,
    at: use,
    found: `${counted(view.shape[0] ?? 0, "slice")} along axis 0`,
    expected: `${counted(count, "slice")}, one per rank on the other side`,
    help: `give the ${side} a leading axis of ${count}`,
  };
}

function differing(what: string, slice: SideSlice, first: SideSlice, textOf: (slice: SideSlice) => string): Found {
  const { type } = slice.use.operation;
  return {
    message: `the views of ${withArticle(type)} differ in ${what}`,
    at: slice.use,
    found: `${textOf(slice)} in the ${slice.side} of rank ${slice.use.rank}`,
    expected: `${textOf(first)}, as in the ${first.side} of rank ${first.use.rank}`,
    help: `give the slices of all ranks the same ${what}`,
  };
}

function shapeText({ shape, strides }: View): string {
  return `shape [${shape.join(", ")}] with strides [${strides.join(", ")}]`;
}
