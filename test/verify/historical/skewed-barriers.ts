/**
 * pytorch #189228. All-reduces over symmetric memory begin with a barrier among the ranks, and are meant for one
 * stream; from two streams, ranks that are skewed begin with different ones, and each waits for a signal that its peer
 * would send later. Here, both are on one stream, in the order in which each rank takes them.
 */
import { link, type Program } from "@braid-compiler/braid";
import { buildLists } from "../../machine/list-builder.ts";
import type { HistoricalBug } from "./bug.ts";

const names = ["all-reduce A", "all-reduce B"];

/** `skewed`: rank 1 takes the barriers in the other order. */
function barriers(skewed: boolean): Program {
  return link(
    buildLists(2, (list, rank) => {
      const peer = 1 - rank;
      const [x, y] = [list.input([2, 4], "symmetric"), list.output([2, 4])];
      const part = (view: typeof x, i: number): typeof x => ({ ...view, offset: 16 * i, shape: [4], strides: [1] });
      const sends = names.map((_, i) => list.pair("get", "send", peer, part(x, i)));
      const recvs = names.map((_, i) => list.pair("get", "recv", peer, part(y, i)));
      const order = skewed && rank === 1 ? [1, 0] : [0, 1];
      for (const i of order) {
        const [send = 0, recv = 0] = [sends[i], recvs[i]];
        list.statement(names[i] ?? "").signalPeer(0, send, "ready");
        list.waitPeer(0, recv, "ready");
        list.copyPeer(0, recv);
        list.signalPeer(0, recv, "done");
        list.waitPeer(0, send, "done");
      }
    }),
  );
}

export const skewedBarriers: HistoricalBug = {
  name: "pytorch #189228: ranks take the barriers of two all-reduces in different orders",
  wrong: barriers(true),
  right: barriers(false),
  finding: {
    code: "deadlock",
    places: [
      { rank: 0, streamName: "caller", kind: "waitSignal", statement: "all-reduce A", run: 1 },
      { rank: 1, streamName: "caller", kind: "waitSignal", statement: "all-reduce B", run: 1 },
    ],
  },
};
