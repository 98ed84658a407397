import { link, type Program } from "@braid-compiler/braid";
import { buildLists, type ListBuilder } from "../../machine/list-builder.ts";

/** Every rank gets its neighbour's input one-sided, on one stream, and adds to it on another. */
export function smallRing(ranks: number): Program {
  return link(
    buildLists(ranks, (list: ListBuilder, rank) => {
      const copies = list.stream("copies");
      const own = list.input([64], "symmetric");
      const got = list.temporary([64]);
      const result = list.output([64]);
      list.synchronize(copies, 0);
      const send = list.pair("get", "send", (rank + 1) % ranks, own);
      const receive = list.pair("get", "recv", (rank + ranks - 1) % ranks, got);
      list.signalPeer(copies, send, "ready");
      list.waitPeer(copies, receive, "ready");
      list.copyPeer(copies, receive);
      list.signalPeer(copies, receive, "done");
      list.waitPeer(copies, send, "done");
      list.synchronize(0, copies);
      list.binary(0, "add", own, got, result);
    }),
  );
}
