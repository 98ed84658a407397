/**
 * Random programs of collectives, sends and GEMMs under random schedules. Collectives in peers' memory verify and have
 * the library's bits, as recorded and as rewritten, under several interleavings and on one queue per rank.
 */
import { link, type Program, record, verify } from "@braid-compiler/braid";
import { expect, it } from "vitest";
import { barriersIn } from "../../src/commands/barriers.ts";
import type { CommunicatorBackend } from "../../src/host/collectives.ts";
import { applySchedule, type ScheduleOptions } from "../../src/schedule/schedule.ts";
import { createRandom, type Random } from "../../src/support/random.ts";
import { buildPeerProgram, peerRecipe, type PeerRecipe } from "../support/random-peer-programs.ts";
import { outputsOf } from "./programs.ts";
import { runs } from "../support/suite.ts";

const programCount = runs({ quick: 6, long: 24 });

function linked(recipe: PeerRecipe, backend: CommunicatorBackend): Program {
  const { world, streams, protocol } = recipe;
  return link(
    Array.from({ length: world }, (_, rank) =>
      record(buildPeerProgram(recipe, rank, backend), { rank, streams, protocol }),
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
    ...(coin() ? { smMargin: 8 } : {}),
    earlyGathers: coin(),
    dropSignals: coin(),
  };
}

it("collectives in peers' memory have the library's bits under every schedule", async () => {
  const random = createRandom(5);
  let meetings = 0;
  for (let seed = 0; seed < programCount; seed++) {
    const recipe = peerRecipe(seed);
    const expected = await outputsOf(linked(recipe, "nccl"), "seed:1");
    const program = linked(recipe, "cuda");
    const options = randomSchedule(random);
    const what = `seed ${seed}, ${JSON.stringify(options)}`;
    for (const each of [program, applySchedule(program, { ...options, copyStream: "dedicated" })]) {
      expect(verify(each, { notes: false }).findings, what).toEqual([]);
      expect(await outputsOf(each, `seed:${seed}`), what).toEqual(expected);
      expect(await outputsOf(each, `seed:${seed}`, { queues: "ranks", transfers: "synchronous" }), what).toEqual(
        expected,
      );
      meetings += each.ranks.flatMap(({ rank, commands }) => barriersIn(commands, rank, each)).length;
    }
  }
  expect(meetings).toBeGreaterThan(8 * programCount);
});
