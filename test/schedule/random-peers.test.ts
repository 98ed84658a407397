/**
 * Random programs of collectives, sends and products under random schedules: collectives in peers' memory verify and have the library's
 * bits, as recorded and as rewritten, in orders of streams and on one queue per rank.
 */
import { link, type Program, record, verify } from "braid";
import { expect, it } from "vitest";
import { openMachineGroup } from "../../src/backends/cpu/machine-group.ts";
import { meetingsIn } from "../../src/commands/meetings.ts";
import type { CommunicatorBackend } from "../../src/host/nodes.ts";
import { parseSchedule } from "../../src/machine/schedule.ts";
import { dtypes } from "../../src/numerics/dtype.ts";
import { tensorBytes } from "../../src/numerics/host-tensor.ts";
import { randomTensor } from "../../src/oracle/random-inputs.ts";
import { moveCopiesToLane } from "../../src/schedule/copy-lane.ts";
import { applySchedule, type ScheduleOptions } from "../../src/schedule/schedule-options.ts";
import { createRandom, type Random } from "../../src/support/random.ts";
import { buildPeerProgram, peerRecipe, type PeerRecipe } from "../support/random-peer-programs.ts";

const programCount = 24;

function linked(recipe: PeerRecipe, backend: CommunicatorBackend): Program {
  const { world, streams: numberOfStreams, p2pProtocol } = recipe;
  return link(
    Array.from({ length: world }, (_, rank) =>
      record(buildPeerProgram(recipe, rank, backend), { rank, numberOfStreams, p2pProtocol }),
    ),
  );
}

function randomSchedule(random: Random): ScheduleOptions {
  const coin = (): boolean => random.integer(2) === 1;
  return {
    inPlace: coin(),
    ownLast: coin(),
    batchSignals: coin(),
    computeStreams: 1 + random.integer(3),
    ...(coin() ? { splitChunks: 2 } : {}),
    ...(coin() ? { mergeProducts: [1, 2] } : {}),
    ...(coin() ? { smMargin: 8 } : {}),
  };
}

/** Digits of the outputs after two runs, with random inputs. */
async function outputsOf(
  program: Program,
  order: string,
  queues: "streams" | "ranks",
  transfers: "eager" | "synchronous",
): Promise<readonly string[]> {
  const prepared = await openMachineGroup({ schedule: parseSchedule(order), transfers, queues }).prepare(program);
  const random = createRandom(1);
  for (const { id, role, bytes, dtype } of program.buffers) {
    if (role !== "input") continue;
    const shape = [bytes / dtypes[dtype].bytes];
    prepared.write(id, tensorBytes(randomTensor({ dtype, shape }, random, "uniform")));
  }
  for (let run = 0; run < 2; run++) await prepared.execute();
  const outputs = program.buffers.filter(({ role }) => role === "output");
  return outputs.map(({ id }) => Buffer.from(prepared.read(id)).toString("hex"));
}

it("collectives in peers' memory have the library's bits under every schedule", async () => {
  const random = createRandom(5);
  let meetings = 0;
  for (let seed = 0; seed < programCount; seed++) {
    const recipe = peerRecipe(seed);
    const expected = await outputsOf(linked(recipe, "nccl"), "seed:1", "streams", "eager");
    const program = linked(recipe, "cuda");
    const options = randomSchedule(random);
    const what = `seed ${seed}, ${JSON.stringify(options)}`;
    for (const each of [program, moveCopiesToLane(applySchedule(program, options))]) {
      expect(verify(each, { notes: false }).findings, what).toEqual([]);
      expect(await outputsOf(each, `seed:${seed}`, "streams", "eager"), what).toEqual(expected);
      expect(await outputsOf(each, `seed:${seed}`, "ranks", "synchronous"), what).toEqual(expected);
      meetings += each.ranks.flatMap(({ rank, commands }) => meetingsIn(commands, rank, each)).length;
    }
  }
  expect(meetings).toBeGreaterThan(200);
});
