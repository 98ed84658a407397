/** Point-to-point groups: the k-th send meets the k-th recv, and groups that exchange become one transfer. */
import { expect, test } from "vitest";
import { link } from "../../src/commands/link/link.ts";
import type { LinkedTransfer, Program } from "../../src/commands/program.ts";
import { at } from "../../src/support/invariant.ts";
import { buildLists } from "../machine/list-builder.ts";

/** Each send as `from.command.op > to.command.op`. */
function edgesOf(transfer: LinkedTransfer): readonly string[] {
  if (transfer.kind !== "group") throw new Error("not a group");
  return transfer.edges.map(({ from, sendOp, to, recvOp }) => {
    const [sender, receiver] = [at(transfer.participants, from), at(transfer.participants, to)];
    return `${sender.rank}.${sender.command}.${sendOp} > ${receiver.rank}.${receiver.command}.${recvOp}`;
  });
}

function participantsOf(program: Program): readonly (readonly string[])[] {
  return program.transfers.map(({ participants }) => participants.map(({ rank, command }) => `${rank}.${command}`));
}

test("groups join through others; groups that never meet stay apart", () => {
  const program = link(
    buildLists(5, (list, rank) => {
      const view = list.temporary([4]);
      // 0 -> 1 -> 2, and 3 <-> 4.
      if (rank < 3) {
        list.group(0, [
          ...(rank > 0 ? [{ type: "recv", peer: rank - 1, view } as const] : []),
          ...(rank < 2 ? [{ type: "send", peer: rank + 1, view } as const] : []),
        ]);
      } else {
        list.group(0, [
          { type: "send", peer: 7 - rank, view },
          { type: "recv", peer: 7 - rank, view },
        ]);
      }
    }),
  );
  expect(participantsOf(program)).toEqual([
    ["0.0", "1.0", "2.0"],
    ["3.0", "4.0"],
  ]);
  expect(program.transfers.map(edgesOf)).toEqual([
    ["0.0.0 > 1.0.0", "1.0.1 > 2.0.0"],
    ["3.0.0 > 4.0.1", "4.0.0 > 3.0.1"],
  ]);
});

test("the k-th send meets the k-th recv across groups, which ends up as one transfer", () => {
  const program = link(
    buildLists(2, (list, rank) => {
      const view = list.temporary([4]);
      const op = { type: rank === 0 ? "send" : "recv", peer: 1 - rank, view } as const;
      if (rank === 0) list.group(0, [op, op]);
      else for (const _ of [0, 1]) list.group(0, [op]);
    }),
  );
  expect(participantsOf(program)).toEqual([["0.0", "1.0", "1.1"]]);
  expect(program.transfers.map(edgesOf)).toEqual([["0.0.0 > 1.0.0", "0.0.1 > 1.1.0"]]);
});

test("each communicator counts for itself", () => {
  const program = link(
    buildLists(2, (list, rank) => {
      const view = list.temporary([4]);
      const op = { type: rank === 0 ? "send" : "recv", peer: 1 - rank, view } as const;
      for (const communicator of rank === 0 ? ["a", "b"] : ["b", "a"]) list.group(0, [op], communicator);
    }),
  );
  expect(program.transfers.map(({ communicator }) => communicator)).toEqual(["a", "b"]);
  expect(program.transfers.map(edgesOf)).toEqual([["0.0.0 > 1.1.0"], ["0.1.0 > 1.0.0"]]);
});

test("a rank exchanges with itself", () => {
  const program = link(
    buildLists(1, (list) => {
      list.group(0, [
        { type: "recv", peer: 0, view: list.output([4]) },
        { type: "send", peer: 0, view: list.input([4]) },
      ]);
    }),
  );
  expect(program.transfers.map(edgesOf)).toEqual([["0.0.1 > 0.0.0"]]);
});

test("an empty group is a transfer without peers", () => {
  const program = link(buildLists(1, (list) => list.group(0, [])));
  expect(participantsOf(program)).toEqual([["0.0"]]);
  expect(program.transfers.map(edgesOf)).toEqual([[]]);
});
