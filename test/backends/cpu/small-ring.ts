import { link, type Program } from "braid";
import { buildLists, type ListBuilder } from "../../machine/list-builder.ts";

/** Every rank gets its neighbour's input one-sided, on one stream, and adds to it on another. */
export function smallRing(ranks: number): Program {
  return link(
    buildLists(ranks, (list: ListBuilder, rank) => {
      const lane = list.stream("lane");
      const own = list.input([64], "symmetric");
      const got = list.temporary([64]);
      const result = list.output([64]);
      list.synchronize(lane, 0);
      const send = list.pair("get", "send", (rank + 1) % ranks, own);
      const receive = list.pair("get", "recv", (rank + ranks - 1) % ranks, got);
      list.signalPeer(lane, send, "ready");
      list.waitPeer(lane, receive, "ready");
      list.copyPeer(lane, receive);
      list.signalPeer(lane, receive, "done");
      list.waitPeer(lane, send, "done");
      list.synchronize(0, lane);
      list.binary(0, "add", own, got, result);
    }),
  );
}
