/**
 * TransformerEngine #1067. A ring exchange under a matmul + reduce-scatter, with streams for computing, sending and
 * receiving. When the overlap code moved to another folder, the record of the receive stream's event and the main
 * stream's wait for it were lost: main still waited for the compute and send streams, and the kernel that adds up the
 * chunks could start before the last of them had come.
 */
import { link, type Program } from "@braid-compiler/braid";
import { buildLists } from "../../machine/list-builder.ts";
import type { HistoricalBug } from "./bug.ts";

function reduceScatter(joinsRecv: boolean): Program {
  return link(
    buildLists(2, (list, rank) => {
      const [compute, send, recv] = [list.stream("compute"), list.stream("send"), list.stream("recv")];
      const [a, b] = [list.input([2, 4]), list.input([2, 4])];
      const partial = list.temporary([2, 4], "symmetric");
      const received = list.temporary([4], "symmetric");
      const c = list.output([4]);
      const half = (view: typeof a, i: number): typeof a => ({ ...view, offset: 16 * i, shape: [4], strides: [1] });
      const [own, other] = [rank, 1 - rank];
      const put = list.pair("put", "send", other, half(partial, other));
      const got = list.pair("put", "recv", other, received);
      list.alloc(0, partial);
      list.alloc(0, received);
      for (const stream of [compute, send, recv]) list.synchronize(stream, 0);
      list.statement("the peer may write").signalPeer(recv, got, "ready");
      list
        .statement("matmul of the peer's chunk")
        .binary(compute, "mul", half(a, other), half(b, other), half(partial, other));
      list.synchronize(send, compute);
      list.statement("matmul of the own chunk").binary(compute, "mul", half(a, own), half(b, own), half(partial, own));
      list.statement("send").waitPeer(send, put, "ready");
      list.copyPeer(send, put);
      list.signalPeer(send, put, "done");
      list.statement("receive").waitPeer(recv, got, "done");
      list.statement("join").synchronize(0, compute);
      list.synchronize(0, send);
      if (joinsRecv) list.synchronize(0, recv);
      list.statement("reduce").binary(0, "add", half(partial, own), received, c);
      list.free(0, received);
      list.free(0, partial);
    }),
  );
}

export const missingRecvJoin: HistoricalBug = {
  name: "TransformerEngine #1067: the reduction does not wait for the receive stream",
  wrong: reduceScatter(false),
  right: reduceScatter(true),
  finding: {
    code: "data-race",
    places: [
      { rank: 0, streamName: "send", kind: "copy", statement: "send", run: 1 },
      { rank: 1, streamName: "caller", kind: "launch", statement: "reduce", run: 1 },
    ],
  },
};
