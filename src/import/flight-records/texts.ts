/** Transfers, groups, ranks and stack frames in words. */
import type { Issued, TorchGroup } from "./issued.ts";
import { rowOfOp } from "./collective-rows.ts";
import { recordedShapeText } from "./disagreements.ts";
import type { StackFrame, TorchEntry } from "./torch-record.ts";

/** More would hide the pattern. */
const most = 8;

export function ranksText(ranks: Iterable<number>): string {
  const each = [...new Set(ranks)].toSorted((a, b) => a - b);
  const shown = each.length > 2 * most ? [...each.slice(0, most), "..", ...each.slice(-1)] : each;
  return `rank${each.length === 1 ? "" : "s"} ${shown.join(", ")}`;
}

export function groupText({ name, description }: TorchGroup): string {
  return `group ${name}${description === "" || description === "undefined" ? "" : ` (${description})`}`;
}

/** `all_reduce 42 of group 0 (default_pg)`, `send to 1 in group 3 (pp)`. */
export function transferText({ group, ops, last, isPointToPoint, number }: Issued): string {
  if (!isPointToPoint) {
    const op = last.op === "coalesced" ? `batch of ${listText(ops.map((each) => each.op))},` : last.op;
    return `${op} ${number} of ${groupText(group)}`;
  }
  const each = ops.map((op) => pairText(op, group));
  return `${ops.length > 1 ? `batch of ${listText(each)}` : listText(each)} in ${groupText(group)}`;
}

/** `send to 1`, with the rank of the peer. */
function pairText({ op, peers }: TorchEntry, { ranks }: TorchGroup): string {
  if (peers === null) return op;
  const rank = (position: number): string => `${ranks[position] ?? `position ${position}`}`;
  return op === "send" ? `send to ${rank(peers.destination)}` : `recv from ${rank(peers.source)}`;
}

function listText(texts: readonly string[]): string {
  return texts.length > most ? `${texts.slice(0, most).join(", ")} and ${texts.length - most} more` : texts.join(", ");
}

/** `all_reduce of Float [1024] at train.py:88 (step)`. */
export function contentText({ ops, last }: Issued): string {
  const each = ops.map((op) => {
    const side = rowOfOp(op).alike[0] ?? "inputs";
    const tensors = (op.op === "recv" ? op.outputs : op[side]).map(recordedShapeText);
    return tensors.length === 0 ? op.op : `${op.op} of ${listText(tensors)}`;
  });
  const where = placeIn(last.frames);
  return `${listText(each)}${where === null ? "" : ` at ${frameText(where)}`}`;
}

/** The innermost frame outside of PyTorch; the innermost if there is none. */
export function placeIn(frames: readonly StackFrame[]): StackFrame | null {
  return frames.find(isUsers) ?? frames[0] ?? null;
}

function isUsers({ file }: StackFrame): boolean {
  return !/(?:^|[/\\])torch[/\\]/u.test(file);
}

function frameText({ name, file, line }: StackFrame): string {
  return `${file}:${line} (${name})`;
}

/** The frames from the user's innermost outwards, in one line; null without any. */
export function stackText({ last }: Issued): string | null {
  const start = Math.max(0, last.frames.findIndex(isUsers));
  const frames = last.frames.slice(start, start + most);
  return frames.length === 0 ? null : frames.map(frameText).join(" < ");
}

/** `has started`, `timed out after 600 s`. */
export function issuedStandingText({ last: { state, isRetired, timeoutMilliseconds } }: Issued): string {
  if (state === "completed") return "has completed";
  if (isRetired) return timeoutMilliseconds === null ? "timed out" : `timed out after ${timeoutMilliseconds / 1000} s`;
  return state === "started" ? "has started" : "is issued";
}
