/**
 * pytorch #192581. A symmetric-memory allocation has one pad of signals for all process groups that use it. A slot of
 * the pad is chosen by channel and by the rank within the group; which group it is does not count. A group of ranks 0
 * and 1 and another of more ranks use one slot for signals from 0 to 1 on channel 0: a signal of one completes a wait
 * of the other, and a signal that comes while the last one is not yet taken is lost. Here, two gets on streams of their
 * own.
 */
import { link, type Program } from "@braid-compiler/braid";
import type { Command } from "../../../src/commands/command.ts";
import { at } from "../../../src/support/invariant.ts";
import { buildLists } from "../../machine/list-builder.ts";
import type { HistoricalBug } from "./bug.ts";

const groups = ["group {0 1}", "group {0 1 2}"];

const twoPipelines: Program = link(
  buildLists(2, (list, rank) => {
    for (const name of groups) {
      const stream = list.stream(name);
      list.synchronize(stream, 0);
      if (rank === 0) {
        const send = list.pair("get", "send", 1, list.input([4], "symmetric"));
        list.statement(`put_signal, ${name}`).signalPeer(stream, send, "ready");
        list.statement(`wait for the copy, ${name}`).waitPeer(stream, send, "done");
      } else {
        const recv = list.pair("get", "recv", 0, list.output([4]));
        list.statement(`wait_signal, ${name}`).waitPeer(stream, recv, "ready");
        list.statement(`copy, ${name}`).copyPeer(stream, recv);
        list.signalPeer(stream, recv, "done");
      }
    }
    for (const stream of [1, 2]) list.statement("join").synchronize(0, stream);
  }),
);

/** Link gives every pair separate slots; here the second group uses those of the first. */
function onOnePad(program: Program): Program {
  const shared = (command: Command): Command => {
    if (command.kind !== "signal" && command.kind !== "waitSignal") return command;
    const { signaller, waiter } = at(program.slots, command.slot);
    const slot = program.slots.find((other) => other.signaller === signaller && other.waiter === waiter);
    return { ...command, slot: slot?.id ?? command.slot };
  };
  return { ...program, ranks: program.ranks.map((rank) => ({ ...rank, commands: rank.commands.map(shared) })) };
}

export const sharedSlots: HistoricalBug = {
  name: "pytorch #192581: two groups signal through one slot",
  wrong: onOnePad(twoPipelines),
  right: twoPipelines,
  finding: {
    code: "slot-overrun",
    places: [
      { rank: 1, streamName: "group {0 1}", kind: "waitSignal", statement: "wait_signal, group {0 1}", run: 1 },
      { rank: 1, streamName: "group {0 1 2}", kind: "waitSignal", statement: "wait_signal, group {0 1 2}", run: 1 },
    ],
  },
};
