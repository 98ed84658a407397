/**
 * The rewritten list of a rank, made from that of the representative of its class: each command is the image of the one
 * there, by the symmetry of the Program before the rewrite (src/verify/classes/README.md).
 */
import type { BufferId, BufferRef } from "../../../commands/buffer.ts";
import { transferViews } from "../../../commands/collectives.ts";
import type { Command, StreamInfo } from "../../../commands/command.ts";
import type { Kernel, Operand } from "../../../commands/kernel.ts";
import { createListWriter } from "../../../commands/list-writer.ts";
import type { RankProgram } from "../../../commands/program.ts";
import { endOfView, type View } from "../../../commands/view.ts";
import { at, groupedBy, unreachable, pushTo } from "../../../support/invariant.ts";
import type { DraftCommand, DraftNode } from "../draft.ts";
import type { WrittenList } from "../write-draft.ts";

export interface ImageList {
  readonly list: RankProgram;
  /** Whether operands follow from others: all else is as the rank's own list had it. */
  readonly hasDerivedOperands: boolean;
}

/** Null if the image of an operand does not follow from those of the list that was rewritten. */
export function imageList(lists: Lists, { list, nodes }: WrittenList): ImageList | null {
  const { before, image } = lists;
  const offsets = createOffsetImages(lists);
  const { list: made, add } = createListWriter();
  for (const [position, command] of list.commands.entries()) {
    const node = at(nodes, position);
    const isEvent = command.kind === "recordEvent" || command.kind === "waitEvent";
    const moved = isEvent ? command : imageCommand(lists, offsets, node, command);
    const origin = node.sources.find((source) => before.origins[source] === node.origin);
    const transfer = node.sources.find((source) => before.transferOf[source] === node.transfer);
    if (moved === null || origin === undefined || (!isEvent && transfer === undefined)) return null;
    add(moved, at(image.origins, origin), isEvent || transfer === undefined ? null : image.transferOf[transfer]);
  }
  return {
    list: { ...image, streams: imageStreams(lists, list.streams), eventCount: list.eventCount, ...made },
    hasDerivedOperands: offsets.wereAsked(),
  };
}

/** Streams of libraries have the names of the rank's communicators. */
function imageStreams({ before, image }: Lists, streams: readonly StreamInfo[]): readonly StreamInfo[] {
  return streams.map((stream) => {
    const position = before.streams.findIndex(({ role, name }) => role === stream.role && name === stream.name);
    return position < 0 ? stream : { ...stream, name: at(image.streams, position).name };
  });
}

function imageCommand(
  lists: Lists,
  offsets: OffsetImages,
  { sources }: DraftNode,
  command: DraftCommand,
): Command | null {
  const { stream } = command;
  /** The image of the command that was there, if it was as asked. */
  const imageWhere = <K extends Command["kind"]>(
    kind: K,
    isAsked: (own: Extract<Command, { readonly kind: K }>) => boolean,
  ): Extract<Command, { readonly kind: K }> | null => {
    for (const source of sources) {
      const [own, image] = [at(lists.before.commands, source), at(lists.image.commands, source)];
      if (isKind(own, kind) && isKind(image, kind) && isAsked(own)) return image;
    }
    return null;
  };
  switch (command.kind) {
    case "signal":
    case "waitSignal": {
      const image = imageWhere(command.kind, ({ slot }) => slot === command.slot);
      return image === null ? null : moved(image, stream);
    }
    case "alloc":
    case "free": {
      const image = imageWhere(command.kind, ({ buffer }) => buffer === command.buffer);
      return image === null ? null : moved(image, stream);
    }
    case "transfer": {
      const image = imageWhere("transfer", ({ operation }) => operation === command.operation);
      return image === null ? null : moved(image, stream);
    }
    case "copy": {
      const viewOf = (view: View): View | null => {
        const asSource = imageWhere("copy", ({ source }) => source === view);
        if (asSource !== null) return asSource.source;
        const asDestination = imageWhere("copy", ({ destination }) => destination === view);
        if (asDestination !== null) return asDestination.destination;
        return offsets.of(
          view,
          view,
          sources.flatMap((source) => operandsMoved(lists, source)),
        );
      };
      const whole = imageWhere(
        "copy",
        (own) => own.source === command.source && own.destination === command.destination,
      );
      if (whole !== null) return moved(whole, stream);
      const [source, destination] = [viewOf(command.source), viewOf(command.destination)];
      return source === null || destination === null ? null : { ...command, source, destination };
    }
    case "launch": {
      const isSame = ({ kernel, inputs, outputs, smMargin }: typeof command): boolean =>
        kernel === command.kernel &&
        inputs === command.inputs &&
        outputs === command.outputs &&
        smMargin === command.smMargin;
      const whole = imageWhere("launch", isSame);
      if (whole !== null) return moved(whole, stream);
      const kernel = at(lists.kernels, command.kernel);
      const origins = imageWhere("launch", (own) => own.origins === command.origins);
      // A sum over devices reads its inputs in the order of the rank's own team.
      if (kernel.kind === "combine" || origins === null || !keepsInputs(lists, offsets, sources)) return null;
      const ofInputs = imageWhere("launch", (own) => own.inputs === command.inputs);
      const ofOutputs = imageWhere("launch", (own) => own.outputs === command.outputs);
      const made = { lists, offsets, command, kernel, sources };
      const inputs = ofInputs?.inputs ?? refsOn("inputs", made);
      const outputs = ofOutputs?.outputs ?? refsOn("outputs", made);
      if (inputs === null || outputs === null) return null;
      return { ...command, inputs, outputs, ...(origins.origins === undefined ? {} : { origins: origins.origins }) };
    }
    default:
      return unreachable(command);
  }
}

interface MadeLaunch {
  readonly lists: Lists;
  readonly offsets: OffsetImages;
  readonly command: Extract<DraftCommand, { readonly kind: "launch" }>;
  readonly kernel: Kernel;
  readonly sources: readonly number[];
}

/** Of launches with as many operands on a side, each operand was made from the one in its place. */
function refsOn(
  side: "inputs" | "outputs",
  { lists, offsets, command, kernel, sources }: MadeLaunch,
): readonly BufferRef[] | null {
  const refs = command[side];
  const operandsOf = (source: number, i: number): readonly Moved[] => {
    const [own, other] = [at(lists.before.commands, source), at(lists.image.commands, source)];
    if (own.kind !== "launch" || other.kind !== "launch" || own[side].length !== refs.length)
      return operandsMoved(lists, source);
    return [movedRef(at(own[side], i), at(other[side], i), at(at(lists.kernels, own.kernel)[side], i))];
  };
  const images = refs.map((ref, i) =>
    offsets.of(
      ref,
      at(kernel[side], i),
      sources.flatMap((source) => operandsOf(source, i)),
    ),
  );
  const found = images.filter((image) => image !== null);
  return found.length === refs.length ? found : null;
}

/** Whether the inputs of the launches that were there are in the same order on both ranks. */
function keepsInputs({ before, image, kernels }: Lists, offsets: OffsetImages, sources: readonly number[]): boolean {
  return sources.every((source) => {
    const [own, other] = [at(before.commands, source), at(image.commands, source)];
    if (own.kind !== "launch" || other.kind !== "launch") return true;
    const kernel = at(kernels, own.kernel);
    if (kernel.kind === "combine") return true;
    return own.inputs.every((ref, i) => {
      const moved = offsets.of(ref, at(kernel.inputs, i), []);
      const theirs = at(other.inputs, i);
      return moved !== null && moved.buffer === theirs.buffer && moved.offset === theirs.offset;
    });
  });
}

function isKind<K extends Command["kind"]>(
  command: Command,
  kind: K,
): command is Extract<Command, { readonly kind: K }> {
  return command.kind === kind;
}

function moved<C extends Command>(command: C, stream: Command["stream"]): C {
  return command.stream === stream ? command : { ...command, stream };
}

// Where the operands of a rewritten command lie on another rank of the class. Within a buffer, each region that the
// commands of the list touched has its image as far on as that of its command; a part of a region moves with it.

/** The lists of the representative and of the other rank as they were, and the kernels after the rewrite. */
interface Lists {
  readonly before: RankProgram;
  readonly image: RankProgram;
  readonly bufferOn: (buffer: BufferId) => BufferId;
  readonly kernels: readonly Kernel[];
}

type Form = Pick<Operand, "dtype" | "shape" | "strides">;

interface OffsetImages {
  /**
   * The operand on the other rank. `operands`: those that it may have been made from; it is a part of one, or was
   * redirected along a copy. If there are none, it is one of the list's regions. Null if these move differently.
   */
  readonly of: <Ref extends BufferRef>(ref: Ref, form: Form, operands: readonly Moved[]) => Ref | null;
  readonly wereAsked: () => boolean;
}

interface Moved {
  readonly buffer: BufferId;
  readonly start: number;
  readonly end: number;
  readonly by: number;
}

function createOffsetImages(lists: Lists): OffsetImages {
  let known: ReadonlyMap<BufferId, readonly Moved[]> | null = null;
  let copies: ReadonlyMap<BufferId, readonly CopyEnds[]> | null = null;
  let wereAsked = false;
  return {
    wereAsked: () => wereAsked,
    of: (ref, form, operands) => {
      wereAsked = true;
      const [start, end] = [ref.offset, endOfView(form, ref.offset)];
      const isAround = (region: Moved): boolean =>
        region.buffer === ref.buffer && region.start <= start && end <= region.end;
      const own = operands.filter(isAround);
      known ??= regionsMoved(lists);
      const regions = known.get(ref.buffer) ?? [];
      const isRedirected = own.length < operands.length && regions.length > 0;
      if (isRedirected) copies ??= copiesMoved(lists);
      const along = isRedirected ? redirected(operands, copies ?? new Map(), ref) : [];
      const by = own.length > 0 || isRedirected ? distance([...own, ...along]) : distanceIn(regions, start, end);
      return by === null ? null : { ...ref, buffer: lists.bufferOn(ref.buffer), offset: ref.offset + by };
    },
  };
}

/** How far a region moves that is one of these, or else a part of some. */
function distanceIn(regions: readonly Moved[], start: number, end: number): number | null {
  if (regions.every(({ by }) => by === 0)) return 0;
  const same = regions.filter((region) => region.start === start && end === region.end);
  return distance(same.length > 0 ? same : regions.filter((region) => region.start <= start && end <= region.end));
}

/** How far all of them move; null if that differs. */
function distance([first, ...others]: readonly Moved[]): number | null {
  return first === undefined || others.some(({ by }) => by !== first.by) ? null : first.by;
}

/** A copy from one end to the other, or back: an operand at one may have been redirected to the other. */
interface CopyEnds {
  readonly from: Moved;
  readonly to: Moved;
}

function copiesMoved(lists: Lists): ReadonlyMap<BufferId, readonly CopyEnds[]> {
  const byBuffer = new Map<BufferId, CopyEnds[]>();
  for (const [position, { kind }] of lists.before.commands.entries()) {
    if (kind !== "copy") continue;
    const [source, destination] = operandsMoved(lists, position);
    if (source === undefined || destination === undefined) continue;
    pushTo(byBuffer, source.buffer, { from: source, to: destination });
    pushTo(byBuffer, destination.buffer, { from: destination, to: source });
  }
  return byBuffer;
}

/** A copy that is left out may have read what another one that is left out has written. */
const mostCopies = 4;

/**
 * Where operands lie after copies along which they may have been redirected to `ref`, each as far on as its copy's ends
 * are apart on the other rank.
 */
function redirected(
  operands: readonly Moved[],
  copies: ReadonlyMap<BufferId, readonly CopyEnds[]>,
  { buffer, offset }: BufferRef,
): readonly Moved[] {
  const found: Moved[] = [];
  const seen = new Set<string>();
  const isNew = ({ buffer: on, start, by }: Moved): boolean => seen.size < seen.add(`${on} ${start} ${by}`).size;
  let reached = operands;
  for (let i = 0; i < mostCopies && found.length === 0; i++) {
    reached = reached.filter(isNew).flatMap((operand) =>
      (copies.get(operand.buffer) ?? []).flatMap(({ from, to }): readonly Moved[] => {
        if (operand.start < from.start || operand.end > from.end) return [];
        const apart = to.start - from.start;
        const [start, end] = [operand.start + apart, operand.end + apart];
        return [{ buffer: to.buffer, start, end, by: operand.by - from.by + to.by }];
      }),
    );
    found.push(...reached.filter((each) => each.buffer === buffer && each.start === offset));
  }
  return found;
}

/** The regions of the list, by buffer. */
function regionsMoved(lists: Lists): ReadonlyMap<BufferId, readonly Moved[]> {
  const all = lists.before.commands.flatMap((_, position) => operandsMoved(lists, position));
  return groupedBy(all, ({ buffer }) => buffer);
}

function movedRef(own: BufferRef, theirs: BufferRef, form: Form): Moved {
  return {
    buffer: own.buffer,
    start: own.offset,
    end: endOfView(form, own.offset),
    by: theirs.offset - own.offset,
  };
}

/** The operands of the command at a position. */
function operandsMoved({ before, image, kernels }: Lists, position: number): readonly Moved[] {
  const [command, other] = [at(before.commands, position), at(image.commands, position)];
  if (command.kind === "copy" && other.kind === "copy") {
    return [
      movedRef(command.source, other.source, command.source),
      movedRef(command.destination, other.destination, command.destination),
    ];
  }
  if (command.kind === "launch" && other.kind === "launch") {
    const kernel = at(kernels, command.kernel);
    return [
      ...command.outputs.map((ref, i) => movedRef(ref, at(other.outputs, i), at(kernel.outputs, i))),
      ...command.inputs.flatMap((ref, i) => {
        // Several inputs of one buffer may be in another order.
        const isAlone = command.inputs.every(({ buffer }, j) => i === j || buffer !== ref.buffer);
        return isAlone ? [movedRef(ref, at(other.inputs, i), at(kernel.inputs, i))] : [];
      }),
    ];
  }
  if (command.kind === "transfer" && other.kind === "transfer") {
    const [own, theirs] = [transferViews(command.operation), transferViews(other.operation)];
    return own.map((view, i) => movedRef(view, at(theirs, i), view));
  }
  return [];
}
