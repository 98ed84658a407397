/**
 * tt-metal #57458. A fused all-gather + matmul took its gather buffer anew for each call, from memory that the host had
 * just given back, and peers wrote their parts into it as soon as they got there: the barrier that the caller passed
 * was not used. On a device that lagged behind, the op before still read what lay there. Every device alone was right;
 * its own queue kept the free behind the read.
 */
import { link, type Program } from "@braid-compiler/braid";
import { buildLists } from "../../machine/list-builder.ts";
import type { HistoricalBug } from "./bug.ts";

function gatherAfterFree(barrier: boolean): Program {
  return link(
    buildLists(2, (list, rank) => {
      const peer = 1 - rank;
      const [a, gated, c] = [list.input([4]), list.temporary([4], "symmetric"), list.output([4])];
      const x = list.temporary([4], "symmetric");
      const gathered = list.temporary([4], "symmetric");
      list.alloc(0, gated);
      list.alloc(0, x);
      list.statement("x").copy(0, a, x);
      list.statement("multiply").binary(0, "mul", x, x, gated);
      list.free(0, x);
      // Where x lay.
      list.statement("gathered").alloc(0, gathered);
      const got = list.pair("put", "recv", peer, gathered);
      const put = list.pair("put", "send", peer, gated);
      if (barrier) list.statement("barrier").signalPeer(0, got, "ready");
      if (barrier) list.waitPeer(0, put, "ready");
      list.statement("write to the peer").copyPeer(0, put);
      list.signalPeer(0, put, "done");
      list.statement("wait for the peer").waitPeer(0, got, "done");
      list.statement("matmul").binary(0, "mul", gated, gathered, c);
      list.free(0, gathered);
      list.free(0, gated);
      // The next call's writes come after this matmul, which is not the question.
      const [leave, left] = [list.pair("get", "send", peer, a), list.pair("get", "recv", peer, c)];
      list.statement("end").signalPeer(0, leave, "ready");
      list.waitPeer(0, left, "ready");
    }),
  );
}

export const earlyFree: HistoricalBug = {
  name: "tt-metal #57458: a peer writes where a lagging device still reads a freed buffer",
  wrong: gatherAfterFree(false),
  right: gatherAfterFree(true),
  finding: {
    code: "used-before-alloc",
    places: [
      { rank: 0, streamName: "caller", kind: "alloc", statement: "gathered", run: 1 },
      { rank: 1, streamName: "caller", kind: "copy", statement: "write to the peer", run: 1 },
    ],
  },
};
