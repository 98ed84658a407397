/**
 * Applies an edit to the draft of every rank: reads the lists, edits them, and writes them. It then updates the rest of
 * the Program: the positions of transfers' participants, and the kernels still in use.
 */
import type { BufferRef } from "../../commands/buffer.ts";
import type { KernelId } from "../../commands/command.ts";
import { movedTransfer } from "../../commands/list-writer.ts";
import type { Program, RankProgram } from "../../commands/program.ts";
import { commonBox, sameNumbers, type View } from "../../commands/view.ts";
import { makeId, at, invariant } from "../../support/invariant.ts";
import { type RankGroup, representativesOf } from "../../verify/classes/rank-group.ts";
import { imageList } from "./classes/image-list.ts";
import type { DraftReader } from "./draft-reader.ts";
import type { Draft, DraftCommand } from "./draft.ts";
import type { Foreign } from "./memory/foreign.ts";
import type { DraftMemory } from "./memory/memory.ts";
import { sameBytes, type Touch } from "./memory/touch.ts";
import { createKnownDependences, type KnownDependences } from "./order/known-dependences.ts";
import { writeDraft, type WrittenList } from "./write-draft.ts";

export interface EditContext {
  readonly program: Program;
  readonly memory: DraftMemory;
  /** One rank of each class. What holds at a position of its list holds there for the whole class. */
  readonly representatives: readonly number[];
  readonly representativeOf: (rank: number) => number;
  /** As it was read. */
  readonly draftOf: (rank: number) => Draft;
  readonly foreign: Foreign;
  readonly dependences: KnownDependences;
}

/** The edit of a rank's draft. */
export type Edit = (draft: Draft, context: EditContext) => Draft;

/**
 * `edit` returns the same draft if it has nothing to change. If no draft changes, the result is the same Program.
 * Otherwise all lists are written, because a rewrite may rely on the issue order of other ranks. Of ranks that are alike,
 * one is edited and written, and the lists of the others are its images. Where operands of these were derived, the last
 * rank of each class is edited as well: if its list is another, all ranks are edited.
 */
export function editRanks(program: Program, reader: DraftReader, edit: Edit): Program {
  const context = contextOf(program, reader);
  const group = reader.symmetry(program);
  const byClass = group === null ? null : editClasses(program, context, group, reader, edit);
  if (byClass !== null && group !== null) {
    if (byClass !== program) reader.keepSymmetry(byClass, group);
    return byClass;
  }
  const all = program.ranks.map(({ rank }) => rank);
  // Without the kernels and buffers of the first attempt.
  const anew = group === null ? context : contextOf(program, reader);
  const written = writeEdited(anew, all, edit);
  if (written === null) return program;
  return joined(program, anew, (rank) => ({
    list: { ...at(program.ranks, rank), ...at(written, rank).list },
    positions: at(written, rank).positions,
  }));
}

/** Null if no draft of these ranks changes. */
function writeEdited(context: EditContext, ranks: readonly number[], edit: Edit): readonly WrittenList[] | null {
  const drafts = ranks.map((rank) => context.draftOf(rank));
  const edited = drafts.map((draft) => edit(draft, context));
  if (edited.every((draft, i) => draft === drafts[i])) return null;
  return edited.map((draft) => writeDraft(draft, context.memory, context.dependences));
}

/** Null if the list of a rank does not follow from that of its representative. */
function editClasses(
  program: Program,
  context: EditContext,
  group: RankGroup,
  reader: DraftReader,
  edit: Edit,
): Program | null {
  const representatives = representativesOf(group);
  const written = writeEdited(context, representatives, edit);
  if (written === null) return program;
  const { kernels } = context.memory;
  const bufferOn = reader.bufferImages(program);
  const writtenOf = (rank: number): WrittenList => at(written, representatives.indexOf(at(group.representative, rank)));
  const lists: RankProgram[] = [];
  let areDerived = false;
  for (const image of program.ranks) {
    const before = at(program.ranks, at(group.representative, image.rank));
    const own = writtenOf(image.rank);
    if (before === image) {
      lists.push({ ...image, ...own.list });
      continue;
    }
    const element = at(group.elements, at(group.elementTo, image.rank));
    const made = imageList({ before, image, kernels, bufferOn: (buffer) => bufferOn(buffer, element) }, own);
    if (made === null) return null;
    areDerived ||= made.hasDerivedOperands;
    lists.push(made.list);
  }
  if (areDerived && !areOwn(lists, context, group, edit)) return null;
  return joined(program, context, (rank) => ({ list: at(lists, rank), positions: writtenOf(rank).positions }));
}

/** Whether the list of the last rank of each class, made as an image, is what the edit makes of the rank's own. */
function areOwn(
  lists: readonly RankProgram[],
  context: EditContext,
  { representative }: RankGroup,
  edit: Edit,
): boolean {
  const last = new Map([...representative].map((of, rank) => [of, rank]));
  const others = [...last.values()].filter((rank) => representative[rank] !== rank);
  const own = writeEdited(context, others, edit);
  return others.every(
    (rank, i) => JSON.stringify(own?.[i]?.list.commands) === JSON.stringify(at(lists, rank).commands),
  );
}

/** The Program with new lists, and where the commands of the old ones are in them. */
function joined(
  program: Program,
  { memory }: EditContext,
  writtenOf: (rank: number) => { readonly list: RankProgram; readonly positions: WrittenList["positions"] },
): Program {
  const ranks = program.ranks.map(({ rank }) => writtenOf(rank).list);
  const transfers = program.transfers.map((transfer) =>
    movedTransfer(transfer, (rank, position) => {
      const moved = writtenOf(rank).positions.get(position);
      invariant(moved !== undefined, "rewrites keep transfers", transfer);
      return moved;
    }),
  );
  return usedKernels({ ...program, ranks, transfers, kernels: memory.kernels });
}

/** Whether `edit` changes a draft. Edits only ranks up to the first that changes, and writes none. */
export function changesRanks(program: Program, reader: DraftReader, edit: Edit): boolean {
  const context = contextOf(program, reader);
  return context.representatives.some((rank) => {
    const draft = context.draftOf(rank);
    return edit(draft, context) !== draft;
  });
}

function contextOf(program: Program, reader: DraftReader): EditContext {
  const read = reader.read(program);
  const memory = read.newMemory();
  const dependences = createKnownDependences(read.dependences, memory);
  return {
    program,
    memory,
    representatives: read.representatives,
    representativeOf: read.representativeOf,
    draftOf: read.draftOf,
    foreign: read.foreign,
    dependences,
  };
}

/** Reads and writes all lists. Events then order only what must be. */
export function rewriteAnew(program: Program, reader: DraftReader): Program {
  return editRanks(program, reader, (draft) => ({ ...draft }));
}

/** Removes kernels that no command launches any more, because back ends prepare every kernel of a Program. */
function usedKernels(program: Program): Program {
  const used = new Set<KernelId>();
  for (const { commands } of program.ranks) {
    for (const command of commands) if (command.kind === "launch") used.add(command.kernel);
  }
  if (used.size === program.kernels.length) return program;
  const ids = [...used].sort((a, b) => a - b);
  const idOf = new Map(ids.map((id, index) => [id, makeId<KernelId>(index)]));
  const ranks = program.ranks.map((rank): RankProgram => ({
    ...rank,
    commands: rank.commands.map((command) =>
      command.kind === "launch" ? { ...command, kernel: idOf.get(command.kernel) ?? command.kernel } : command,
    ),
  }));
  return { ...program, ranks, kernels: ids.map((id) => at(program.kernels, id)) };
}

// Redirects commands from one side of a copy to the other. Both sides hold the same elements at the same distances.

export type DraftCopy = Extract<DraftCommand, { readonly kind: "copy" }>;

/** Whether the two sides differ only in where they begin. */
export function isEvenCopy({ source, destination }: DraftCopy): boolean {
  const box = commonBox([source, destination]);
  return box !== null && sameNumbers(at(box.strides, 0), at(box.strides, 1));
}

/** The command, reading the copy's source instead of its destination; null if a read reaches beyond the destination. */
export function moveInputs(
  command: DraftCommand,
  touches: readonly Touch[],
  destination: Touch,
  { source, destination: from }: DraftCopy,
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
  { source: from, destination }: DraftCopy,
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
