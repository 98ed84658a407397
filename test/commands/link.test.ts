/** Link: one Program from the lists of all ranks, whatever their order. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { CommandList } from "../../src/commands/command-list.ts";
import { link } from "../../src/commands/link/link.ts";
import { DiagnosticError } from "../../src/diagnostics/diagnostic.ts";
import { at } from "../../src/support/invariant.ts";
import { buildLists, type ListBuilder } from "../machine/list-builder.ts";

/**
 * A list with every kind of command: a ring by each protocol, a grouped exchange, a collective, a kernel, a local
 * copy.
 */
function everything(world: number): readonly CommandList[] {
  return buildLists(world, (list, rank) => {
    const right = (rank + 1) % world;
    const left = (rank + world - 1) % world;
    const side = list.stream("side");
    const a = list.input([8]);
    const got = list.temporary([8]);
    const gathered = list.output([world, 8]);
    list.alloc(0, got);
    ring(list, "get", a, got, left, right);
    list.binary(0, "add", a, got, got);
    list.synchronize(side, 0);
    list.group(side, [
      { type: "send", peer: right, view: a },
      { type: "recv", peer: left, view: got },
    ]);
    list.synchronize(0, side);
    list.collective(0, "Allgather", { team: [...Array(world).keys()], input: got, output: gathered });
    list.copy(0, a, got);
    ring(list, "put", a, got, left, right);
    list.free(0, got);
  });
}

function ring(
  list: ListBuilder,
  protocol: "get" | "put",
  source: ReturnType<ListBuilder["input"]>,
  destination: ReturnType<ListBuilder["input"]>,
  left: number,
  right: number,
): void {
  const send = list.pair(protocol, "send", right, source);
  const recv = list.pair(protocol, "recv", left, destination);
  const [passive, active] = protocol === "get" ? [send, recv] : [recv, send];
  list.signalPeer(0, passive, "ready");
  list.waitPeer(0, active, "ready");
  list.copyPeer(0, active);
  list.signalPeer(0, active, "done");
  list.waitPeer(0, passive, "done");
}

describe("link", () => {
  test("gives the same Program for every order of the lists", () => {
    const lists = everything(4);
    const program = link(lists);
    fc.assert(
      fc.property(fc.shuffledSubarray([...lists], { minLength: lists.length }), (shuffled) => {
        expect(link(shuffled)).toEqual(program);
      }),
    );
  });

  test("does not change the lists", () => {
    const lists = everything(3);
    const before = structuredClone(lists);
    link(lists);
    expect(lists).toEqual(before);
  });

  test("numbers buffers over all ranks and makes equal kernels one", () => {
    const program = link(everything(3));
    expect(program.buffers.map(({ id }) => id)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8]);
    expect(program.buffers.map(({ rank }) => rank)).toEqual([0, 0, 0, 1, 1, 1, 2, 2, 2]);
    expect(program.kernels).toHaveLength(1);
    for (const { rank, commands } of program.ranks) {
      for (const command of commands) {
        if (command.kind !== "launch") continue;
        expect(command.inputs.map(({ buffer }) => buffer)).toEqual([3 * rank, 3 * rank + 1]);
        expect(command.outputs.map(({ buffer }) => buffer)).toEqual([3 * rank + 1]);
      }
    }
  });

  test("says which transfer each command takes part in, and keeps every command at its place", () => {
    const lists = everything(3);
    const program = link(lists);
    expect(program.transfers.map(({ kind }) => kind)).toEqual(["group", "collective"]);
    for (const { rank, commands, transferOf, origins } of program.ranks) {
      expect(commands).toHaveLength(at(lists, rank).commands.length);
      expect(origins).toBe(at(lists, rank).origins);
      for (const [index, id] of transferOf.entries()) {
        expect(id !== null).toBe(at(commands, index).kind === "transfer");
        if (id === null) continue;
        const participant = at(program.transfers, id).participants.find((other) => other.rank === rank);
        expect(participant?.command).toBe(index);
        const command = at(commands, index);
        expect(command.kind === "transfer" && command.operation).toEqual(participant?.operation);
      }
    }
  });

  test("links no ranks to an empty Program", () => {
    expect(link([])).toEqual({ kind: "Program", ranks: [], buffers: [], kernels: [], transfers: [], slots: [] });
  });

  test("takes a rank with nothing to do", () => {
    const program = link(
      buildLists(2, (list, rank) => (rank === 0 ? list.copy(0, list.input([4]), list.output([4])) : undefined)),
    );
    expect(program.ranks.map(({ commands }) => commands.length)).toEqual([1, 0]);
  });
});

describe("rank-missing", () => {
  const lists = everything(3);
  const withRank = (list: CommandList, rank: number): CommandList => ({ ...list, rank });
  const messagesOf = (bad: readonly CommandList[]): readonly string[] => {
    try {
      link(bad);
    } catch (error) {
      if (!(error instanceof DiagnosticError)) throw error;
      expect(error.diagnostics.map(({ code }) => code)).toEqual(error.diagnostics.map(() => "rank-missing"));
      return error.diagnostics.map(({ message }) => message);
    }
    return [];
  };
  test.each([
    ["left out", [at(lists, 0), at(lists, 2)], ["rank 1 has no command list", "rank 2 is outside the 2 ranks"]],
    ["twice", [at(lists, 0), at(lists, 0)], ["rank 0 has 2 command lists", "rank 1 has no command list"]],
    [
      "negative",
      [at(lists, 0), withRank(at(lists, 1), -1)],
      ["rank 1 has no command list", "rank -1 is outside the 2 ranks"],
    ],
    [
      "not whole",
      [at(lists, 0), withRank(at(lists, 1), 0.5)],
      ["rank 1 has no command list", "rank 0.5 is outside the 2 ranks"],
    ],
    [
      "huge",
      [at(lists, 0), withRank(at(lists, 1), 1e9)],
      ["rank 1 has no command list", "rank 1000000000 is outside the 2 ranks"],
    ],
  ])("%s", (_, bad, messages) => {
    expect(messagesOf(bad)).toEqual(messages);
  });
});
