/**
 * Collectives of the CUDA backend: the actions of each rank, and the same bits as a library's collectives, on every
 * team, dtype and reduction, over iterations on several streams, and in repeated runs.
 */
import { DeviceMesh, HostProgramBuilder, link, record } from "@braid-compiler/braid";
import { expect, it } from "vitest";
import type { HostProgram } from "../../src/host/nodes.ts";
import {
  collectives,
  type CommunicationType,
  type CommunicatorBackend,
  isRooted,
  type ReduceOpType,
} from "../../src/host/collectives.ts";
import { type DType, dtypes } from "../../src/numerics/dtype.ts";
import type { Tensor } from "../../src/numerics/tensor/host-tensor.ts";
import { randomTensor } from "../../src/oracle/random-inputs.ts";
import { at, keysOf } from "../../src/support/invariant.ts";
import { createRandom } from "../../src/support/random.ts";
import { combinations } from "../support/split-cases.ts";
import { sample } from "../support/suite.ts";
import { onRanks, runPrograms } from "./run-programs.ts";

const width = 5;

interface Case {
  readonly type: CommunicationType;
  readonly team: readonly number[];
  readonly dtype?: DType;
  readonly reduceOp?: ReduceOpType;
  /** A position in the team. */
  readonly root?: number;
  /** The devices of the input and of the output; the team if not given. */
  readonly from?: readonly number[];
  readonly to?: readonly number[];
  readonly iterations?: number;
  readonly streams?: number;
  readonly protocol?: "get" | "put";
  /** Whether the output is the input. */
  readonly inPlace?: boolean;
}

/** The collective on each row of the input, row i on the worker stream of i. */
function build(
  { type, team, dtype = "float", reduceOp, root, from = team, to = team, iterations = 3, inPlace = false }: Case,
  backend: CommunicatorBackend,
): HostProgram {
  const h = new HostProgramBuilder();
  const { splitsInput, splitsOutput } = collectives[type];
  const [input, output] = [new DeviceMesh(from), new DeviceMesh(to)];
  const x = h.input([iterations, ...(splitsInput ? [to.length] : []), width], { dtype, mesh: input });
  const y = inPlace
    ? x
    : h.tensor([iterations, ...(splitsOutput ? [from.length] : []), width], { dtype, mesh: output });
  h.output(y);
  const caller = h.getCurrentStream();
  const { mod, numberOfStreams } = h.scalars;
  h.forLoop(iterations, (i) => {
    const worker = h.stream(mod(i, numberOfStreams));
    h.setCurrentStream(worker);
    h.synchronize(caller);
    h.wait(
      h.communication(type, {
        input: h.select(x, 0, i),
        output: h.select(y, 0, i),
        team,
        backend,
        ...(root === undefined ? {} : { root }),
        ...(reduceOp === undefined ? {} : { reduceOp }),
      }),
    );
    h.setCurrentStream(caller);
    h.synchronize(worker);
  });
  return h.build();
}

/** The programs of the ranks that are in the team; the others have none. */
function programs(setting: Case, backend: CommunicatorBackend): HostProgram[] {
  const nothing = new HostProgramBuilder().build();
  return onRanks(worldOf(setting), (rank) => (setting.team.includes(rank) ? build(setting, backend) : nothing));
}

function inputsOf(setting: Case, seed: number): Tensor[][] {
  const { type, from, team, to = team, dtype = "float", iterations = 3 } = setting;
  const random = createRandom(seed);
  const shape = [iterations, ...(collectives[type].splitsInput ? [to.length] : []), width];
  return onEveryRank(worldOf(setting), (rank) =>
    (from ?? team).includes(rank) ? [randomTensor({ dtype, shape }, random, "uniform")] : [],
  );
}

function worldOf({ team }: Case): number {
  return Math.max(4, ...team.map((rank) => rank + 1));
}

function onEveryRank<T>(world: number, of: (rank: number) => T): T[] {
  return Array.from({ length: world }, (_, rank) => of(rank));
}

async function expectBitsOfLibrary(setting: Case): Promise<void> {
  const inputs = inputsOf(setting, 5);
  const { streams = 2, protocol = "get" } = setting;
  const run = { inputs, streams, protocol };
  const expected = await runPrograms(programs(setting, "nccl"), run);
  const actual = await runPrograms(programs(setting, "cuda"), run);
  expect(actual).toEqual(expected);
  expect(actual.flat().length).toBeGreaterThan(0);
  const { ranks } = link(
    programs(setting, "cuda").map((program, rank) => record(program, { rank, streams, protocol })),
  );
  expect(ranks.flatMap(({ commands }) => commands).some(({ kind }) => kind === "transfer")).toBe(false);
}

const teams = [[0, 1, 2, 3], [1, 2], [2, 0, 3], [3]];
const reduceOps: readonly ReduceOpType[] = ["sum", "prod", "min", "max"];
const allDTypes = keysOf(dtypes);

const types = keysOf(collectives).filter((type) => type !== "SendRecv");
const onTeams = combinations({ type: types, team: teams, dtype: allDTypes });

it.each(sample(onTeams, 37, 2))("$type of $dtype by team $team", async ({ type, team, dtype }) => {
  const ops = collectives[type].reduces ? reduceOps : [undefined];
  for (const [i, reduceOp] of ops.entries()) {
    const root = (i + 1) % team.length;
    const streams = ((allDTypes.indexOf(dtype) + i) % 4) + 1;
    await expectBitsOfLibrary({
      type,
      team,
      dtype,
      streams,
      ...(isRooted(type) ? { root } : {}),
      ...(reduceOp === undefined ? {} : { reduceOp }),
    });
  }
});

const bySlices = combinations({ ranks: [2, 5, 7, 8], dtype: ["bfloat16", "half", "int64", "double"] as const });
const slicesTitle = "Allreduce of $dtype by $ranks ranks, each with a slice of its own width or none";

it.each(sample(bySlices, 15, 2))(slicesTitle, async ({ ranks, dtype }) => {
  const team = [3, 1, 4, 0, 5, 2, 6, 7].filter((rank) => rank < ranks);
  const i = ["bfloat16", "half", "int64", "double"].indexOf(dtype);
  const reduceOp = at(reduceOps, (i + ranks) % reduceOps.length);
  await expectBitsOfLibrary({ type: "Allreduce", team, dtype, reduceOp, streams: 1 + (i % 3), iterations: 2 });
  await expectBitsOfLibrary({ type: "Allreduce", team, dtype, reduceOp, streams: 2, iterations: 2, inPlace: true });
});

const appended = { team: [1, 2, 0], root: 2 };
const rootsInOneMesh: readonly Case[] = [
  { type: "Gather", ...appended, from: [1, 2], to: [0] },
  { type: "Reduce", ...appended, from: [1, 2], to: [0], reduceOp: "max" },
  { type: "Broadcast", ...appended, from: [0], to: [1, 2] },
  { type: "Scatter", ...appended, from: [0], to: [1, 2] },
  // One sender, so that nothing is combined.
  { type: "Reduce", team: [3, 1], root: 1, from: [3], to: [1], reduceOp: "sum" },
];

it.each(sample(rootsInOneMesh, 1))("$type with a root that is in one mesh only", expectBitsOfLibrary);

const pairs = combinations({
  pair: [
    { team: [1, 3], root: 0 },
    { team: [1, 3], root: 1 },
    { team: [2], root: 0 },
  ],
  protocol: ["get", "put"] as const,
});

it.each(sample(pairs, 1))(
  "SendRecv of team $pair.team with root $pair.root by $protocol",
  async ({ pair, protocol }) => {
    await expectBitsOfLibrary({ type: "SendRecv", ...pair, protocol });
  },
);
