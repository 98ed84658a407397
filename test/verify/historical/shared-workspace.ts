/**
 * torchtitan's distributed/linear.py: its header warns that every fused op takes the group's one workspace from offset
 * 0. Two ops in flight on two streams then write the same bytes. Here, two products in one workspace, on streams that
 * nothing orders.
 */
import { link, type Program } from "@braid-compiler/braid";
import { buildLists } from "../../machine/list-builder.ts";
import type { HistoricalBug } from "./bug.ts";

function twoOps(shared: boolean): Program {
  return link(
    buildLists(1, (list) => {
      const [x, y, z] = [list.input([4]), list.output([4]), list.output([4])];
      const workspaces = [list.temporary([4]), ...(shared ? [] : [list.temporary([4])])];
      const [first, last = first] = workspaces;
      if (first === undefined || last === undefined) throw new Error("no workspace");
      for (const workspace of workspaces) list.alloc(0, workspace);
      const streams = [list.stream("op A"), list.stream("op B")];
      const [one = 0, other = 0] = streams;
      for (const stream of streams) list.synchronize(stream, 0);
      list.statement("op A into the workspace").binary(one, "mul", x, x, first);
      list.statement("op B into the workspace").binary(other, "add", x, x, last);
      list.statement("result of op A").copy(one, first, y);
      list.statement("result of op B").copy(other, last, z);
      for (const stream of streams) list.statement("join").synchronize(0, stream);
      for (const workspace of workspaces) list.free(0, workspace);
    }),
  );
}

export const sharedWorkspace: HistoricalBug = {
  name: "torchtitan: two fused ops in flight share a workspace",
  wrong: twoOps(true),
  right: twoOps(false),
  finding: {
    code: "data-race",
    places: [
      { rank: 0, streamName: "op A", kind: "launch", statement: "op A into the workspace", run: 1 },
      { rank: 0, streamName: "op B", kind: "launch", statement: "op B into the workspace", run: 1 },
    ],
  },
};
