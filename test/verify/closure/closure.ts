/**
 * A third opinion on Programs, beside the verifier's and the judge's: the order of all commands of two runs as an
 * explicit relation (order.ts), and for each byte the commands that touch it (touched-bytes.ts). It shares with the
 * sources the types of a Program, the widths of dtypes and nothing else: no regions, accesses, clocks or sweep.
 */
import type { LinkedTransfer, Program } from "../../../src/commands/program.ts";
import { at } from "../../../src/support/invariant.ts";
import type { Verdict } from "../judge/judge.ts";
import { hasWrongLifetimes } from "./lifetimes.ts";
import { type Order, orderOf, type Visit, visitsOf } from "./order.ts";
import { placesOf, type Touched, touchedBytes } from "./touched-bytes.ts";

export interface ClosureVerdict extends Verdict {
  /** A wait for an event that its list does not record, or records twice. */
  readonly unknownEvent: boolean;
  /** A wait for an event that its list records later. */
  readonly lateEvent: boolean;
  /** An operand reaches outside its buffer, or overlaps another one. */
  readonly operands: boolean;
}

const runs = 2;

const clean: Omit<ClosureVerdict, "ok"> = {
  deadlock: false,
  needsConcurrency: false,
  overrun: false,
  races: [],
  uninitialised: false,
  lifetime: false,
  unbalanced: false,
  unknownEvent: false,
  lateEvent: false,
  operands: false,
};

export function decideByClosure(program: Program): ClosureVerdict {
  const visits = visitsOf(program, runs);
  const touched = touchedBy(program, visits);
  const events = eventsOf(program);
  const found = {
    ...clean,
    unbalanced: isUnbalanced(program),
    unknownEvent: events.unknown,
    lateEvent: events.late,
    operands: touched.some(({ outside, overlaps }) => outside || overlaps),
  };
  if (found.unbalanced || found.unknownEvent) return { ...found, ok: false };
  if (orderOf(program, visits, "synchronous") === null) return { ...found, deadlock: true, ok: false };
  const order = orderOf(program, visits, "eager");
  if (order === null) throw new Error("fewer edges have a cycle");
  const needsConcurrency = orderOf(program, visits, "one queue") === null;
  const overrun = isOverrun(program, visits, order);
  const ordered = { ...found, needsConcurrency, overrun };
  const { races, uninitialised } = lookAtBytes(visits, touched, order);
  const lifetime = races.length === 0 && hasWrongLifetimes(program, visits, touched, order);
  const ok =
    !found.operands &&
    !found.lateEvent &&
    !needsConcurrency &&
    !overrun &&
    races.length === 0 &&
    !uninitialised &&
    !lifetime;
  return { ...ordered, races, uninitialised, lifetime, ok };
}

function isUnbalanced({ ranks, slots }: Program): boolean {
  const balance = slots.map(() => 0);
  for (const { commands } of ranks) {
    for (const command of commands) {
      if (command.kind === "signal") balance[command.slot] = at(balance, command.slot) + 1;
      if (command.kind === "waitSignal") balance[command.slot] = at(balance, command.slot) - 1;
    }
  }
  return balance.some((count) => count !== 0);
}

/** unknown: some wait has no event, or two. late: some event is recorded after a wait for it, in list order. */
function eventsOf({ ranks }: Program): { readonly unknown: boolean; readonly late: boolean } {
  let [unknown, late] = [false, false];
  for (const { commands } of ranks) {
    const recorded = new Map<number, number>();
    for (const [index, command] of commands.entries()) {
      if (command.kind !== "recordEvent") continue;
      unknown ||= recorded.has(command.event);
      recorded.set(command.event, index);
    }
    for (const [index, command] of commands.entries()) {
      if (command.kind !== "waitEvent") continue;
      const record = recorded.get(command.event);
      unknown ||= record === undefined;
      late ||= record !== undefined && record > index;
    }
  }
  return { unknown, late };
}

/** The n-th wait on a slot takes the n-th signal only if the next signal and the next wait come after it. */
function isOverrun({ slots }: Program, visits: readonly Visit[], { before }: Order): boolean {
  const of = (kind: string): readonly (readonly number[])[] => {
    const lists = slots.map((): number[] => []);
    for (const [v, { command }] of visits.entries()) {
      if (typeof command !== "string" && "slot" in command && command.kind === kind) at(lists, command.slot).push(v);
    }
    return lists;
  };
  const [signals, waits] = [of("signal"), of("waitSignal")];
  return waits.some((list, slot) =>
    list.slice(0, -1).some((wait, n) => !before(wait, at(list, n + 1)) || !before(wait, at(at(signals, slot), n + 1))),
  );
}

/** What each visit touches. Both runs touch the same. */
function touchedBy(program: Program, visits: readonly Visit[]): readonly Touched[] {
  const places = placesOf(program);
  const known = new Map<string, Touched>();
  const callers = program.ranks.map(({ rank }) => {
    const bytes = (role: string): ReadonlySet<number> =>
      new Set(
        program.buffers.flatMap((buffer, id) => {
          const [start, end] = at(places, id);
          return buffer.rank === rank && buffer.role === role
            ? Array.from({ length: end - start }, (_, i) => start + i)
            : [];
        }),
      );
    return { inputs: bytes("input"), outputs: bytes("output") };
  });
  const none = new Set<number>();
  return visits.map(({ rank, index, command }) => {
    const { inputs, outputs } = at(callers, rank);
    if (command === "callerWrites") return { reads: none, writes: inputs, outside: false, overlaps: false };
    if (command === "callerReads") return { reads: outputs, writes: none, outside: false, overlaps: false };
    const key = `${rank} ${index}`;
    const touched = known.get(key) ?? touchedBytes(program, places, command, transferOf(program, rank, index), rank);
    known.set(key, touched);
    return touched;
  });
}

function transferOf({ ranks, transfers }: Program, rank: number, index: number): LinkedTransfer | null {
  const id = at(ranks, rank).transferOf[index] ?? null;
  return id === null ? null : at(transfers, id);
}

interface Uses {
  readonly reads: readonly number[];
  readonly writes: readonly number[];
}

/** The visits that touch each byte, once for all bytes that the same visits touch. */
function usesOf(touched: readonly Touched[]): readonly Uses[] {
  const uses: Uses[] = [{ reads: [], writes: [] }];
  const useOf = new Map<number, number>();
  for (const [v, visit] of touched.entries()) {
    for (const kind of ["reads", "writes"] as const) {
      const next = new Map<number, number>();
      for (const byte of visit[kind]) {
        const old = useOf.get(byte) ?? 0;
        const use = next.get(old) ?? uses.push({ ...at(uses, old), [kind]: [...at(uses, old)[kind], v] }) - 1;
        next.set(old, use);
        useOf.set(byte, use);
      }
    }
  }
  return [...new Set(useOf.values())].map((use) => at(uses, use));
}

/** Of every byte: pairs without an order of which one writes, and reads that no write of the same run precedes. */
function lookAtBytes(
  visits: readonly Visit[],
  touched: readonly Touched[],
  { before }: Order,
): { readonly races: readonly string[]; readonly uninitialised: boolean } {
  const races = new Set<string>();
  let uninitialised = false;
  for (const { reads, writes } of usesOf(touched)) {
    for (const write of writes) {
      for (const other of [...reads, ...writes]) {
        if (write === other || before(write, other) || before(other, write)) continue;
        races.add(`${Math.min(write, other)} ${Math.max(write, other)}`);
      }
    }
    for (const read of reads) {
      const { run } = at(visits, read);
      const earlier = writes.filter((write) => at(visits, write).run === run && before(write, read));
      const last = earlier.find((write) => earlier.every((other) => other === write || before(other, write)));
      if (last === undefined || undefines(at(visits, last))) uninitialised = true;
    }
  }
  return { races: [...races], uninitialised: races.size === 0 && uninitialised };
}

function undefines({ command }: Visit): boolean {
  return typeof command !== "string" && (command.kind === "alloc" || command.kind === "free");
}
