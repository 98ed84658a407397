/**
 * pytorch #175812 (iv). Bucketing joins collectives, and an op that needs the first of a bucket and makes the input of
 * the last one then depends on itself. Here, the op comes after the bucket, whose second half reads what the op has not
 * written.
 */
import { link, type Program } from "@braid-compiler/braid";
import { buildLists } from "../../machine/list-builder.ts";
import type { HistoricalBug } from "./bug.ts";

function bucket(joined: boolean): Program {
  return link(
    buildLists(2, (list, rank) => {
      const peer = 1 - rank;
      const [x, t, y] = [list.input([4], "symmetric"), list.temporary([4], "symmetric"), list.output([2, 4])];
      const half = (i: number): typeof y => ({ ...y, offset: 16 * i, shape: [4], strides: [1] });
      const gathers = [x, t].map((view, i) => ({
        send: list.pair("get", "send", peer, view),
        recv: list.pair("get", "recv", peer, half(i)),
      }));
      list.alloc(0, t);
      const gather = (parts: typeof gathers, name: string): void => {
        for (const { send } of parts) list.statement(name).signalPeer(0, send, "ready");
        for (const { recv } of parts) {
          list.waitPeer(0, recv, "ready");
          list.copyPeer(0, recv);
          list.signalPeer(0, recv, "done");
        }
        for (const { send } of parts) list.waitPeer(0, send, "done");
      };
      if (joined) {
        gather(gathers, "bucket of both gathers");
        list.statement("op on the first gather").binary(0, "mul", half(0), half(0), t);
      } else {
        gather(gathers.slice(0, 1), "first gather");
        list.statement("op on the first gather").binary(0, "mul", half(0), half(0), t);
        gather(gathers.slice(1), "second gather");
      }
      list.free(0, t);
    }),
  );
}

export const bucketedDependency: HistoricalBug = {
  name: "pytorch #175812 (iv): a bucket needs an op that needs the bucket",
  wrong: bucket(true),
  right: bucket(false),
  finding: {
    code: "unwritten-read",
    places: [{ rank: 0, streamName: "caller", kind: "copy", statement: "bucket of both gathers", run: 1 }],
  },
};
