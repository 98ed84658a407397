import { openThreadedGroup } from "../../src/backends/cpu/threads/threaded-group.ts";
import { digestOfOutputs, fillInputs } from "../backends/cpu/inputs-and-outputs.ts";
import { patternFiles, patternProgram } from "../support/example-program.ts";
import type { Campaign } from "./campaign.ts";

const ranks = 8;
const streams = 8;
const timeout = 60;

/** How many of the examples gave more than one result. */
async function examplesThatDiffer(runs: number): Promise<number> {
  let differing = 0;
  for (const workers of [1, 2]) {
    const group = openThreadedGroup({ workers, jitter: 17 });
    for (const name of patternFiles) {
      const program = await patternProgram(name, ranks, streams);
      const prepared = await group.prepare(program);
      fillInputs(program, prepared);
      const seen = new Set<string>();
      for (let run = 0; run < runs; run++) {
        await prepared.execute({ timeout });
        seen.add(digestOfOutputs(program, prepared));
      }
      prepared.release();
      if (seen.size !== 1) differing++;
      console.log(`${name}: ${runs} runs on ${workers} worker(s), ${seen.size} result(s)`);
    }
    await group.close();
  }
  return differing;
}

/** Memory in MiB and handles before and after so many runs of one small program. */
async function growth(runs: number) {
  const observe = () => ({
    memory: process.memoryUsage().rss / 2 ** 20,
    handles: process.getActiveResourcesInfo().length,
  });
  const group = openThreadedGroup({ workers: 2 });
  const program = await patternProgram("allgather.ts", ranks, streams);
  const prepared = await group.prepare(program);
  fillInputs(program, prepared);
  for (let run = 0; run < Math.ceil(runs / 10); run++) await prepared.execute({ timeout });
  const before = observe();
  for (let run = 0; run < runs; run++) await prepared.execute({ timeout });
  const after = observe();
  await group.close();
  return { before, after };
}

export const workerRuns: Campaign = {
  what: "runs of the examples on workers that pause at random give one result each; as many runs of a small program leave memory and handles as they were",
  count: 10_000,
  run: async (count) => {
    const differing = await examplesThatDiffer(Math.ceil(count / (2 * patternFiles.length)));
    const { before, after } = await growth(count);
    return {
      ok: differing === 0 && after.memory <= before.memory + 64 && after.handles <= before.handles + 2,
      text: `${differing} examples with several results, ${before.memory.toFixed(0)} to ${after.memory.toFixed(0)} MiB, ${before.handles} to ${after.handles} handles`,
    };
  },
};
