/** Diagnostics of link, which name the host programs' statements. */
import type { Diagnostic, Place } from "../../../diagnostics/diagnostic.ts";
import { at } from "../../../support/invariant.ts";
import { counted } from "../../../support/wording.ts";
import { type CommandBase, type Origin, originText } from "../../command.ts";
import { commonBox, sameNumbers, type View } from "../../view.ts";
import { elementCount } from "../../../numerics/tensor/storage.ts";

/** A command of one rank's list. */
export interface CommandRef {
  readonly rank: number;
  readonly command: number;
}

/** What messages need of a rank's list, linked or not. */
export interface Listed {
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
