/** Times of a rank by state: on a Program of two ranks that compute, exchange, copy from each other and gather. */
import { DeviceMesh, HostProgramBuilder, record } from "@braid-compiler/braid";
import { describe, expect, it } from "vitest";
import { link } from "../../src/commands/link/link.ts";
import { at } from "../../src/support/invariant.ts";
import type { TraceEvent } from "../../src/trace/event-table.ts";
import { intersectionOf, lengthOf, unionOf } from "../../src/support/intervals.ts";
import { overlapOf, overlapText } from "../../src/trace/overlap.ts";
import { buildLists } from "../machine/list-builder.ts";

/** Commands of each rank: 0 and 1 launches, 2 a copy within the rank, 3 an Allgather, 4 a copy from the peer. */
const [kernel, second, copy, gather, get] = [0, 1, 2, 3, 4];
const program = link(
  buildLists(2, (list, rank) => {
    const own = list.input([4], "symmetric");
    const [sum, more, kept] = [list.output([4]), list.output([4]), list.output([4])];
    const all = list.output([2, 4]);
    const got = list.output([4]);
    const other = list.stream("worker 0");
    const nccl = list.stream("nccl", "communicator");
    const lane = list.stream("copies", "copy");
    list.binary(0, "add", own, own, sum);
    list.binary(other, "mul", own, own, more);
    list.copy(0, own, kept);
    list.collective(nccl, "Allgather", { team: [0, 1], input: own, output: all });
    const send = list.pair("get", "send", 1 - rank, own);
    const recv = list.pair("get", "recv", 1 - rank, got);
    list.copyPeer(lane, recv);
    list.signalPeer(lane, recv, "done");
    list.waitPeer(0, send, "done");
    list.signalPeer(0, send, "ready");
    list.waitPeer(lane, recv, "ready");
  }),
);

const event = (rank: number, command: number, start: number, end: number): TraceEvent => ({
  rank,
  stream: at(at(program.ranks, rank).commands, command).stream,
  command,
  start,
  end,
});

describe("overlapOf", () => {
  it("counts a moment once, however many streams compute in it", () => {
    const [rank] = overlapOf(program, [event(0, kernel, 0, 4), event(0, second, 2, 6)]);
    expect(rank).toMatchObject({ kernels: 6, communication: 0, hidden: 0, overlap: null });
  });

  it("counts a transfer from when its last participant arrived", () => {
    const events = [event(0, kernel, 0, 5), event(0, gather, 1, 8), event(1, gather, 3, 7)];
    expect(overlapOf(program, events)).toEqual([
      { rank: 0, kernels: 5, copies: 0, transfers: 5, waiting: 2, communication: 5, hidden: 2, overlap: 0.4 },
      { rank: 1, kernels: 0, copies: 0, transfers: 4, waiting: 0, communication: 4, hidden: 0, overlap: 0 },
    ]);
  });

  it("counts a participant that a library lets go early from its own start", () => {
    const [rank] = overlapOf(program, [event(0, gather, 1, 2), event(1, gather, 3, 7)]);
    expect(rank).toMatchObject({ transfers: 1, waiting: 0 });
  });

  it("counts copies from a peer as communication, and those within a rank not", () => {
    const events = [event(0, kernel, 0, 10), event(0, copy, 10, 12), event(0, get, 4, 14)];
    const [rank] = overlapOf(program, events);
    expect(rank).toMatchObject({ kernels: 10, copies: 10, communication: 10, hidden: 6, overlap: 0.6 });
  });

  it("counts a launch that combines peers' inputs as a transfer, not as a kernel", () => {
    const h = new HostProgramBuilder();
    const mesh = DeviceMesh.range(2);
    const [x, y] = [h.input([4], { mesh }), h.tensor([4], { mesh })];
    h.output(y);
    h.wait(h.communication("Allreduce", { input: x, output: y, backend: "cuda" }));
    const reduced = link([0, 1].map((rank) => record(h.build(), { rank })));
    const command = at(reduced.ranks, 0).commands.findIndex(({ kind }) => kind === "launch");
    const [rank] = overlapOf(reduced, [{ rank: 0, stream: 0, command, start: 1, end: 3 }]);
    expect(rank).toMatchObject({ kernels: 0, transfers: 2, waiting: 0, communication: 2, overlap: 0 });
  });

  it("takes kernels of the same rank only", () => {
    const [first, other] = overlapOf(program, [event(0, kernel, 0, 10), event(1, get, 0, 10)]);
    expect(first).toMatchObject({ kernels: 10, communication: 0, overlap: null });
    expect(other).toMatchObject({ kernels: 0, communication: 10, overlap: 0 });
  });

  it("is all 0 for a rank that was not traced", () => {
    const times = { kernels: 0, copies: 0, transfers: 0, waiting: 0, communication: 0, hidden: 0, overlap: null };
    expect(overlapOf(program, [])).toEqual([0, 1].map((rank) => ({ rank, ...times })));
  });
});

describe("overlapText", () => {
  it("is one line", () => {
    const [rank, idle] = overlapOf(program, [event(0, kernel, 0, 5), event(0, gather, 1, 8), event(1, gather, 3, 7)]);
    expect([rank, idle].map((each) => each && overlapText(each))).toEqual([
      "rank 0: kernels 5.00 ms, copies 0.00 ms, transfers 5.00 ms (waiting 2.00 ms); 40 % of communication under kernels",
      "rank 1: kernels 0.00 ms, copies 0.00 ms, transfers 4.00 ms (waiting 0.00 ms); 0 % of communication under kernels",
    ]);
    const [none] = overlapOf(program, []);
    expect(none && overlapText(none)).toMatch(/\(waiting 0\.00 ms\); no communication$/);
  });
});

describe("intervals", () => {
  it("joins what overlaps or touches, and drops what is empty", () => {
    const set = unionOf([
      { start: 5, end: 6 },
      { start: 0, end: 2 },
      { start: 2, end: 3 },
      { start: 1, end: 2 },
      { start: 8, end: 8 },
      { start: 9, end: 4 },
    ]);
    expect(set).toEqual([
      { start: 0, end: 3 },
      { start: 5, end: 6 },
    ]);
    expect(lengthOf(set)).toBe(4);
  });

  it("intersects as sets of whole moments do", () => {
    const moments = (bits: number): readonly { readonly start: number; readonly end: number }[] =>
      unionOf(
        Array.from({ length: 7 }, (_, i) => i).flatMap((i) => ((bits >> i) & 1 ? [{ start: i, end: i + 1 }] : [])),
      );
    for (let a = 0; a < 128; a++) {
      for (let b = 0; b < 128; b++) expect(intersectionOf(moments(a), moments(b))).toEqual(moments(a & b));
    }
  });
});
