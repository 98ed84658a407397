/** What keeps groups of ranks from being replicas that sum with each other. Lists are written by hand. */
import { expect, it } from "vitest";
import type { CommandList } from "../../src/commands/command-list.ts";
import type { BufferId } from "../../src/commands/buffer.ts";
import type { Collective, CommandStreamId } from "../../src/commands/command.ts";
import { createAlike } from "../../src/record/alike/alike.ts";
import { replicaSize, withoutOthers } from "../../src/record/alike/replicas.ts";
import { at, makeId } from "../../src/support/invariant.ts";

interface Posted {
  readonly type?: Collective["type"];
  readonly team: readonly number[];
  readonly offset?: number;
}

const ranks = [0, 1, 2, 3];
const stream = makeId<CommandStreamId>(0);

function collective({ type = "Allreduce", team, offset = 0 }: Posted) {
  const view = { buffer: makeId<BufferId>(0), offset, dtype: "float", shape: [4], strides: [1] } as const;
  const operation = { kind: "collective", type, team, root: null, reduceOp: "sum", input: view, output: view } as const;
  return { kind: "transfer" as const, stream, communicator: team.join(" "), operation };
}

/** Each rank gathers in its pair, 0 1 and 2 3, then posts what `postOn` says. */
function recording(postOn: (rank: number) => Posted) {
  const alike = createAlike(ranks, null);
  const gathers = ranks.map((rank) => collective({ type: "Allgather", team: rank < 2 ? [0, 1] : [2, 3] }));
  const posts = ranks.map((rank) => collective(postOn(rank)));
  const list: Omit<CommandList, "rank"> = {
    kind: "CommandList",
    streams: [],
    buffers: [],
    kernels: [],
    pairs: [],
    peerCollectives: [],
    eventCount: 0,
    commands: [at(gathers, 0), at(posts, 0)],
    origins: [],
  };
  alike.varying.set(0, (_, k) => at(gathers, k));
  alike.varying.set(1, (_, k) => at(posts, k));
  return { alike, list };
}

it.each<readonly [string, (rank: number) => Posted, number]>([
  ["sums of the same place", (rank) => ({ team: rank % 2 === 0 ? [0, 2] : [1, 3] }), 2],
  ["sums within each group", (rank) => ({ team: rank < 2 ? [0, 1] : [2, 3] }), 2],
  ["sums of other places", (rank) => ({ team: rank === 0 || rank === 3 ? [0, 3] : [1, 2] }), 4],
  ["sums of all ranks", () => ({ team: ranks }), 4],
  ["other bytes in each group", (rank) => ({ team: rank % 2 === 0 ? [0, 2] : [1, 3], offset: rank }), 4],
  [
    "another order of the team",
    (rank) => ({
      team: at(
        [
          [0, 2],
          [1, 3],
          [2, 0],
          [1, 3],
        ],
        rank,
      ),
    }),
    4,
  ],
  ["gathers across groups", (rank) => ({ type: "Allgather", team: rank % 2 === 0 ? [0, 2] : [1, 3] }), 4],
])("%s", (_, postOn, size) => {
  expect(replicaSize([recording(postOn)], { devicesPerHost: 4, least: 1 })).toBe(size);
});

it("sums alone what it sums with others", () => {
  const { list } = recording(() => ({ team: [1, 3] }));
  const { commands } = withoutOthers({ ...list, rank: 1 }, 2);
  const sum = collective({ team: [1, 3] });
  const summed = { ...sum, operation: { ...sum.operation, team: [1], wholeTeam: [1, 3] } };
  expect(commands).toEqual([at(list.commands, 0), summed]);
});
