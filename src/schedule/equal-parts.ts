/**
 * Equal parts of a Program are rewritten once: layers of a model. They differ in the numbers of their buffers, slots,
 * events and transfers. A rewrite reads nothing else of them: buffers have equal arenas, roles and sizes, and those that
 * share bytes do so at equal distances.
 */
import type { BufferRef } from "../commands/buffer.ts";
import { sameOperation } from "../commands/collectives.ts";
import type { Command, Origin, Transfer } from "../commands/command.ts";
import { createListWriter } from "../commands/list-writer.ts";
import type { LinkedTransfer, Program, RankProgram } from "../commands/program.ts";
import { sameNumbers, type View } from "../commands/view.ts";
import { makeId, at, unreachable, pushTo } from "../support/invariant.ts";

export interface EqualParts {
  /** What rewrites with equal options made of an equal part, and what they make of this one; null if none is known. */
  readonly find: (part: Program, options: string) => { readonly like: Program; readonly made: Program } | null;
  readonly keep: (part: Program, options: string, made: Program) => void;
}

interface Known {
  readonly part: Program;
  readonly made: Program;
  readonly places: readonly Places[];
}

export function createEqualParts(): EqualParts {
  const byKey = new Map<string, Known[]>();
  const keyOf = ({ ranks }: Program, options: string): string =>
    `${ranks.map(({ commands }) => commands.length).join()} ${options}`;
  return {
    find: (part, options) => {
      for (const known of byKey.get(keyOf(part, options)) ?? []) {
        const numbers = equalNumbers(known.part, part);
        const made = numbers === null ? null : instance(known, part, numbers);
        if (made !== null) return { like: known.made, made };
      }
      return null;
    },
    keep: (part, options, made) => {
      // Slots are dropped only where all of them are of one part.
      if (made.slots !== part.slots) return;
      pushTo(byKey, keyOf(part, options), { part, made, places: part.ranks.map(placesIn) });
    },
  };
}

// Whether two parts are equal, and which numbers of one stand for those of the other.

interface OneToOne {
  readonly pair: (a: number, b: number) => boolean;
  readonly images: ReadonlyMap<number, number>;
}

function createOneToOne(): OneToOne {
  const images = new Map<number, number>();
  const taken = new Set<number>();
  return {
    images,
    pair: (a, b) => {
      const image = images.get(a);
      if (image !== undefined) return image === b;
      if (taken.has(b)) return false;
      images.set(a, b);
      taken.add(b);
      return true;
    },
  };
}

type Numbers = Readonly<Record<"buffers" | "slots" | "events" | "transfers", OneToOne>>;

function equalNumbers(a: Program, b: Program): Numbers | null {
  const [buffers, slots, transfers] = [createOneToOne(), createOneToOne(), createOneToOne()];
  for (const [rank, own] of a.ranks.entries()) {
    const other = at(b.ranks, rank);
    const numbers: Numbers = { buffers, slots, transfers, events: createOneToOne() };
    for (const [i, command] of own.commands.entries()) {
      const [transfer, image] = [at(own.transferOf, i), at(other.transferOf, i)];
      if ((transfer === null) !== (image === null)) return null;
      if (transfer !== null && image !== null && !transfers.pair(transfer, image)) return null;
      if (!sameCommand(numbers, command, at(other.commands, i))) return null;
    }
  }
  const numbers = { buffers, slots, transfers, events: createOneToOne() };
  const areEqual =
    [...slots.images].every(([own, image]) => sameSlot(at(a.slots, own), at(b.slots, image))) &&
    [...transfers.images].every(([own, image]) => sameTransfer(at(a.transfers, own), at(b.transfers, image))) &&
    sameMemory(a.buffers, b.buffers, buffers);
  return areEqual ? numbers : null;
}

function sameCommand({ buffers, slots, events }: Numbers, a: Command, b: Command): boolean {
  if (a.stream !== b.stream) return false;
  const sameRef = (own: BufferRef, image: BufferRef): boolean =>
    own.offset === image.offset && buffers.pair(own.buffer, image.buffer);
  const sameRefs = (own: readonly BufferRef[], image: readonly BufferRef[]): boolean =>
    own.length === image.length && own.every((ref, i) => sameRef(ref, at(image, i)));
  const sameSide = (own: View, image: View): boolean =>
    sameRef(own, image) &&
    own.dtype === image.dtype &&
    sameNumbers(own.shape, image.shape) &&
    sameNumbers(own.strides, image.strides);
  switch (a.kind) {
    case "recordEvent":
    case "waitEvent":
      return b.kind === a.kind && events.pair(a.event, b.event);
    case "signal":
    case "waitSignal":
      return b.kind === a.kind && slots.pair(a.slot, b.slot);
    case "alloc":
    case "free":
      return b.kind === a.kind && buffers.pair(a.buffer, b.buffer);
    case "launch":
      return (
        b.kind === "launch" &&
        a.kernel === b.kernel &&
        a.smMargin === b.smMargin &&
        sameNumbers(a.origins ?? [], b.origins ?? []) &&
        sameRefs(a.inputs, b.inputs) &&
        sameRefs(a.outputs, b.outputs)
      );
    case "copy":
      return b.kind === "copy" && sameSide(a.source, b.source) && sameSide(a.destination, b.destination);
    case "transfer":
      return (
        b.kind === "transfer" && a.communicator === b.communicator && sameOperation(a.operation, b.operation, sameSide)
      );
    default:
      return unreachable(a);
  }
}

function sameSlot(a: Program["slots"][number], b: Program["slots"][number]): boolean {
  return a.signaller === b.signaller && a.waiter === b.waiter;
}

/** Their operations are those of the commands. */
function sameTransfer(a: LinkedTransfer, b: LinkedTransfer): boolean {
  if (a.communicator !== b.communicator || a.participants.length !== b.participants.length) return false;
  const sameEdges =
    a.kind === "collective"
      ? b.kind === "collective"
      : b.kind === "group" &&
        a.edges.length === b.edges.length &&
        a.edges.every(({ from, sendOp, to, recvOp }, i) => {
          const other = at(b.edges, i);
          return from === other.from && sendOp === other.sendOp && to === other.to && recvOp === other.recvOp;
        });
  return (
    sameEdges &&
    a.participants.every(({ rank, command }, i) => {
      const other = at(b.participants, i);
      return rank === other.rank && command === other.command;
    })
  );
}

/** Whether the buffers are of equal kinds, and those that share bytes are as far apart as their images. */
function sameMemory(a: Program["buffers"], b: Program["buffers"], { images }: OneToOne): boolean {
  const byArena = new Map<string, number[]>();
  for (const [own, image] of images) {
    const [one, other] = [at(a, own), at(b, image)];
    if (one.rank !== other.rank || one.arena !== other.arena || one.role !== other.role || one.bytes !== other.bytes)
      return false;
    pushTo(byArena, `${one.rank} ${one.arena}`, own);
  }
  return [...byArena.values()].every((all) => {
    const [own, image] = [sharedBytes(a, all, (id) => id), sharedBytes(b, all, (id) => images.get(id) ?? id)];
    return own.size === image.size && [...own].every(([pair, distance]) => image.get(pair) === distance);
  });
}

/** By pair of overlapping buffers of one arena: how far apart they begin. */
function sharedBytes(
  buffers: Program["buffers"],
  all: readonly number[],
  idOf: (id: number) => number,
): ReadonlyMap<string, number> {
  const found = new Map<string, number>();
  const ordered = all
    .map((id) => ({ id, buffer: at(buffers, idOf(id)) }))
    .map(({ id, buffer: { offset, bytes } }) => ({ id, start: offset, end: offset + bytes }))
    .sort((one, other) => one.start - other.start || one.id - other.id);
  for (const [i, { id, start, end }] of ordered.entries()) {
    for (let j = i + 1; j < ordered.length && at(ordered, j).start < end; j++) {
      const other = at(ordered, j);
      const isFirst = id < other.id;
      found.set(
        isFirst ? `${id} ${other.id}` : `${other.id} ${id}`,
        isFirst ? other.start - start : start - other.start,
      );
    }
  }
  return found;
}

// What the rewrites of one part made, with the numbers of an equal one.

/** Where a list has an object, the last of several. */
interface Places {
  readonly origins: ReadonlyMap<Origin, number>;
  readonly refs: ReadonlyMap<readonly BufferRef[], readonly [position: number, side: "inputs" | "outputs"]>;
  readonly views: ReadonlyMap<View, readonly [position: number, side: "source" | "destination"]>;
  readonly operations: ReadonlyMap<Transfer["operation"], number>;
}

function placesIn({ commands, origins }: RankProgram): Places {
  const refs: [readonly BufferRef[], readonly [number, "inputs" | "outputs"]][] = [];
  const views: [View, readonly [number, "source" | "destination"]][] = [];
  const operations: [Transfer["operation"], number][] = [];
  for (const [position, command] of commands.entries()) {
    if (command.kind === "launch")
      for (const side of ["inputs", "outputs"] as const) refs.push([command[side], [position, side]]);
    if (command.kind === "copy")
      for (const side of ["source", "destination"] as const) views.push([command[side], [position, side]]);
    if (command.kind === "transfer") operations.push([command.operation, position]);
  }
  return {
    origins: new Map(origins.map((origin, position) => [origin, position])),
    refs: new Map(refs),
    views: new Map(views),
    operations: new Map(operations),
  };
}

/** Null where the rewrites made a command whose origin or operation the part does not have. */
function instance({ made, places }: Known, part: Program, numbers: Numbers): Program | null {
  const ranks: RankProgram[] = [];
  for (const [rank, list] of made.ranks.entries()) {
    const own = at(part.ranks, rank);
    const known = at(places, rank);
    const { list: written, add } = createListWriter();
    for (const [i, command] of list.commands.entries()) {
      const image = imageOf(command, own.commands, known, numbers);
      const [place, transfer] = [known.origins.get(at(list.origins, i)), at(list.transferOf, i)];
      if (place === undefined || image === null) return null;
      add(image, at(own.origins, place), transfer === null ? null : imageIn(numbers.transfers, transfer));
    }
    ranks.push({ ...own, streams: list.streams, eventCount: list.eventCount, ...written });
  }
  const transfers = [...part.transfers];
  for (const [from, to] of numbers.transfers.images) {
    const [moved, image] = [at(made.transfers, from).participants, at(transfers, to)];
    const participants = image.participants.map((each, i) => ({ ...each, command: at(moved, i).command }));
    transfers[to] = { ...image, participants };
  }
  return { ...part, ranks, kernels: made.kernels, transfers };
}

/** Operands that the rewrites kept are the same objects as in the part, by which their accesses are known. */
function imageOf(
  command: Command,
  commands: readonly Command[],
  { refs, views, operations }: Places,
  { buffers, slots }: Numbers,
): Command | null {
  const moved = <Ref extends BufferRef>(ref: Ref): Ref => ({ ...ref, buffer: imageIn(buffers, ref.buffer) });
  const refsOf = (own: readonly BufferRef[]): readonly BufferRef[] => {
    const [position = -1, side = "inputs"] = refs.get(own) ?? [];
    const image = commands[position];
    return image?.kind === "launch" ? image[side] : own.map(moved);
  };
  const viewOf = (own: View): View => {
    const [position = -1, side = "source"] = views.get(own) ?? [];
    const image = commands[position];
    return image?.kind === "copy" ? image[side] : moved(own);
  };
  switch (command.kind) {
    case "recordEvent":
    case "waitEvent":
      return command;
    case "signal":
    case "waitSignal":
      return { ...command, slot: imageIn(slots, command.slot) };
    case "alloc":
    case "free":
      return { ...command, buffer: imageIn(buffers, command.buffer) };
    case "launch":
      return { ...command, inputs: refsOf(command.inputs), outputs: refsOf(command.outputs) };
    case "copy":
      return { ...command, source: viewOf(command.source), destination: viewOf(command.destination) };
    case "transfer": {
      const image = commands[operations.get(command.operation) ?? -1];
      return image?.kind === "transfer" ? { ...command, operation: image.operation } : null;
    }
    default:
      return unreachable(command);
  }
}

function imageIn<Id extends number>({ images }: OneToOne, id: Id): Id {
  return makeId<Id>(images.get(id) ?? id);
}
