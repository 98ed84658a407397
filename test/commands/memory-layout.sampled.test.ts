/** Memory: temporaries share bytes where one stream's order keeps them apart, and nowhere else. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { PlacedBuffer } from "../../src/commands/buffer.ts";
import { link } from "../../src/commands/link/link.ts";
import { bufferAlignment } from "../../src/commands/link/memory/memory-layout.ts";
import type { Program } from "../../src/commands/program.ts";
import { at } from "../../src/support/invariant.ts";
import { createRandom } from "../../src/support/random.ts";
import { buildLists, type ListBuilder } from "../machine/list-builder.ts";
import { draws } from "../support/suite.ts";

function linkOne(build: (list: ListBuilder) => void): Program {
  return link(buildLists(1, build));
}

function offsets(program: Program): readonly number[] {
  return program.buffers.map(({ offset }) => offset);
}

function temporaryBytes(program: Program): number {
  return at(program.ranks, 0).arenaBytes.temporary;
}

/** Whether two buffers share a byte; an empty one has none. */
function overlap(a: PlacedBuffer, b: PlacedBuffer): boolean {
  const [start, end] = [Math.max(a.offset, b.offset), Math.min(a.offset + a.bytes, b.offset + b.bytes)];
  return a.rank === b.rank && a.arena === b.arena && start < end;
}

describe("temporaries", () => {
  test("reuse what was freed before on the same stream", () => {
    const program = linkOne((list) => {
      const [a, b] = [list.temporary([100]), list.temporary([100])];
      list.alloc(0, a);
      list.free(0, a);
      list.alloc(0, b);
      list.free(0, b);
    });
    expect(offsets(program)).toEqual([0, 0]);
    expect(temporaryBytes(program)).toBe(512);
  });

  test("do not reuse what another stream freed", () => {
    const program = linkOne((list) => {
      const side = list.stream("side");
      const [a, b] = [list.temporary([64]), list.temporary([64])];
      list.alloc(0, a);
      list.free(0, a);
      list.alloc(side, b);
      list.free(side, b);
    });
    expect(offsets(program)).toEqual([0, 256]);
  });

  test("of two workers in turn share bytes through the caller's stream", () => {
    const program = linkOne((list) => {
      const workers = [list.stream("one"), list.stream("two")];
      for (const worker of workers) {
        list.synchronize(worker, 0);
        for (const view of [list.temporary([64]), list.temporary([64])]) {
          list.alloc(worker, view);
          list.free(worker, view);
        }
        list.synchronize(0, worker);
      }
    });
    expect(offsets(program)).toEqual([0, 0, 0, 0]);
  });

  test("of two workers at one time share none", () => {
    const program = linkOne((list) => {
      const workers = [list.stream("one"), list.stream("two")];
      for (const worker of workers) list.synchronize(worker, 0);
      for (const worker of workers) {
        const view = list.temporary([64]);
        list.alloc(worker, view);
        list.free(worker, view);
        list.synchronize(0, worker);
      }
    });
    expect(offsets(program)).toEqual([0, 256]);
  });

  test("take part of a larger hole and join holes that touch", () => {
    const program = linkOne((list) => {
      const [a, b, c, d] = [list.temporary([64]), list.temporary([64]), list.temporary([128]), list.temporary([64])];
      for (const view of [a, b]) list.alloc(0, view);
      for (const view of [b, a]) list.free(0, view);
      list.alloc(0, c);
      list.free(0, c);
      list.alloc(0, d);
    });
    expect(offsets(program)).toEqual([0, 256, 0, 0]);
    expect(temporaryBytes(program)).toBe(512);
  });

  test("that are allocated again keep their bytes until the last free", () => {
    const program = linkOne((list) => {
      const [again, other] = [list.temporary([64]), list.temporary([64])];
      list.alloc(0, again);
      list.free(0, again);
      list.alloc(0, other);
      list.alloc(0, again);
      list.free(0, again);
    });
    expect(offsets(program)).toEqual([0, 256]);
  });

  test("without alloc and free have bytes of their own", () => {
    const program = linkOne((list) => {
      const freed = list.temporary([64]);
      list.temporary([64]);
      list.alloc(0, freed);
      list.free(0, freed);
    });
    expect(offsets(program)).toEqual([0, 256]);
  });

  test("of no bytes need no place", () => {
    const program = linkOne((list) => {
      const empty = list.temporary([0, 4]);
      list.alloc(0, empty);
      list.free(0, empty);
    });
    expect(temporaryBytes(program)).toBe(0);
  });
});

describe("arenas", () => {
  test("are one per role; inputs and outputs lie apart, and each buffer is aligned", () => {
    const program = linkOne((list) => {
      list.input([3]);
      list.input([65]);
      list.input([1]);
      list.output([1]);
      list.output([1]);
    });
    expect(offsets(program)).toEqual([0, 256, 768, 0, 256]);
    expect(at(program.ranks, 0).arenaBytes).toEqual({ input: 1024, output: 512, temporary: 0, symmetric: 0 });
  });

  test("put what a peer reads or writes into the symmetric arena, and share bytes there as elsewhere", () => {
    const program = link(
      buildLists(2, (list, rank) => {
        const [own, other] = [list.temporary([4]), list.temporary([4])];
        const role = rank === 0 ? "send" : "recv";
        for (const view of [own, other]) {
          list.alloc(0, view);
          list.pair("get", role, 1 - rank, view);
          list.free(0, view);
        }
      }),
    );
    expect(program.buffers.map(({ arena }) => arena)).toEqual(["symmetric", "symmetric", "temporary", "temporary"]);
    expect(offsets(program)).toEqual([0, 0, 0, 0]);
    expect(program.ranks.map(({ arenaBytes }) => arenaBytes)).toEqual([
      { input: 0, output: 0, temporary: 0, symmetric: 256 },
      { input: 0, output: 0, temporary: 256, symmetric: 0 },
    ]);
  });

  test("of different arenas share nothing", () => {
    const program = link(
      buildLists(2, (list, rank) => {
        const [seen, own] = [list.temporary([4]), list.temporary([4])];
        for (const view of [seen, own, seen]) {
          list.alloc(0, view);
          list.free(0, view);
        }
        list.pair("get", rank === 0 ? "send" : "recv", 1 - rank, seen);
      }),
    );
    expect(program.ranks[0]?.arenaBytes).toEqual({ input: 0, output: 0, temporary: 256, symmetric: 256 });
  });
});

interface LifeOfBuffer {
  readonly stream: number;
  readonly elements: number;
  /** How many other allocs come before the free; never freed if there are fewer. */
  readonly freedAfter: number;
  readonly freeStream: number;
}

/** A random life of temporaries on a few streams: allocs and frees in any order that a program may have. */
const lives: fc.Arbitrary<readonly LifeOfBuffer[]> = fc.array(
  fc.record({ stream: fc.nat(2), elements: fc.nat(300), freedAfter: fc.nat(6), freeStream: fc.nat(2) }),
  { minLength: 1, maxLength: 25 },
);

interface Mark {
  readonly kind: "alloc" | "free";
  readonly buffer: number;
  readonly stream: number;
}

function marksOf(buffers: readonly LifeOfBuffer[]): readonly Mark[] {
  return buffers.flatMap(({ stream }, now) => [
    ...buffers
      .slice(0, now)
      .map(({ freeStream }, buffer): Mark => ({ kind: "free", buffer, stream: freeStream }))
      .filter(({ buffer }) => buffer + 1 + at(buffers, buffer).freedAfter === now),
    { kind: "alloc", buffer: now, stream },
  ]);
}

function linkMarks(marks: readonly Mark[], sizes: readonly number[]): Program {
  return linkOne((list) => {
    list.stream("one");
    list.stream("two");
    const views = sizes.map((elements) => list.temporary([elements]));
    for (const { kind, buffer, stream } of marks) list[kind](stream, at(views, buffer));
  });
}

test("buffers overlap only if one is freed before the other's alloc on the same stream", () => {
  fc.assert(
    fc.property(lives, (buffers) => {
      const marks = marksOf(buffers);
      const program = linkMarks(
        marks,
        buffers.map(({ elements }) => elements),
      );
      const apart = (first: number, second: number): boolean => {
        const free = marks.findIndex(({ kind, buffer }) => kind === "free" && buffer === first);
        const alloc = marks.findIndex(({ kind, buffer }) => kind === "alloc" && buffer === second);
        return free !== -1 && free < alloc && at(marks, free).stream === at(marks, alloc).stream;
      };
      for (const a of program.buffers) {
        expect(a.offset % bufferAlignment).toBe(0);
        expect(a.offset + a.bytes).toBeLessThanOrEqual(temporaryBytes(program));
        for (const b of program.buffers) {
          if (a.id < b.id && overlap(a, b)) expect(apart(a.id, b.id) || apart(b.id, a.id)).toBe(true);
        }
      }
    }),
    draws({ quick: 250, long: 1000 }),
  );
});

test("buffers of streams that meet overlap only if one is freed before the other's alloc", () => {
  const meetings = fc.array(fc.record({ stream: fc.integer({ min: 1, max: 2 }), enters: fc.boolean() }), {
    maxLength: 3,
  });
  let shared = 0;
  fc.assert(
    fc.property(lives, fc.array(meetings, { minLength: 25, maxLength: 25 }), (buffers, between) => {
      const marks = marksOf(buffers).map((mark) => ({ ...mark, stream: at(buffers, mark.buffer).stream }));
      const program = linkOne((list) => {
        list.stream("one");
        list.stream("two");
        const views = buffers.map(({ elements }) => list.temporary([elements]));
        for (const [i, { kind, buffer, stream }] of marks.entries()) {
          for (const { stream: worker, enters } of between[i] ?? []) list.synchronize(...inTurn(worker, enters));
          list[kind](stream, at(views, buffer));
        }
      });
      const isBefore = orderOf(program);
      const { commands } = at(program.ranks, 0);
      const place = (kind: string, id: number): number =>
        commands.findIndex((each) => each.kind === kind && "buffer" in each && each.buffer === id);
      const apart = (first: number, second: number): boolean => {
        const free = place("free", first);
        return free !== -1 && isBefore(free, place("alloc", second));
      };
      for (const a of program.buffers) {
        for (const b of program.buffers) {
          if (a.id >= b.id || !overlap(a, b)) continue;
          expect(apart(a.id, b.id) || apart(b.id, a.id)).toBe(true);
          if (at(buffers, a.id).stream !== at(buffers, b.id).stream) shared++;
        }
      }
    }),
    draws({ quick: 125, long: 500 }),
  );
  expect(shared).toBeGreaterThan(0);
});

/** The stream that waits, and the one that it waits for. */
function inTurn(worker: number, enters: boolean): [number, number] {
  return enters ? [worker, 0] : [0, worker];
}

/** Whether streams and events order two commands of the only rank. */
function orderOf(program: Program): (first: number, second: number) => boolean {
  const { commands } = at(program.ranks, 0);
  const recordedAt = new Map<number, number>();
  const lastOf = new Map<number, number>();
  const before: ReadonlySet<number>[] = [];
  for (const [position, command] of commands.entries()) {
    const direct = [lastOf.get(command.stream)];
    if (command.kind === "recordEvent") recordedAt.set(command.event, position);
    if (command.kind === "waitEvent") direct.push(recordedAt.get(command.event));
    const known = direct.filter((each) => each !== undefined);
    before.push(new Set(known.flatMap((each) => [each, ...at(before, each)])));
    lastOf.set(command.stream, position);
  }
  return (first, second) => at(before, second).has(first);
}

test("smaller buffers with the same lives never need a larger arena", () => {
  // Most keep their size: where all shrink, the arena has room for gaps.
  const share = fc.oneof(
    { weight: 4, arbitrary: fc.constant(1) },
    { weight: 1, arbitrary: fc.double({ min: 0, max: 1, noNaN: true }) },
  );
  const shares = fc.array(share, { minLength: 25, maxLength: 25 });
  fc.assert(
    fc.property(lives, shares, (buffers, kept) => {
      const marks = marksOf(buffers);
      const sizes = buffers.map(({ elements }) => 64 * elements);
      const smaller = sizes.map((size, i) => Math.floor(size * at(kept, i)));
      expect(temporaryBytes(linkMarks(marks, smaller))).toBeLessThanOrEqual(temporaryBytes(linkMarks(marks, sizes)));
    }),
    draws({ quick: 125, long: 500 }),
  );
});

test("one stream's buffers of any sizes need at most a twentieth more than live at once, on average", () => {
  const random = createRandom(5);
  let [needed, alive] = [0, 0];
  for (let run = 0; run < 50; run++) {
    const buffers = Array.from({ length: 30 }, () => {
      return { stream: 0, elements: 64 * (1 + random.integer(40)), freedAfter: random.integer(12), freeStream: 0 };
    });
    const marks = marksOf(buffers);
    needed += temporaryBytes(
      linkMarks(
        marks,
        buffers.map(({ elements }) => elements),
      ),
    );
    let [now, most] = [0, 0];
    for (const { kind, buffer } of marks) {
      now += (kind === "alloc" ? 4 : -4) * at(buffers, buffer).elements;
      most = Math.max(most, now);
    }
    alive += most;
  }
  expect(needed).toBeGreaterThanOrEqual(alive);
  expect(needed / alive).toBeLessThan(1.05);
});
