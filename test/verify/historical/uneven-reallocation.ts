/**
 * nvFuser #5259, a note of its description. Buffers that peers copy from are known by handles, which ranks exchange
 * once and keep. Without an allocation cache a rank may get another buffer for the same tensor later on; it then
 * exchanges handles again, while its peer still has the old one and goes on: the one that asks waits for ever. A
 * Program's buffers stay where they are from run to run, so that here it is one run: two gets, and rank 1 allocates its
 * half anew for the second one.
 */
import { link, type Program } from "@braid-compiler/braid";
import { buildLists } from "../../machine/list-builder.ts";
import type { HistoricalBug } from "./bug.ts";

/** `uniform`: both ranks keep their buffers, and no handle is exchanged a second time. */
function twoGets(uniform: boolean): Program {
  return link(
    buildLists(2, (list, rank) => {
      if (rank === 0) {
        const x = list.input([2, 4], "symmetric");
        for (const i of [0, 1]) {
          const send = list.pair("get", "send", 1, { ...x, offset: 16 * i, shape: [4], strides: [1] });
          list.statement(`Send ${i}`).signalPeer(0, send, "ready");
          list.statement(`Wait for send ${i}`).waitPeer(0, send, "done");
        }
        // The answer to a handle; a rank that has the handle already does not look for one.
        if (!uniform) list.pair("get", "recv", 1, list.temporary([1], "symmetric"));
        return;
      }
      const y = list.output([2, 4]);
      const staging = list.temporary([4], "symmetric");
      list.alloc(0, staging);
      for (const i of [0, 1]) {
        if (i === 1 && !uniform) {
          list.free(0, staging);
          list.alloc(0, staging);
          const handle = list.pair("get", "send", 0, list.temporary([1], "symmetric"));
          list.statement("Share the new handle").signalPeer(0, handle, "ready");
          list.statement("Wait for the other's handle").waitPeer(0, handle, "done");
        }
        const recv = list.pair("get", "recv", 0, staging);
        list.statement(`Recv ${i}`).waitPeer(0, recv, "ready");
        list.copyPeer(0, recv);
        list.signalPeer(0, recv, "done");
        list.statement(`Use ${i}`).copy(0, staging, { ...y, offset: 16 * i, shape: [4], strides: [1] });
      }
      list.free(0, staging);
    }),
  );
}

export const unevenReallocation: HistoricalBug = {
  name: "nvFuser #5259: one rank allocates anew and exchanges handles, the other does not",
  wrong: twoGets(false),
  right: twoGets(true),
  finding: {
    code: "signal-unbalanced",
    places: [{ rank: 1, streamName: "caller", kind: "waitSignal", statement: "Wait for the other's handle", run: 1 }],
  },
};
