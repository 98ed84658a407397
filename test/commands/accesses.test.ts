/** The reads and writes of each kind of command. */
import { describe, expect, test } from "vitest";
import type { CommandKind } from "../../src/commands/command.ts";
import { link } from "../../src/commands/link/link.ts";
import { accesses, type Region } from "../../src/commands/region.ts";
import { at } from "../../src/support/invariant.ts";
import { buildLists, type ListBuilder } from "../machine/list-builder.ts";

/** The accesses of rank 0's commands of a kind, as texts `b1+16: 3 x 32, 8 bytes`. */
function accessTexts(world: number, kind: CommandKind, build: (list: ListBuilder, rank: number) => void) {
  const program = link(buildLists(world, build));
  return at(program.ranks, 0).commands.flatMap((command, index) => {
    if (command.kind !== kind) return [];
    const { reads, writes } = accesses(program, 0, index);
    return [{ reads: reads.map(regionText), writes: writes.map(regionText) }];
  });
}

function regionText({ buffer, offset, dims, bytes }: Region): string {
  const runs = dims.map(({ count, stride }) => `${count} every ${stride}, `).join("");
  return `b${buffer}+${offset}: ${runs}${bytes} bytes`;
}

describe("accesses", () => {
  test("of a launch are its operands'", () => {
    const found = accessTexts(1, "launch", (list) => {
      const [a, b, out] = [list.input([8]), list.input([4]), list.output([2, 4])];
      const rows = { ...b, shape: [2, 4], strides: [0, 1] };
      list.binary(0, "add", { ...a, shape: [2, 4], strides: [4, 1] }, rows, out);
    });
    expect(found).toEqual([{ reads: ["b0+0: 32 bytes", "b1+0: 16 bytes"], writes: ["b2+0: 32 bytes"] }]);
  });

  test("of a copy are both views', in a peer's buffer too", () => {
    const found = accessTexts(2, "copy", (list, rank) => {
      const [a, b] = [list.input([4, 8]), list.output([3, 2])];
      const rows = { ...a, offset: 16, shape: [3, 2] };
      list.copy(0, rows, b);
      const pair = list.pair("put", rank === 0 ? "send" : "recv", 1 - rank, rank === 0 ? b : rows);
      if (rank === 0) list.copyPeer(0, pair);
    });
    expect(found).toEqual([
      { reads: ["b0+16: 3 every 32, 8 bytes"], writes: ["b1+0: 24 bytes"] },
      { reads: ["b1+0: 24 bytes"], writes: ["b2+16: 3 every 32, 8 bytes"] },
    ]);
  });

  test("of a collective are its own input and output", () => {
    const found = accessTexts(2, "transfer", (list, rank) => {
      const [a, b] = [list.input([4]), list.output([2, 4])];
      list.collective(0, "Allgather", { team: [0, 1], input: a, output: b });
      list.collective(0, "Gather", { team: [0, 1], root: 1, input: a, output: rank === 1 ? b : null });
    });
    expect(found).toEqual([
      { reads: ["b0+0: 16 bytes"], writes: ["b1+0: 32 bytes"] },
      { reads: ["b0+0: 16 bytes"], writes: [] },
    ]);
  });

  test("of a group are what it sends and what it receives", () => {
    const found = accessTexts(2, "transfer", (list, rank) => {
      const [a, b] = [list.input([4]), list.output([4])];
      list.group(0, [
        { type: "recv", peer: 1 - rank, view: b },
        { type: "send", peer: 1 - rank, view: a },
      ]);
    });
    expect(found).toEqual([{ reads: ["b0+0: 16 bytes"], writes: ["b1+0: 16 bytes"] }]);
  });

  test("of alloc and free are writes of the whole buffer", () => {
    for (const kind of ["alloc", "free"] as const) {
      const found = accessTexts(1, kind, (list) => {
        list.input([1]);
        list[kind](0, list.temporary([3, 5]));
      });
      expect(found).toEqual([{ reads: [], writes: ["b1+0: 60 bytes"] }]);
    }
  });

  test("of what only orders streams are none", () => {
    for (const kind of ["recordEvent", "waitEvent", "signal", "waitSignal"] as const) {
      const found = accessTexts(2, kind, (list, rank) => {
        const pair = list.pair("get", rank === 0 ? "send" : "recv", 1 - rank, list.input([4]));
        list.synchronize(list.stream("side"), 0);
        if (rank === 0) list.signalPeer(0, pair, "ready");
        if (rank === 0) list.waitPeer(0, pair, "done");
      });
      expect(found).toEqual([{ reads: [], writes: [] }]);
    }
  });
});
