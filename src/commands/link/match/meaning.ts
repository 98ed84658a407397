/**
 * What ranks mean by a transfer, beyond its shapes: the statement that posts it, and the tensor and slice on each side.
 * Inputs and outputs of the program are the same tensors on all ranks, by position. Other tensors have only names, and
 * ranks with texts of their own may use one name for two tensors, so a difference in names is a warning.
 */
import type { CommandRef } from "../../command.ts";
import type { Diagnostic } from "../../../diagnostics/diagnostic.ts";
import { at } from "../../../support/invariant.ts";
import type { Buffer } from "../../buffer.ts";
import { collectives } from "../../collectives.ts";
import type { CommandList } from "../../command-list.ts";
import { regionOf } from "../../region.ts";
import { sameNumbers, type View } from "../../view.ts";
import { type CollectiveUse, type End, type Mismatch, mismatch } from "./problems.ts";

/** The lists of all ranks, and their buffers numbered over all ranks. */
export interface Meanings {
  readonly lists: readonly CommandList[];
  readonly buffers: readonly Buffer[];
}

export function meaningsOf(lists: readonly CommandList[]): Meanings {
  return { lists, buffers: lists.flatMap(({ buffers }) => buffers) };
}

/** `unknown`: tensors that are no inputs or outputs have different names. */
interface Difference {
  readonly kind: "tensor" | "unknown" | "slice";
  readonly side: "input" | "output";
  readonly views: readonly [View, View];
}

/**
 * Whether `use` means another collective than `anchor`, which it is matched with. `others` are the collectives of the
 * rank of `use` on the communicator. Null if it is the same, as far as known.
 */
export function otherMeaning(
  meanings: Meanings,
  anchor: CollectiveUse,
  use: CollectiveUse,
  others: readonly CollectiveUse[],
): Diagnostic | null {
  const difference = differenceOf(meanings, anchor, use);
  const isSame = sameStatement(meanings, anchor, use);
  if (isSame && difference === null) return null;
  const isMeant = (other: CollectiveUse): boolean =>
    other !== use &&
    differenceOf(meanings, anchor, other) === null &&
    (sameStatement(meanings, anchor, other) || (difference !== null && isArgument(meanings, anchor)));
  if (difference?.kind === "tensor" || (!isSame && others.some(isMeant))) {
    return mismatch(meanings.lists, {
      message: `ranks ${anchor.rank} and ${use.rank} mean different collectives`,
      ...contrast(meanings, anchor, use, difference),
      help: "post the same collectives on a communicator in the same order on all ranks",
    });
  }
  if (difference === null) return null;
  const warning = mismatch(meanings.lists, {
    message: `ranks ${anchor.rank} and ${use.rank} may mean different collectives`,
    ...contrast(meanings, anchor, use, difference),
    help: "if they are the same, give them one name and slice on all ranks; otherwise correct the order",
  });
  return { ...warning, code: "transfer-unclear", severity: "warning" };
}

/** The first difference that is certain, otherwise the first. */
function differenceOf(meanings: Meanings, a: CollectiveUse, b: CollectiveUse): Difference | null {
  const { splitsInput, splitsOutput } = collectives[a.operation.type];
  let first: Difference | null = null;
  for (const side of ["input", "output"] as const) {
    const views = [a.operation[side], b.operation[side]] as const;
    if (views[0] === null || views[1] === null) continue;
    // A rank's own part of what the other side has whole may lie anywhere.
    const isPart = side === "input" ? splitsOutput : splitsInput;
    const kind = differenceOfViews(meanings, views[0], views[1], !isPart);
    if (kind === null) continue;
    const found = { kind, side, views: [views[0], views[1]] } as const;
    if (kind === "tensor") return found;
    first ??= found;
  }
  return first;
}

function differenceOfViews(
  { buffers }: Meanings,
  a: View,
  b: View,
  comparesSlices: boolean,
): Difference["kind"] | null {
  const [x, y] = [at(buffers, a.buffer), at(buffers, b.buffer)];
  if (x.role !== "temporary" && x.role === y.role) {
    if (x.position !== y.position) return "tensor";
  } else if (x.name !== y.name) return "unknown";
  return !comparesSlices || x.bytes !== y.bytes || sameSlice(a, b) ? null : "slice";
}

function sameSlice(a: View, b: View): boolean {
  if (a.offset !== b.offset) return false;
  if (sameNumbers(a.shape, b.shape) && sameNumbers(a.strides, b.strides)) return true;
  const runs = (view: View): string => JSON.stringify({ ...regionOf(view), buffer: null });
  return runs(a) === runs(b);
}

/** Whether all that is known of a collective's sides are inputs or outputs of the program. */
function isArgument({ buffers }: Meanings, { operation: { input, output } }: CollectiveUse): boolean {
  return [input, output].every((view) => view === null || at(buffers, view.buffer).role !== "temporary");
}

/**
 * A send between slices of one output of the program, whose slice another recv of the channel names. Other tensors tell
 * nothing: rings receive into a second buffer, and forward it in the next step. At most one warning per channel.
 */
export function swappedSends(meanings: Meanings, sends: readonly End[], recvs: readonly End[]): readonly Diagnostic[] {
  const keyOf = ({ view }: End): string | null => {
    const { role, position } = at(meanings.buffers, view.buffer);
    return role === "output" ? JSON.stringify({ ...regionOf(view), buffer: position }) : null;
  };
  const [sent, received] = [sends, recvs].map((ends) => ends.map(keyOf));
  if (sent === undefined || received === undefined) return [];
  for (const [k, key] of sent.entries()) {
    const other = received[k] ?? null;
    if (key === null || other === null || key === other || !received.includes(key) || !sent.includes(other)) continue;
    const [send, recv] = [at(sends, k), at(recvs, k)];
    const warning = mismatch(meanings.lists, {
      message: `ranks ${send.rank} and ${recv.rank} may send and receive in different orders`,
      at: recv,
      against: send,
      found: `${bytesText(meanings, send.view)} of rank ${send.rank} arrive in ${bytesText(meanings, recv.view)} of rank ${recv.rank}`,
      expected: `the same slice, which rank ${recv.rank} receives at another place`,
      help: "post the recvs in the order of the sends",
    });
    return [{ ...warning, code: "transfer-unclear", severity: "warning" }];
  }
  return [];
}

/** Whether both commands come from one statement in one iteration. Paths of ranks with other texts may coincide. */
function sameStatement({ lists }: Meanings, a: CommandRef, b: CommandRef): boolean {
  const [x, y] = [a, b].map(({ rank, command }) => at(at(lists, rank).origins, command));
  return (
    x !== undefined &&
    y !== undefined &&
    x.statement === y.statement &&
    sameNumbers(x.path, y.path) &&
    sameNumbers(x.iteration, y.iteration)
  );
}

function contrast(
  meanings: Meanings,
  anchor: CollectiveUse,
  use: CollectiveUse,
  difference: Difference | null,
): Pick<Mismatch, "at" | "against" | "found" | "expected"> {
  const places = { at: use, against: anchor };
  if (difference === null) {
    return { ...places, found: "another statement or iteration", expected: "the same one on every rank of the team" };
  }
  const { kind, side, views } = difference;
  const { type } = use.operation;
  const [mine, theirs] = [at(views, 1), at(views, 0)].map((view) => {
    const { role, position, name } = at(meanings.buffers, view.buffer);
    if (kind === "slice") return bytesText(meanings, view);
    return role === "temporary" ? name : `${name} (${role} ${position ?? 0})`;
  });
  const together = collectives[type].reduces ? "is reduced with" : "is gathered with";
  const action = side === "input" ? together : `gets its part of the ${type} that also writes`;
  return {
    ...places,
    found: `${mine} of rank ${use.rank} ${action} ${theirs} of rank ${anchor.rank}`,
    expected:
      kind === "slice" ? "the same slice on every rank of the team" : "the same tensor on every rank of the team",
  };
}

function bytesText({ buffers }: Meanings, view: View): string {
  const { dims, bytes } = regionOf(view);
  const span = dims.reduce((sum, { count, stride }) => sum + (count - 1) * stride, bytes);
  return `bytes ${view.offset} to ${view.offset + span - 1} of ${at(buffers, view.buffer).name}`;
}
