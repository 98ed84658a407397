/**
 * Whether a Program is another one with one more of its equal layers, so that a proof of both is one of every further
 * number of layers (classes/README.md, "Layers").
 *
 *     few:  A B B C | D E E F        more:  A B [B] B C | D E [E] E F
 *
 * The lists of every rank are aligned by what their commands are, without numbers. What a command refers to (who makes
 * the buffer, records the event, gives the signal or takes part in the transfer) must then be the same in both, or one
 * layer further, and each layer that is new must refer as the one after or before it does.
 */
import type { BufferId, BufferRef } from "../commands/buffer.ts";
import { transferViews } from "../commands/collectives.ts";
import type { Command } from "../commands/command.ts";
import type { Program } from "../commands/program.ts";
import type { View } from "../commands/view.ts";
import { exactText } from "../support/exact-text.ts";
import { at, getOrMake, unreachable } from "../support/invariant.ts";

export function hasOneLayerMore(few: Program, more: Program): boolean {
  if (few.ranks.length !== more.ranks.length) return false;
  const numbers = new Map<string, number>();
  const [own, longer] = [described(few, numbers), described(more, numbers)];
  const gaps = few.ranks.map((_, rank) => gapsOf(at(own.forms, rank), at(longer.forms, rank)));
  const count = gaps[0]?.length ?? 0;
  if (!gaps.every((each): each is readonly Repetition[] => each?.length === count) || count === 0) return false;
  // Any of the equal layers can be the new one.
  return combinations(at(gaps, 0).map(({ repeats }) => repeats)).some((shifts) =>
    isExtended(
      own,
      longer,
      gaps.map((all) => all.map(({ start, length }, i) => ({ start: start - at(shifts, i) * length, length }))),
    ),
  );
}

/** All lists of numbers from 0 to one of the given ones each. */
function combinations(most: readonly number[]): readonly (readonly number[])[] {
  return most.reduce<readonly (readonly number[])[]>(
    (lists, last) => lists.flatMap((list) => Array.from({ length: last + 1 }, (_, number) => [...list, number])),
    [[]],
  );
}

/** Runs of layers, as of the forward and of the backward pass. */
const mostRuns = 6;

interface Described {
  /** By rank and command: equal for commands that are equal but for what they refer to. */
  readonly forms: readonly (readonly number[])[];
  /** By rank: the number of its first command among those of all ranks. */
  readonly bases: readonly number[];
  /** By command of all ranks: the commands that it refers to, each followed by which operand is meant there. */
  readonly references: readonly (readonly number[])[];
}

function described(
  { buffers, kernels, transfers, slots, ...program }: Program,
  numbers: Map<string, number>,
): Described {
  const bases: number[] = [];
  let total = 0;
  for (const { commands } of program.ranks) {
    bases.push(total);
    total += commands.length;
  }
  const orders = program.ranks.map(({ commands }) => canonicalOrder(commands));
  const nodes = orders.map((order, rank) => {
    const own: number[] = [];
    for (const [i, position] of order.entries()) own[position] = at(bases, rank) + i;
    return own;
  });
  const ranks = program.ranks.map(({ rank, commands, transferOf }) => ({
    rank,
    commands: at(orders, rank).map((position) => at(commands, position)),
    transferOf: at(orders, rank).map((position) => transferOf[position] ?? null),
  }));
  const numberOf = (text: string): number => getOrMake(numbers, text, () => numbers.size);
  const kernelForms = kernels.map((kernel) => numberOf(exactText(kernel)));
  const bufferForms = buffers.map(({ role, arena, bytes, dtype, shape, output, rank }) =>
    numberOf(exactText([role, arena, bytes, dtype, shape, output === undefined, rank])),
  );
  /** By buffer: the first command of its own rank that names it, else of any, and the operand there. */
  const homes = new Map<BufferId, readonly [node: number, operand: number]>();
  const records = ranks.map(() => new Map<number, number>());
  /** By slot: the signals, in order. */
  const signals = slots.map((): number[] => []);
  for (const { rank, commands } of ranks) {
    for (const [i, command] of commands.entries()) {
      const node = at(bases, rank) + i;
      for (const [operand, { buffer }] of operandsOf(command).entries()) {
        const home = homes.get(buffer);
        const isBetter = home === undefined || (at(buffers, buffer).rank === rank && home[0] < at(bases, rank));
        if (isBetter) homes.set(buffer, [node, operand]);
      }
      if (command.kind === "recordEvent") at(records, rank).set(command.event, node);
      else if (command.kind === "signal") at(signals, command.slot).push(node);
    }
  }
  const [given, taken] = [slots.map(() => 0), slots.map(() => 0)];
  const references = (command: Command, node: number, rank: number): readonly number[] => {
    switch (command.kind) {
      case "alloc":
      case "free":
      case "launch":
      case "copy":
        return operandsOf(command).flatMap(({ buffer }) => homes.get(buffer) ?? []);
      case "recordEvent":
        return [];
      case "waitEvent":
        return [at(records, rank).get(command.event) ?? -1, 0];
      case "signal": {
        const turn = at(given, command.slot);
        given[command.slot] = turn + 1;
        return [at(signals, command.slot)[turn - 1] ?? node, 0];
      }
      case "waitSignal": {
        const turn = at(taken, command.slot);
        taken[command.slot] = turn + 1;
        return [at(signals, command.slot)[turn] ?? -1, 0];
      }
      case "transfer": {
        const id = at(at(ranks, rank).transferOf, node - at(bases, rank));
        const met = id === null ? [] : at(transfers, id).participants;
        return [
          ...operandsOf(command).flatMap(({ buffer }) => homes.get(buffer) ?? []),
          ...met.flatMap((each) => [at(at(nodes, each.rank), each.command), 0]),
        ];
      }
      default:
        return unreachable(command);
    }
  };
  const formOf = (command: Command): number => {
    const { stream, kind } = command;
    const own = operandsOf(command).map(({ buffer, offset }) => [at(bufferForms, buffer), offset]);
    const rest = ((): unknown => {
      switch (command.kind) {
        case "launch":
          return [at(kernelForms, command.kernel), command.inputs.length, command.origins, command.smMargin];
        case "copy":
          return [command.source, command.destination].map(boxOf);
        case "transfer": {
          const { communicator, operation } = command;
          if (operation.kind === "group")
            return [communicator, operation.ops.map(({ type, peer, view }) => [type, peer, boxOf(view)])];
          const { type, team, wholeTeam, root, reduceOp, input, output } = operation;
          return [communicator, type, team, wholeTeam, root, reduceOp, input && boxOf(input), output && boxOf(output)];
        }
        case "signal":
        case "waitSignal": {
          const { signaller, waiter } = at(slots, command.slot);
          return [signaller, waiter];
        }
        case "recordEvent":
        case "waitEvent":
        case "alloc":
        case "free":
          return null;
        default:
          return unreachable(command);
      }
    })();
    return numberOf(exactText([kind, stream, own, rest]));
  };
  return {
    forms: ranks.map(({ commands }) => commands.map(formOf)),
    bases,
    references: ranks.flatMap(({ rank, commands }) =>
      commands.map((command, i) => references(command, at(bases, rank) + i, rank)),
    ),
  };
}

/** The positions of a list in order, but of allocs and frees in a row, that of the buffer that is used first. */
function canonicalOrder(commands: readonly Command[]): readonly number[] {
  const firstUses = new Map<BufferId, number>();
  for (const [i, command] of commands.entries()) {
    if (isLifetime(command)) continue;
    for (const { buffer } of operandsOf(command)) if (!firstUses.has(buffer)) firstUses.set(buffer, i);
  }
  const useOf = (position: number): number => {
    const command = at(commands, position);
    return isLifetime(command) ? (firstUses.get(command.buffer) ?? 0) : 0;
  };
  const order: number[] = [];
  for (let i = 0; i < commands.length;) {
    const { kind, stream } = at(commands, i);
    let end = i + 1;
    if (kind === "alloc" || kind === "free")
      while (commands[end]?.kind === kind && commands[end]?.stream === stream) end++;
    const row = Array.from({ length: end - i }, (_, k) => i + k);
    order.push(...row.toSorted((a, b) => useOf(a) - useOf(b)));
    i = end;
  }
  return order;
}

function isLifetime(command: Command): command is Extract<Command, { readonly kind: "alloc" | "free" }> {
  return command.kind === "alloc" || command.kind === "free";
}

function operandsOf(command: Command): readonly BufferRef[] {
  switch (command.kind) {
    case "launch":
      return [...command.inputs, ...command.outputs];
    case "copy":
      return [command.source, command.destination];
    case "transfer":
      return transferViews(command.operation);
    case "alloc":
    case "free":
      return [{ buffer: command.buffer, offset: 0 }];
    case "recordEvent":
    case "waitEvent":
    case "signal":
    case "waitSignal":
      return [];
    default:
      return unreachable(command);
  }
}

/** What is known of a view without its buffer. */
function boxOf({ dtype, shape, strides }: View): unknown {
  return [dtype, shape, strides];
}

/** Commands of the longer list that the shorter one lacks. */
interface Gap {
  readonly start: number;
  readonly length: number;
}

interface Repetition extends Gap {
  /** How often the same stands before it, without a gap. */
  readonly repeats: number;
}

/** Where the longer list repeats what stands before, each as late as it can be; null if it is not the shorter one else. */
function gapsOf(few: readonly number[], more: readonly number[]): readonly Repetition[] | null {
  const gaps: Repetition[] = [];
  let own = 0;
  for (let start = 0; start < more.length;) {
    if (few[own] === more[start]) {
      own++;
      start++;
      continue;
    }
    const isGap = (length: number): boolean =>
      isSame(more, start - length, more, start, length) && isSame(few, own, more, start + length, length);
    const most = Math.min(start, more.length - few.length);
    let length = 1;
    while (length <= most && !isGap(length)) length++;
    if (length > most || gaps.length === mostRuns) return null;
    let repeats = 1;
    while (start >= (repeats + 1) * length && isSame(more, start - (repeats + 1) * length, more, start, length))
      repeats++;
    gaps.push({ start, length, repeats });
    start += length;
  }
  return own === few.length ? gaps : null;
}

/** Whether lists have the same from two positions on, for so many items or to the end of both. */
function isSame(a: readonly number[], from: number, b: readonly number[], to: number, length: number): boolean {
  for (let i = 0; i < length; i++) if (a[from + i] !== b[to + i]) return false;
  return true;
}

interface Run extends Gap {
  /** Among those of its rank. */
  readonly index: number;
}

interface Alignment {
  /** By command of `more`: the one of `few`, or null in a gap. */
  readonly toFew: (node: number) => number | null;
  /** The run of layers around a gap that has a command: the one in the gap, and one on each side. */
  readonly runOf: (node: number) => Run | null;
  /** How many gaps of its rank begin before a command. */
  readonly passed: (node: number) => number;
}

function aligned(few: Described, more: Described, gaps: readonly (readonly Gap[])[]): Alignment {
  const images: (number | null)[] = [];
  const runs: (Run | null)[] = [];
  const passed: number[] = [];
  for (const [rank, forms] of more.forms.entries()) {
    const own = at(gaps, rank).map((gap, index): Run => ({ ...gap, index }));
    let image = at(few.bases, rank);
    for (let i = 0; i < forms.length; i++) {
      const isIn = ({ start, length }: Gap, around: number): boolean =>
        start - around * length <= i && i < start + (1 + around) * length;
      const isNew = own.some((gap) => isIn(gap, 0));
      images.push(isNew ? null : image++);
      runs.push(own.find((gap) => isIn(gap, 0)) ?? own.find((gap) => isIn(gap, 1)) ?? null);
      passed.push(own.filter(({ start }) => start <= i).length);
    }
  }
  return {
    toFew: (node) => images[node] ?? null,
    runOf: (node) => runs[node] ?? null,
    passed: (node) => at(passed, node),
  };
}

/** Whether what `few` refers to is in `more` the same or one layer further, and new layers refer as others do. */
function isExtended(few: Described, more: Described, gaps: readonly (readonly Gap[])[]): boolean {
  const { toFew, runOf, passed } = aligned(few, more, gaps);
  const forms = more.forms.flat();
  const isAlike = (node: number, twin: number): boolean => {
    const [a, b] = [at(more.references, node), more.references[node + twin]];
    const own = runOf(node);
    return (
      a.length === b?.length &&
      forms[node] === forms[node + twin] &&
      a.every((from, i) => {
        const [to, run] = [at(b, i), runOf(from)];
        if (i % 2 === 1 || run === null) return from === to;
        const by = to - from;
        return run.index === own?.index ? by === Math.sign(twin) * run.length : Math.abs(by) === run.length;
      })
    );
  };
  return more.references.every((own, node) => {
    const image = toFew(node);
    if (image !== null) {
      const others = at(few.references, image);
      return (
        own.length === others.length && own.every((each, i) => (i % 2 === 1 ? each : near(each, node)) === others[i])
      );
    }
    const run = runOf(node);
    // The first and the last layer may refer to what precedes and follows them.
    return run !== null && (isAlike(node, run.length) || isAlike(node, -run.length));
  });

  /** Of what `reader` refers to in a new layer: the same in the layer before that. */
  function near(node: number, reader: number): number | null {
    const run = runOf(node);
    return toFew(node) ?? (run !== null && run.index < passed(reader) ? toFew(node - run.length) : null);
  }
}
