/** What keeps groups of ranks from being replicas that meet in collectives. Lists are written by hand. */
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
  readonly root?: number;
  readonly offset?: number;
}

const ranks = [0, 1, 2, 3];
const stream = makeId<CommandStreamId>(0);

function viewAt(offset: number) {
  return { buffer: makeId<BufferId>(0), offset, dtype: "float", shape: [4], strides: [1] } as const;
}

function collective({ type = "Allreduce", team, root = -1, offset = 0 }: Posted) {
  const [input, output] = [viewAt(offset), viewAt(offset)];
  const sides = { root: root < 0 ? null : root, reduceOp: "sum", input, output } as const;
  return {
    kind: "transfer" as const,
    stream,
    communicator: team.join(" "),
    operation: { kind: "collective" as const, type, team, ...sides },
  };
}

/** The ranks 0 and 1, and 2 and 3, send to each other through their memory. Then each posts what `postOn` says. */
function recording(postOn: (rank: number) => Posted) {
  const alike = createAlike(ranks, null);
  const posts = ranks.map((rank) => collective(postOn(rank)));
  const list: Omit<CommandList, "rank"> = {
    kind: "CommandList",
    streams: [],
    buffers: [],
    kernels: [],
    pairs: [{ protocol: "get", role: "send", peer: 1, sequence: 0, view: viewAt(0) }],
    peerCollectives: [],
    eventCount: 0,
    commands: [{ kind: "signalPeer", stream, pair: 0, slot: "ready" }, at(posts, 0)],
    origins: [],
  };
  alike.peers.push([1, 0, 3, 2]);
  alike.varying.set(1, (_, k) => at(posts, k));
  return { alike, list };
}

/** Ranks of the same place, 0 and 2, and 1 and 3. */
const ofPlace = (rank: number): readonly number[] => (rank % 2 === 0 ? [0, 2] : [1, 3]);
const inTwoOrders = [
  [0, 2],
  [1, 3],
  [2, 0],
  [1, 3],
];

it.each<readonly [string, (rank: number) => Posted, number]>([
  ["sums of the same place", (rank) => ({ team: ofPlace(rank) }), 2],
  ["gathers of the same place", (rank) => ({ type: "Allgather", team: ofPlace(rank) }), 2],
  ["sums within each group", (rank) => ({ team: rank < 2 ? [0, 1] : [2, 3] }), 2],
  ["from a root of another group", (rank) => ({ type: "Broadcast", team: ofPlace(rank), root: 0 }), 4],
  ["sums of other places", (rank) => ({ team: rank === 0 || rank === 3 ? [0, 3] : [1, 2] }), 4],
  ["sums of all ranks", () => ({ team: ranks }), 4],
  ["other bytes in each group", (rank) => ({ team: ofPlace(rank), offset: rank }), 4],
  ["another order of the team", (rank) => ({ team: at(inTwoOrders, rank) }), 4],
])("%s", (_, postOn, size) => {
  const recorded = [recording(postOn)];
  expect(replicaSize(recorded, { devicesPerHost: 4, least: 1 })).toBe(size);
  expect(replicaSize(recorded, { devicesPerHost: 1, least: 1 })).toBe(4);
  expect(replicaSize(recorded, { devicesPerHost: 4, least: 4 })).toBe(4);
});

it("is alone where it meets others", () => {
  const { list } = recording(() => ({ team: [1, 3] }));
  const { commands } = withoutOthers({ ...list, rank: 1 }, 2);
  const sum = collective({ team: [1, 3] });
  const summed = { ...sum, operation: { ...sum.operation, team: [1], wholeTeam: [1, 3] } };
  expect(commands).toEqual([at(list.commands, 0), summed]);
});
