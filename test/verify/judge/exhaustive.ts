/**
 * Every order in which a small World can run, by search: commands that touch memory, and transfers, take two steps,
 * start and completion. What races here is what is under way at the same time in some reachable state; nothing is held
 * and nothing is inferred.
 */
import { at, invariant } from "../../../src/support/invariant.ts";
import type { Program } from "../../../src/commands/program.ts";
import { createMemory, type Ranges } from "./bytes.ts";
import { createWorld, type World } from "./world.ts";

export interface Found {
  readonly deadlock: boolean;
  readonly overrun: boolean;
  /** As the judge writes them. */
  readonly races: readonly string[];
  readonly states: number;
}

/** Null where there are more than `most` states. */
export function searchAll(program: Program, runs: number, mode: "eager" | "synchronous", most: number): Found | null {
  const world = createWorld(program, runs);
  const { nodes, queues, slotCount } = world;
  const conflicts = conflictTable(world);
  const races = new Set<string>();
  let deadlock = false;
  let overrun = false;
  // A state: per queue twice its cursor, plus one if its head is under way; then the slots. Events follow from the cursors.
  const first: Uint8Array = new Uint8Array(queues.length + slotCount);
  const seen = new Set<string>([key(first)]);
  const open = [first];
  const placeOf = new Map(
    queues.flatMap((queue, q) => queue.map((id, at): [number, readonly [number, number]] => [id, [q, at]])),
  );
  const recordOf = new Map(
    nodes.flatMap(({ work }, id): [number, number][] => (work.kind === "record" ? [[work.event, id]] : [])),
  );
  const hasStarted = (state: Uint8Array, id: number): boolean => {
    const [q, position] = required(placeOf.get(id));
    return at(state, q) > 2 * position;
  };
  const hasCompleted = (state: Uint8Array, id: number): boolean => {
    const [q, position] = required(placeOf.get(id));
    return at(state, q) >= 2 * (position + 1);
  };
  const turn = (state: Uint8Array, kind: "signal" | "take", slot: number): number =>
    nodes.filter(({ work }, id) => work.kind === kind && work.slot === slot && hasCompleted(state, id)).length;
  while (open.length > 0) {
    const state = required(open.pop());
    const underWay: number[] = [];
    let moved = false;
    const visit = (next: Uint8Array): void => {
      moved = true;
      const text = key(next);
      if (seen.has(text)) return;
      seen.add(text);
      open.push(next);
    };
    const advanced = (q: number, by: number): Uint8Array => {
      const next = state.slice();
      next[q] = at(next, q) + by;
      return next;
    };
    queues.forEach((queue, q) => {
      const position = at(state, q) >> 1;
      const id = queue[position];
      if (id === undefined) return;
      const { work } = at(nodes, id);
      const isUnderWay = (at(state, q) & 1) === 1;
      if (isUnderWay) underWay.push(id);
      switch (work.kind) {
        case "memory":
          return visit(advanced(q, 1));
        case "transfer":
          if (!isUnderWay || work[mode].every((other) => hasStarted(state, other))) visit(advanced(q, 1));
          return;
        case "record":
          return visit(advanced(q, 2));
        case "wait": {
          const record = recordOf.get(work.event);
          if (record !== undefined && hasCompleted(state, record)) visit(advanced(q, 2));
          return;
        }
        case "signal": {
          if (state[queues.length + work.slot] === 1 || turn(state, "signal", work.slot) !== work.turn) {
            overrun = true;
            return;
          }
          const next = advanced(q, 2);
          next[queues.length + work.slot] = 1;
          return visit(next);
        }
        case "take": {
          if (state[queues.length + work.slot] !== 1) return;
          if (turn(state, "take", work.slot) !== work.turn) {
            overrun = true;
            return;
          }
          const next = advanced(q, 2);
          next[queues.length + work.slot] = 0;
          return visit(next);
        }
      }
    });
    for (const a of underWay) for (const b of underWay) if (a < b && conflicts.has(`${a} ${b}`)) races.add(`${a} ${b}`);
    if (!moved && queues.some((queue, q) => at(state, q) < 2 * queue.length)) deadlock = true;
    if (seen.size > most) return null;
  }
  return { deadlock, overrun, races: [...races].toSorted(), states: seen.size };
}

function required<T>(value: T | undefined): T {
  invariant(value !== undefined, "every node has a place");
  return value;
}

function key(state: Uint8Array): string {
  return String.fromCharCode(...state);
}

function conflictTable(world: World): ReadonlySet<string> {
  const memory = createMemory(world.program);
  const bytes = (ranges: Ranges): Set<number> => {
    const set = new Set<number>();
    for (let i = 0; i < ranges.length; i += 2) for (let a = at(ranges, i); a < at(ranges, i + 1); a++) set.add(a);
    return set;
  };
  const touched = world.nodes.map(({ reads, writes }) => ({
    reads: bytes(memory.ranges(reads)),
    writes: bytes(memory.ranges(writes)),
  }));
  const meets = (a: ReadonlySet<number>, b: ReadonlySet<number>): boolean => [...a].some((byte) => b.has(byte));
  const conflicts = new Set<string>();
  touched.forEach((one, a) => {
    touched.forEach((other, b) => {
      if (a >= b) return;
      if (meets(one.writes, other.writes) || meets(one.writes, other.reads) || meets(one.reads, other.writes)) {
        conflicts.add(`${a} ${b}`);
      }
    });
  });
  return conflicts;
}
