/**
 * nvFuser's column_parallel test had a cyclic reference that kept every buffer until the end. Without it, a buffer that
 * the library's hidden stream still sent was freed with no event between the two. Here, an allgather on the
 * communicator's stream, whose input is freed before the Wait.
 */
import { link, type Program } from "@braid-compiler/braid";
import { buildLists } from "../../machine/list-builder.ts";
import type { HistoricalBug } from "./bug.ts";

function sendAndFree(waits: boolean): Program {
  return link(
    buildLists(2, (list) => {
      const [x, t, y] = [list.input([4]), list.temporary([4]), list.output([2, 4])];
      const nccl = list.stream("NCCL", "communicator");
      list.alloc(0, t);
      list.statement("shard").binary(0, "mul", x, x, t);
      list.synchronize(nccl, 0);
      list.statement("allgather").collective(nccl, "Allgather", { team: [0, 1], input: t, output: y });
      if (waits) list.statement("wait").synchronize(0, nccl);
      list.statement("free").free(0, t);
      if (!waits) list.statement("wait").synchronize(0, nccl);
    }),
  );
}

export const freedWhileSent: HistoricalBug = {
  name: "nvFuser column_parallel: a buffer is freed while the library sends it",
  wrong: sendAndFree(false),
  right: sendAndFree(true),
  finding: {
    code: "freed-in-use",
    places: [
      { rank: 1, streamName: "NCCL", kind: "transfer", statement: "allgather", run: 1 },
      { rank: 1, streamName: "caller", kind: "free", statement: "free", run: 1 },
    ],
  },
};
