/**
 * The guarantee of a signal for the rank that waits for it: the sender's earlier accesses to other ranks' memory are
 * done, the sender's own memory may be accessed from then on, and so is everything that earlier signals guaranteed to
 * the sender. What comes before a signal is found for one rank of each class, as commands; a symmetry takes it to the
 * others.
 */
import type { Command, SlotId } from "../../../commands/command.ts";
import type { Program } from "../../../commands/program.ts";
import { at, pushTo } from "../../../support/invariant.ts";
import { type RankPermutation, type RankGroup, representativesOf } from "../../../verify/classes/rank-group.ts";
import type { Foreign } from "../memory/foreign.ts";
import type { ListOrder } from "./list-order.ts";
import type { DraftMemory } from "../memory/memory.ts";
import type { Touch } from "../memory/touch.ts";
import { createPasts, type Past, unknownOf } from "./pasts.ts";

export interface Guarantee {
  /** The ranks whose own memory it covers. */
  readonly senders: ReadonlySet<number>;
  /** Accesses to the memory of other ranks, and to own memory that other ranks access. */
  readonly done: readonly Done[];
}

/** An access, and the rank that made it. */
export interface Done extends Touch {
  readonly by: number;
}

/** The guarantee of the n-th signal of a slot, without the accesses of `rank`, the waiting rank itself. */
export type Guarantees = (slot: SlotId, n: number, rank: number) => Guarantee | null;

/** Longer histories are treated as "any access". */
const longestHistory = 256;

/**
 * An element of a signal's past: a wait, with its number on its slot, or a command that accesses memory which several
 * ranks touch, and how many such accesses it has. null is a transfer.
 */
type Before =
  | { readonly kind: "wait"; readonly slot: SlotId; readonly n: number }
  | { readonly kind: "touches"; readonly place: number; readonly count: number }
  | null;

interface Sent {
  readonly rank: number;
  readonly position: number;
}

/** A guarantee as ranks and commands. */
interface History {
  readonly senders: ReadonlySet<number>;
  /** The numbers of accesses of commands, by their places: the rank times `stride`, and the position. */
  readonly done: ReadonlyMap<number, number>;
  /** The accesses of all of them. */
  readonly count: number;
}

export function signalGuarantees(
  program: Program,
  group: RankGroup,
  orderOf: (rank: number) => ListOrder,
  memory: DraftMemory,
  foreign: Foreign,
): Guarantees {
  const { ranks } = program;
  const { representative, elements, elementTo } = group;
  const stride = ranks.reduce((most, { commands }) => Math.max(most, commands.length), 0);
  const seen = seenAccesses(program, group, memory, foreign);
  const signals = signalsOf(program, group);
  const pasts = new Map(
    representativesOf(group).map((rank) => {
      const countAt = (position: number): number => seen.flagsAt(rank, position).filter((isSeen) => isSeen).length;
      return [rank, pastsOf(at(ranks, rank).commands, orderOf(rank), rank * stride, countAt)] as const;
    }),
  );
  const known = new Map<Past<Before>, History | null>();
  /** Of the representative of the sender's class. */
  const historyOf = ({ rank, position }: Sent): History | null => {
    const own = at(representative, rank);
    const past = pasts.get(own)?.get(position) ?? null;
    if (past === null) return nothing(own);
    const unknown = unknownOf(past, known);
    // A signal that depends on itself never comes.
    for (const each of unknown) known.set(each, null);
    for (const each of unknown) {
      const base = each.base === null ? nothing(own) : (known.get(each.base) ?? null);
      known.set(each, longer(each, base));
    }
    return known.get(past) ?? null;
  };
  /** `base`: the history of the set's base. */
  const longer = ({ items }: Past<Before>, base: History | null): History | null => {
    if (base === null) return null;
    const senders = new Set(base.senders);
    const done = new Map(base.done);
    let { count } = base;
    const add = (place: number, accesses: number): void => {
      if (done.has(place)) return;
      done.set(place, accesses);
      count += accesses;
    };
    for (const item of items) {
      if (item === null) return null;
      if (item.kind === "touches") add(item.place, item.count);
      else {
        const sent = signals.get(item.slot)?.[item.n];
        // A wait without a signal never ends in any order.
        const earlier = sent === undefined ? null : historyOf(sent);
        if (sent === undefined || earlier === null) return null;
        const image = at(elements, at(elementTo, sent.rank));
        for (const [place, accesses] of earlier.done) add(imagePlace(place, stride, image), accesses);
        for (const sender of earlier.senders) senders.add(at(image, sender));
      }
      if (count > longestHistory) return null;
    }
    return { senders, done, count };
  };
  return (slot, n, rank) => {
    const sent = signals.get(slot)?.[n];
    const history = sent === undefined ? null : historyOf(sent);
    if (sent === undefined || history === null) return null;
    const image = at(elements, at(elementTo, sent.rank));
    const done = [...history.done.keys()].flatMap((place) => {
      const moved = imagePlace(place, stride, image);
      const by = Math.floor(moved / stride);
      return by === rank ? [] : seen.doneAt(by, moved % stride);
    });
    return { senders: new Set([...history.senders].map((sender) => at(image, sender))), done };
  };
}

function nothing(rank: number): History {
  return { senders: new Set([rank]), done: new Map(), count: 0 };
}

function imagePlace(place: number, stride: number, image: RankPermutation): number {
  const position = place % stride;
  return at(image, (place - position) / stride) * stride + position;
}

/** By slot, in list order. */
function signalsOf({ ranks }: Program, group: RankGroup): ReadonlyMap<SlotId, readonly Sent[]> {
  const positions = new Map(
    representativesOf(group).map((rank) => {
      const { commands } = at(ranks, rank);
      return [rank, commands.flatMap(({ kind }, position) => (kind === "signal" ? [position] : []))] as const;
    }),
  );
  const signals = new Map<SlotId, Sent[]>();
  for (const { rank, commands } of ranks) {
    for (const position of positions.get(at(group.representative, rank)) ?? []) {
      const command = at(commands, position);
      if (command.kind !== "signal") continue;
      pushTo(signals, command.slot, { rank, position });
    }
  }
  return signals;
}

/** By the position of a signal: what comes before it. `firstPlace`: of the rank's commands. */
function pastsOf(
  commands: readonly Command[],
  order: ListOrder,
  firstPlace: number,
  countAt: (position: number) => number,
): ReadonlyMap<number, Past<Before> | null> {
  const pasts = createPasts<Before>(order);
  const waits = new Map<SlotId, number>();
  const before = new Map<number, Past<Before> | null>();
  for (const [position, command] of commands.entries()) {
    if (command.kind === "signal") before.set(position, pasts.before(position));
    else if (command.kind === "waitSignal") {
      const n = waits.get(command.slot) ?? 0;
      waits.set(command.slot, n + 1);
      pasts.add(position, { kind: "wait", slot: command.slot, n });
    } else if (command.kind === "transfer") pasts.add(position, null);
    else {
      const count = countAt(position);
      if (count > 0) pasts.add(position, { kind: "touches", place: firstPlace + position, count });
    }
  }
  return before;
}

/** Accesses to the memory of other ranks, and to own memory that other ranks access. */
interface SeenAccesses {
  /** Of the accesses of a representative's command. */
  readonly flagsAt: (rank: number, position: number) => readonly boolean[];
  /** Those of a command of any rank. An access differs from the same command's at another position of the list. */
  readonly doneAt: (rank: number, position: number) => readonly Done[];
}

function seenAccesses(
  { ranks }: Program,
  { representative }: RankGroup,
  memory: DraftMemory,
  foreign: Foreign,
): SeenAccesses {
  const commandAt = (rank: number, position: number): Command => at(at(ranks, rank).commands, position);
  const isSeen = (touch: Touch, rank: number): boolean => touch.rank !== rank || foreign.conflicts([touch]);
  const flags = ranks.map(() => new Map<number, readonly boolean[]>());
  const flagsAt = (rank: number, position: number): readonly boolean[] => {
    const known =
      at(flags, rank).get(position) ?? memory.touches(commandAt(rank, position)).map((touch) => isSeen(touch, rank));
    at(flags, rank).set(position, known);
    return known;
  };
  const done = ranks.map(() => new Map<number, readonly Done[]>());
  return {
    flagsAt,
    doneAt: (rank, position) => {
      const known = at(done, rank).get(position);
      if (known !== undefined) return known;
      const command = commandAt(rank, position);
      const ofClass = keepsInputs(command, memory) ? flagsAt(at(representative, rank), position) : null;
      const made = memory
        .touches(command)
        .flatMap((touch, i): readonly Done[] =>
          (ofClass?.[i] ?? isSeen(touch, rank)) ? [{ ...touch, by: rank }] : [],
        );
      at(done, rank).set(position, made);
      return made;
    },
  };
}

/** Whether the inputs of the command's images are in its order (src/verify/classes/mapped-operands.ts). */
function keepsInputs(command: Command, { kernels }: DraftMemory): boolean {
  if (command.kind !== "launch") return true;
  const buffers = new Set(command.inputs.map(({ buffer }) => buffer));
  return at(kernels, command.kernel).kind !== "combine" && buffers.size === command.inputs.length;
}
