/** Diagnostics of link, which name the host programs' statements. */
import type { Diagnostic, Place } from "../../../diagnostics/diagnostic.ts";
import { at } from "../../../support/invariant.ts";
import { counted, withArticle } from "../../../support/wording.ts";
import { type CommandBase, type CommandRef, type Origin, originText, type Collective } from "../../command.ts";
import { commonBox, sameNumbers, type View } from "../../view.ts";
import { elementCount } from "../../../numerics/tensor/host-tensor.ts";
import { allRanksOf, assembliesOf, collectives, isRooted, sideOf } from "../../collectives.ts";

/** What messages need of a rank's list, linked or not. */
interface Listed {
  readonly commands: readonly CommandBase[];
  readonly origins: readonly Origin[];
}

function statementOf(lists: readonly Listed[], { rank, command }: CommandRef): string {
  return originText(at(at(lists, rank).origins, command));
}

function placeOf(lists: readonly Listed[], ref: CommandRef): Place {
  const { stream } = at(at(lists, ref.rank).commands, ref.command);
  return { kind: "command", rank: ref.rank, stream, text: statementOf(lists, ref) };
}

export interface Mismatch {
  readonly message: string;
  /** The command that the message is about. */
  readonly at: CommandRef;
  /** The command of another rank that does not fit, if there is one. */
  readonly against: CommandRef | null;
  readonly found: string;
  readonly expected: string;
  readonly help: string;
}

/** A `transfer-mismatch` that names the statements of both ranks. */
export function mismatch(lists: readonly Listed[], problem: Mismatch): Diagnostic {
  const { against } = problem;
  return {
    code: "transfer-mismatch",
    message: problem.message,
    place: placeOf(lists, problem.at),
    found: problem.found,
    expected: problem.expected,
    help: problem.help,
    ...(against === null ? {} : { notes: [`on rank ${against.rank}: ${statementOf(lists, against)}`] }),
  };
}

// The problems between sends and their recvs, in groups or one-sided.

export type End = CommandRef & { readonly view: View };

/** Why the data of a send does not fit its recv: dtype, size, shape; null if it does. */
export function viewMismatch(lists: readonly Listed[], send: End, recv: End): Diagnostic | null {
  const differing = (what: string, textOf: (view: View) => string): Diagnostic =>
    mismatch(lists, {
      message: `a send from rank ${send.rank} and its recv on rank ${recv.rank} differ in ${what}`,
      at: recv,
      against: send,
      found: `${textOf(recv.view)} received`,
      expected: `${textOf(send.view)}, as sent`,
      help: `send and receive the same ${what}`,
    });
  if (send.view.dtype !== recv.view.dtype) return differing("dtype", ({ dtype }) => dtype);
  if (sameNumbers(send.view.shape, recv.view.shape)) return null;
  const elements = ({ shape }: View): number => elementCount(shape);
  if (elements(send.view) !== elements(recv.view))
    return differing("size", (view) => counted(elements(view), "element"));
  if (commonBox([send.view, recv.view]) !== null) return null;
  return differing("shape", ({ shape, strides }) => `shape [${shape.join(", ")}] with strides [${strides.join(", ")}]`);
}

/** Sends from one rank to another and the recvs there, if one side has more. */
interface Unmatched {
  readonly from: number;
  readonly to: number;
  readonly sends: readonly CommandRef[];
  readonly recvs: readonly CommandRef[];
  /** The scope of the count: a communicator, or peer memory. */
  readonly channel: string;
}

/** Names the first send without a recv, or the reverse. */
export function unmatched(lists: readonly Listed[], { from, to, sends, recvs, channel }: Unmatched): Diagnostic {
  const sendIsLone = sends.length > recvs.length;
  const [longer, shorter] = sendIsLone ? [sends, recvs] : [recvs, sends];
  const [what, other, otherRank] = sendIsLone ? ["send", "recv", to] : ["recv", "send", from];
  const lone = at(longer, shorter.length, "one side posts more");
  if (otherRank >= lists.length) return outsidePeer(lists, lone, what, otherRank);
  return mismatch(lists, {
    message: sendIsLone
      ? `rank ${from} sends to rank ${to}, which does not receive it`
      : `rank ${to} receives from rank ${from}, which does not send it`,
    at: lone,
    against: shorter.at(-1) ?? null,
    found: `${counted(sends.length, "send")} on rank ${from} and ${counted(recvs.length, "recv")} on rank ${to} over ${channel}`,
    expected: "as many sends as recvs",
    help: `post the ${other} on rank ${otherRank}, or remove the ${what}`,
  });
}

function outsidePeer(lists: readonly Listed[], lone: CommandRef, what: string, peer: number): Diagnostic {
  return mismatch(lists, {
    message: `the peer of a ${what} is not a rank of the run`,
    at: lone,
    against: null,
    found: `peer ${peer}`,
    expected: lists.length === 1 ? "rank 0, the only one" : `a rank from 0 to ${lists.length - 1}`,
    help: "correct the peer, or run on more devices",
  });
}

/*
 * Checks that the ranks of a collective post the same one: its type, team and root, which ranks read and write, dtypes,
 * slices and counts.
 */

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

/**
 * Why the views do not form a collective, or null if they do. `present` is the whole team in team order. In a Program of
 * one replica, the others have the same views.
 */
export function unfitViews(lists: readonly Listed[], present: readonly CollectiveUse[]): Diagnostic | null {
  const first = at(present, 0);
  const others = allRanksOf(first.operation).length / first.operation.team.length;
  const participants = others === 1 ? present : Array.from({ length: others }, () => present).flat();
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
