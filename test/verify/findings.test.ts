/** Each finding on hand-made lists: the mistake, and beside it the same lists without it. */
import { describe, expect, test } from "vitest";
import { type CommandList, type Finding, link, verify } from "@braid-compiler/braid";
import { contiguousStrides } from "../../src/commands/view.ts";
import { at } from "../../src/support/invariant.ts";
import { buildLists, type ListBuilder } from "../machine/list-builder.ts";
import { verifyLists } from "../support/verify-lists.ts";

type Build = (list: ListBuilder, rank: number) => void;

function errors(lists: readonly CommandList[]): readonly Finding[] {
  const report = verifyLists(lists);
  const found = report.findings.filter(({ severity }) => severity === "error");
  expect(report.ok).toBe(found.length === 0);
  return found;
}

function codes(world: number, build: Build): readonly string[] {
  return errors(buildLists(world, build)).map(({ code }) => code);
}

describe("data-race", () => {
  const sideStream =
    (joins: { readonly start: boolean; readonly middle: boolean; readonly end: boolean }): Build =>
    (list) => {
      const [side, other] = [list.stream("side"), list.stream("other")];
      const [a, t, c] = [list.input([4]), list.temporary([4]), list.output([4])];
      list.alloc(0, t);
      if (joins.start) list.synchronize(side, 0);
      list.copy(side, a, t);
      if (joins.middle) list.synchronize(other, side);
      list.copy(other, t, c);
      if (joins.end) list.synchronize(0, other);
      if (joins.end) list.synchronize(0, side);
      list.free(0, t);
    };

  test("joined on both ends and in between: nothing", () => {
    expect(codes(1, sideStream({ start: true, middle: true, end: true }))).toEqual([]);
  });

  test("a reader that does not wait for the writer", () => {
    const found = errors(buildLists(1, sideStream({ start: true, middle: false, end: true })));
    expect(found.map(({ code }) => code)).toContain("data-race");
    const race = at(
      found.filter(({ code, memory }) => code === "data-race" && memory?.tensor === "T1"),
      0,
    );
    expect(race.message).toBe("a write and a read of T1 on rank 0 have no order");
    expect(race.commands.map(({ streamName }) => streamName)).toEqual(["side", "other"]);
    expect(race.memory).toEqual({ rank: 0, tensor: "T1", slice: "T1[:]", bytes: 16 });
    expect(race.missingEdge?.from.streamName).toBe("side");
  });

  test("a side stream that does not wait for the caller (the initial synchronization)", () => {
    const found = errors(buildLists(1, sideStream({ start: false, middle: true, end: true })));
    const race = at(
      found.filter(({ memory }) => memory?.tensor === "T0"),
      0,
    );
    expect(race.code).toBe("data-race");
    expect(race.commands.map(({ kind }) => kind)).toEqual(["callerWrites", "copy"]);
  });

  test("an output that the caller reads before its writer is joined", () => {
    const found = errors(buildLists(1, sideStream({ start: true, middle: true, end: false })));
    const race = at(
      found.filter(({ memory }) => memory?.tensor === "T2"),
      0,
    );
    expect(race.commands.map(({ kind }) => kind)).toEqual(["copy", "callerReads"]);
    expect(race.help).toBe("Synchronize other with caller before the program ends");
  });

  test("strided regions that interleave share nothing", () => {
    const columns: Build = (list) => {
      const side = list.stream("side");
      const [a, c] = [list.input([8, 4]), list.output([8, 4])];
      const half = (view: typeof a, start: number): typeof a => ({
        ...view,
        offset: view.offset + 4 * start,
        shape: [8, 2],
      });
      list.synchronize(side, 0);
      list.copy(0, half(a, 0), half(c, 0));
      list.copy(side, half(a, 2), half(c, 2));
      list.synchronize(0, side);
    };
    expect(codes(1, columns)).toEqual([]);
  });

  test("strided regions that share one column are named by it", () => {
    const lists = buildLists(1, (list) => {
      const side = list.stream("side");
      const [a, c] = [list.input([8, 4]), list.output([8, 4])];
      const part = (view: typeof a, start: number, count: number): typeof a => ({
        ...view,
        offset: view.offset + 4 * start,
        shape: [8, count],
      });
      list.synchronize(side, 0);
      list.copy(0, part(a, 0, 3), part(c, 0, 3));
      list.copy(side, part(a, 2, 2), part(c, 2, 2));
      list.synchronize(0, side);
    });
    const [race] = errors(lists);
    expect(race?.code).toBe("data-race");
    expect(race?.memory).toEqual({ rank: 0, tensor: "T1", slice: "T1[:, 2]", bytes: 32 });
  });
});

describe("peer memory", () => {
  const get =
    (signals: { readonly done: boolean }): Build =>
    (list, rank) => {
      const a = list.input([4]);
      const staged = list.temporary([4], "symmetric");
      const got = list.output([4]);
      if (rank === 0) {
        const pair = list.pair("get", "send", 1, staged);
        list.alloc(0, staged);
        list.copy(0, a, staged);
        list.signalPeer(0, pair, "ready");
        if (signals.done) list.waitPeer(0, pair, "done");
        list.free(0, staged);
        list.copy(0, a, got);
      } else {
        const pair = list.pair("get", "recv", 0, got);
        list.waitPeer(0, pair, "ready");
        list.copyPeer(0, pair);
        if (signals.done) list.signalPeer(0, pair, "done");
      }
    };

  test("a get that the sender waits for: nothing", () => {
    expect(codes(2, get({ done: true }))).toEqual([]);
  });

  test("a buffer that is freed while a lagging peer reads it", () => {
    const found = errors(buildLists(2, get({ done: false })));
    const lifetime = at(
      found.filter(({ code }) => code === "freed-in-use"),
      0,
    );
    expect(lifetime.commands.map(({ rank, kind }) => [rank, kind])).toEqual([
      [1, "copy"],
      [0, "free"],
    ]);
    expect(lifetime.message).toBe("T1 on rank 0 may be freed while it is still read");
  });
});

describe("transfers", () => {
  const allgather =
    (waits: boolean): Build =>
    (list) => {
      const lane = list.stream("nccl", "communicator");
      const [a, all, c] = [list.input([4]), list.temporary([2, 4]), list.output([2, 4])];
      list.alloc(0, all);
      list.synchronize(lane, 0);
      list.collective(lane, "Allgather", { team: [0, 1], input: a, output: all });
      const done = list.record(lane);
      if (waits) list.wait(0, done);
      list.copy(0, all, c);
      list.free(0, all);
    };

  test("waited for: nothing", () => expect(codes(2, allgather(true))).toEqual([]));

  test("transfer-not-waited: the result is used without a Wait", () => {
    const found = errors(buildLists(2, allgather(false)));
    const first = at(
      found.filter(({ code, memory }) => code === "transfer-not-waited" && memory?.tensor === "T1"),
      0,
    );
    expect(first.commands.map(({ kind }) => kind)).toEqual(["transfer", "copy"]);
    expect(first.occurrences).toBe(2);
  });

  test("data-race: another stream has the Wait, and is not synchronized with", () => {
    const lists = buildLists(2, (list) => {
      const [lane, worker] = [list.stream("nccl", "communicator"), list.stream("worker 0")];
      const [a, all, c] = [list.input([4]), list.temporary([2, 4]), list.output([2, 4])];
      list.alloc(0, all);
      list.synchronize(worker, 0);
      list.synchronize(lane, worker);
      list.statement("Allgather").collective(lane, "Allgather", { team: [0, 1], input: a, output: all });
      list.wait(worker, list.record(lane));
      list.statement("use").copy(0, all, c);
      list.synchronize(0, worker);
      list.free(0, all);
    });
    const [race, ...others] = errors(lists);
    expect([race?.code, race?.help]).toEqual(["data-race", "Synchronize worker 0 on caller before use"]);
    expect(others).toEqual([]);
  });

  test("the root of a Broadcast may go on before the others have received", () => {
    // Rank 0's completion tells nothing of rank 1, so that rank 1's memory is not free for a get by rank 0.
    const lists = buildLists(2, (list, rank) => {
      const a = list.input([4], "symmetric");
      const c = list.output([4], "symmetric");
      list.collective(0, "Broadcast", {
        team: [0, 1],
        root: 0,
        input: rank === 0 ? a : null,
        output: rank === 0 ? null : c,
      });
      const other = list.output([4]);
      if (rank === 0) {
        list.copy(0, a, c);
        const pair = list.pair("get", "recv", 1, other);
        list.copyPeer(0, pair);
      } else {
        list.pair("get", "send", 0, c);
        list.copy(0, c, other);
      }
    });
    expect(errors(lists).map(({ code }) => code)).toContain("data-race");
  });

  test("transfer-mismatch: a send without a recv, as a finding of the lists", () => {
    const lists = buildLists(2, (list, rank) => {
      const a = list.input([4]);
      if (rank === 0) list.group(0, [{ type: "send", peer: 1, view: a }]);
    });
    const [finding] = errors(lists);
    expect(finding?.code).toBe("transfer-mismatch");
    expect(finding?.message).toBe("rank 0 sends to rank 1, which does not receive it");
  });
});

describe("deadlock", () => {
  const order =
    (coalesced: boolean): Build =>
    (list, rank) => {
      const peer = 1 - rank;
      const [a, c] = [list.input([4]), list.output([4])];
      const send = { type: "send", peer, view: a } as const;
      const recv = { type: "recv", peer, view: c } as const;
      if (coalesced) list.group(0, [send, recv]);
      else {
        list.group(0, [recv]);
        list.group(0, [send]);
      }
    };

  test("a coalesced exchange: nothing", () => expect(codes(2, order(true))).toEqual([]));

  test("both receive first: the circle is shown", () => {
    const found = errors(buildLists(2, order(false)));
    expect(found.map(({ code }) => code)).toContain("deadlock");
    const circle = at(
      found.filter(({ code }) => code === "deadlock"),
      0,
    );
    expect(circle.commands).toHaveLength(2);
    expect(circle.found).toMatch(/^rank \d, stream 0 .* waits for rank \d, stream 0/);
  });

  test("needs-concurrency: two streams that only work side by side", () => {
    const build: Build = (list, rank) => {
      const [one, two] = [list.stream("one"), list.stream("two")];
      const peer = 1 - rank;
      const [a, c] = [list.input([4]), list.output([4])];
      list.synchronize(one, 0);
      list.synchronize(two, 0);
      list.group(one, [{ type: "recv", peer, view: c }], "one");
      list.group(two, [{ type: "send", peer, view: a }], "one");
      list.synchronize(0, one);
      list.synchronize(0, two);
    };
    expect(codes(2, build)).toEqual(["needs-concurrency"]);
  });
});

describe("signals", () => {
  test("signal-unbalanced: nothing waits for a signal", () => {
    const lists = buildLists(2, (list, rank) => {
      const a = list.input([4], "symmetric");
      const c = list.output([4], "symmetric");
      list.copy(0, a, c);
      const pair = list.pair("get", rank === 0 ? "send" : "recv", 1 - rank, rank === 0 ? a : c);
      if (rank === 0) list.signalPeer(0, pair, "ready");
    });
    const found = errors(lists);
    expect(found.map(({ code }) => code)).toContain("signal-unbalanced");
    expect(at(found, 0).message).toBe("rank 1 does not wait for a signal of rank 0");
  });

  test("slot-overrun: the next run signals before this run's signal was taken", () => {
    const build =
      (answers: boolean): Build =>
      (list, rank) => {
        const a = list.input([4], "symmetric");
        const c = list.output([4], "symmetric");
        list.copy(0, a, c);
        const pair = list.pair("get", rank === 0 ? "send" : "recv", 1 - rank, rank === 0 ? a : c);
        if (rank === 0) {
          list.signalPeer(0, pair, "ready");
          if (answers) list.waitPeer(0, pair, "done");
        } else {
          list.waitPeer(0, pair, "ready");
          if (answers) list.signalPeer(0, pair, "done");
        }
      };
    expect(codes(2, build(true))).toEqual([]);
    expect(codes(2, build(false))).toEqual(["slot-overrun"]);
  });
});

describe("memory", () => {
  test("unwritten-read: nothing of it, or a part", () => {
    const build =
      (rows: number): Build =>
      (list) => {
        const [a, t, c] = [list.input([4, 8]), list.temporary([4, 8]), list.output([4, 8])];
        const first = (view: typeof a): typeof a => ({ ...view, shape: [rows, 8] });
        list.alloc(0, t);
        if (rows > 0) list.copy(0, first(a), first(t));
        list.copy(0, t, c);
        list.free(0, t);
      };
    expect(codes(1, build(4))).toEqual([]);
    const [part] = errors(buildLists(1, build(3)));
    expect(part?.code).toBe("unwritten-read");
    expect(part?.memory).toEqual({ rank: 0, tensor: "T1", slice: "T1[3, :]", bytes: 32 });
    const [none] = errors(buildLists(1, build(0)));
    expect(none?.found).toMatch(/reads T1\[:, :\]; none of it has been written in this run$/);
  });

  test("unwritten-read: pieces that overlap are counted once", () => {
    const build =
      (second: number): Build =>
      (list) => {
        const [a, t, c] = [list.input([8]), list.temporary([8]), list.output([8])];
        const part = (view: typeof a, start: number): typeof a => ({ ...view, offset: 4 * start, shape: [5] });
        list.alloc(0, t);
        list.copy(0, part(a, 0), part(t, 0));
        list.copy(0, part(a, second), part(t, second));
        list.copy(0, t, c);
        list.free(0, t);
      };
    expect(codes(1, build(3))).toEqual([]);
    const [gap] = errors(buildLists(1, build(2)));
    expect(gap?.memory).toEqual({ rank: 0, tensor: "T1", slice: "T1[7]", bytes: 4 });
  });

  test("unwritten-read: an output that the program leaves as it was", () => {
    const [finding] = errors(buildLists(1, (list) => void list.output([4])));
    expect(finding?.code).toBe("unwritten-read");
    expect(at(finding?.commands ?? [], 0).kind).toBe("callerReads");
  });

  test("lifetimes: before alloc, after free, twice", () => {
    const use =
      (steps: readonly ("alloc" | "write" | "free")[]): Build =>
      (list) => {
        const [a, t] = [list.input([4]), list.temporary([4])];
        for (const step of steps) {
          if (step === "alloc") list.alloc(0, t);
          if (step === "write") list.copy(0, a, t);
          if (step === "free") list.free(0, t);
        }
      };
    expect(codes(1, use(["alloc", "write", "free"]))).toEqual([]);
    expect(codes(1, use(["write", "alloc", "free"]))).toEqual(["used-before-alloc"]);
    expect(codes(1, use(["alloc", "free", "write"]))).toEqual(["used-after-free"]);
    expect(codes(1, use(["alloc", "write", "free", "free"]))).toEqual(["freed-twice"]);
    expect(codes(1, use(["alloc", "write", "alloc", "free"]))).toEqual(["allocated-twice"]);
  });

  test("operands-overlap: what a command writes where it reads", () => {
    const binary =
      (shift: number): Build =>
      (list) => {
        const [a, t] = [list.input([8]), list.output([8])];
        const part = (view: typeof a, start: number): typeof a => ({ ...view, offset: 4 * start, shape: [4] });
        list.copy(0, a, t);
        list.binary(0, "add", part(a, 0), part(t, 0), part(t, shift));
      };
    expect(codes(1, binary(0))).toEqual([]);
    expect(codes(1, binary(4))).toEqual([]);
    expect(codes(1, binary(2))).toEqual(["operands-overlap"]);
  });

  test.each([
    ["repeats a row", [4, 8], [0, 1]],
    ["has windows that overlap", [4, 5], [2, 1]],
    ["has axes of one stride", [4, 4], [1, 1]],
  ])("operands-overlap: an output that %s", (_, shape, strides) => {
    const copy =
      (to: readonly number[]): Build =>
      (list) => {
        const [a, all] = [list.input(shape), list.output([64])];
        list.copy(0, a, { ...all, shape, strides: to });
      };
    const found = (to: readonly number[]): readonly Finding[] =>
      errors(buildLists(1, copy(to))).filter(({ code }) => code === "operands-overlap");
    expect(found(contiguousStrides(shape))).toEqual([]);
    expect(found(strides).map(({ found: text }) => text)).toEqual([expect.stringContaining("several elements have")]);
  });

  test("operands-overlap: a collective in place has the form of its table", () => {
    const allgather =
      (own: (rank: number) => number): Build =>
      (list, rank) => {
        const [a, all] = [list.input([4]), list.output([2, 4])];
        const row = { ...a, buffer: all.buffer, offset: 16 * own(rank) };
        list.copy(0, a, row);
        list.collective(0, "Allgather", { team: [0, 1], input: row, output: all });
      };
    expect(
      codes(
        2,
        allgather((rank) => rank),
      ),
    ).toEqual([]);
    expect(
      codes(
        2,
        allgather((rank) => 1 - rank),
      ),
    ).toEqual(["operands-overlap"]);
  });
});

describe("events", () => {
  const swapped = (): readonly CommandList[] => {
    const lists = buildLists(1, (list) => {
      const side = list.stream("side");
      list.synchronize(side, 0);
    });
    return lists.map((list) => ({ ...list, commands: list.commands.toReversed() }));
  };

  test("event-not-recorded: waited for before it is recorded", () => {
    expect(errors(swapped()).map(({ code }) => code)).toEqual(["event-not-recorded", "needs-concurrency"]);
  });
});

test("a Program of no ranks is right", () => {
  expect(verify(link([])).ok).toBe(true);
});
