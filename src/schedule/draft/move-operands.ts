/** Redirects commands from one side of a copy to the other. Both sides hold the same elements at the same distances. */
import type { BufferRef } from "../../commands/buffer.ts";
import { commonBox, sameNumbers, type View } from "../../commands/view.ts";
import { at } from "../../support/invariant.ts";
import type { DraftCommand } from "./draft.ts";
import { sameBytes, type Touch } from "./memory/touch.ts";

export type Copy = Extract<DraftCommand, { readonly kind: "copy" }>;

/** Whether the two sides differ only in where they begin. */
export function isEven({ source, destination }: Copy): boolean {
  const box = commonBox([source, destination]);
  return box !== null && sameNumbers(at(box.strides, 0), at(box.strides, 1));
}

/** The command, reading the copy's source instead of its destination; null if a read reaches beyond the destination. */
export function moveInputs(
  command: DraftCommand,
  touches: readonly Touch[],
  destination: Touch,
  { source, destination: from }: Copy,
): DraftCommand | null {
  if (command.kind !== "launch" && command.kind !== "copy") return null;
  const inputs = command.kind === "launch" ? command.inputs : [command.source];
  const isIn = inputs.map((_, i) => isWithin(at(touches, i), destination));
  if (touches.some((touch, i) => !touch.writes && isIn[i] !== true && isBeside(touch, destination))) return null;
  if (command.kind === "copy") return { ...command, source: moved(command.source, from, source) };
  return { ...command, inputs: inputs.map((input, i) => (isIn[i] === true ? moved(input, from, source) : input)) };
}

/** The launch, writing the copy's destination. Its one output must fill the copy's source; otherwise null. */
export function moveOutput(
  command: DraftCommand,
  touches: readonly Touch[],
  source: Touch,
  { source: from, destination }: Copy,
): DraftCommand | null {
  if (command.kind !== "launch" || command.outputs.length !== 1) return null;
  const output = at(touches, touches.length - 1);
  const fills = output.start === source.start && output.end === source.end && isWithin(source, output);
  const readsToo = touches.some((touch) => !touch.writes && isBeside(touch, source));
  if (!fills || !isWithin(output, source) || readsToo) return null;
  return { ...command, outputs: command.outputs.map((ref) => moved(ref, from, destination)) };
}

function moved<Ref extends BufferRef>(ref: Ref, from: View, to: View): Ref {
  return { ...ref, buffer: to.buffer, offset: ref.offset - from.offset + to.offset };
}

/** Exact for contiguous bytes, and for equal runs on both sides. */
function isWithin(inner: Touch, outer: Touch): boolean {
  if (inner.place !== outer.place || inner.start < outer.start || inner.end > outer.end) return false;
  if (outer.dims.length === 0) return true;
  return sameBytes(inner, outer);
}

function isBeside(touch: Touch, other: Touch): boolean {
  return touch.place === other.place && touch.start < other.end && other.start < touch.end;
}
