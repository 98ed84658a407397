/**
 * Mistakes that no host program can make, since building or recording one rules them out, as command lists: what a
 * rewrite of lists, or another recorder, might get wrong. docs/findings.md lists them.
 */
import { type DiagnosticCode, link, type Program } from "@braid-compiler/braid";
import type { EventId } from "../../src/commands/command.ts";
import { makeId, at } from "../../src/support/invariant.ts";
import { buildLists, type ListBuilder } from "../machine/list-builder.ts";

/** The statement of all commands. */
const byHand = "a list by hand";

/** One rank, with an input T0, a temporary T1 and an output T2 of 8 floats each. */
function oneRank(build: (list: ListBuilder, views: Views) => void): Program {
  return link(
    buildLists(1, (list) => {
      list.statement(byHand);
      build(list, { x: list.input([8]), t: list.temporary([8]), y: list.output([8]) });
    }),
  );
}

interface Views {
  readonly x: ReturnType<ListBuilder["input"]>;
  readonly t: ReturnType<ListBuilder["input"]>;
  readonly y: ReturnType<ListBuilder["input"]>;
}

/** Two gets of rank 1 from rank 0 on separate streams, whose signals use one slot. */
function onOneSlot(): Program {
  const program = link(
    buildLists(2, (list, rank) => {
      for (const name of ["first", "second"]) {
        list.statement(`the get on the ${name} stream`);
        const stream = list.stream(name);
        list.synchronize(stream, 0);
        const pair =
          rank === 0
            ? list.pair("get", "send", 1, list.input([4], "symmetric"))
            : list.pair("get", "recv", 0, list.output([4]));
        if (rank === 0) {
          list.signalPeer(stream, pair, "ready");
          list.waitPeer(stream, pair, "done");
        } else {
          list.waitPeer(stream, pair, "ready");
          list.copyPeer(stream, pair);
          list.signalPeer(stream, pair, "done");
        }
      }
      for (const stream of [1, 2]) list.synchronize(0, stream);
    }),
  );
  const ready = program.slots.filter(({ signaller }) => signaller === 0).map(({ id }) => id);
  return {
    ...program,
    ranks: program.ranks.map((rank) => ({
      ...rank,
      commands: rank.commands.map((command) =>
        (command.kind === "signal" || command.kind === "waitSignal") && ready.includes(command.slot)
          ? { ...command, slot: at(ready, 0) }
          : command,
      ),
    })),
  };
}

/** u takes the place of t, which lives. */
function inOnePlace(): Program {
  const program = link(
    buildLists(1, (list) => {
      list.statement(byHand);
      const [x, t, u, y] = [list.input([8]), list.temporary([8]), list.temporary([8]), list.output([8])];
      list.alloc(0, t);
      list.copy(0, x, t);
      list.alloc(0, u);
      list.copy(0, t, u);
      list.copy(0, u, y);
      list.free(0, u);
      list.free(0, t);
    }),
  );
  return { ...program, buffers: program.buffers.map((buffer) => ({ ...buffer, offset: 0 })) };
}

/** An event that is waited for before it is recorded, or recorded by two commands. */
function withEvents(change: "early wait" | "two records"): Program {
  const program = oneRank((list, { x, y }) => {
    const side = list.stream("side");
    list.synchronize(side, 0);
    list.copy(side, x, y);
    list.synchronize(0, side);
  });
  const ranks = program.ranks.map((rank) => {
    const [first, second, ...rest] = rank.commands;
    if (first === undefined || second === undefined) return rank;
    return change === "early wait"
      ? { ...rank, commands: [second, first, ...rest] }
      : {
          ...rank,
          commands: rank.commands.map((command) =>
            command.kind === "recordEvent" || command.kind === "waitEvent"
              ? { ...command, event: makeId<EventId>(0) }
              : command,
          ),
        };
  });
  return { ...program, ranks };
}

export const exampleLists: Readonly<Partial<Record<DiagnosticCode, () => Program>>> = {
  "slot-overrun": onOneSlot,
  "used-before-alloc": () =>
    oneRank((list, { x, t, y }) => {
      list.copy(0, x, t);
      list.alloc(0, t);
      list.copy(0, x, y);
      list.free(0, t);
    }),
  "used-after-free": () =>
    oneRank((list, { x, t, y }) => {
      list.alloc(0, t);
      list.copy(0, x, y);
      list.free(0, t);
      list.copy(0, x, t);
    }),
  "freed-twice": () =>
    oneRank((list, { x, t, y }) => {
      list.alloc(0, t);
      list.copy(0, x, y);
      list.free(0, t);
      list.free(0, t);
    }),
  "allocated-twice": () =>
    oneRank((list, { x, t, y }) => {
      list.alloc(0, t);
      list.alloc(0, t);
      list.copy(0, x, y);
      list.free(0, t);
    }),
  "memory-shared": inOnePlace,
  "event-not-recorded": () => withEvents("early wait"),
  "event-recorded-twice": () => withEvents("two records"),
  "outside-buffer": () =>
    oneRank((list, { x, t, y }) => {
      list.alloc(0, t);
      list.copy(0, x, y);
      list.copy(0, { ...x, shape: [4] }, { ...t, offset: 24, shape: [4] });
      list.free(0, t);
    }),
};
