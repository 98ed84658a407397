/**
 * Runs a plan by Braid's own executor when another process asks for it, so that both can be timed in turn:
 *
 *     jiti scripts/gpu/time-plan.ts DEVICES PLAN FOLDER
 *
 * Draws inputs, runs once, and writes each rank's tensors to FOLDER: in-RANK-POSITION, out-RANK-POSITION. A file
 * FOLDER/ask-I with a number of runs, from I = 0, is answered by FOLDER/answer-I: for each rank, the device's
 * milliseconds of one run. Zero runs end it.
 */
import { existsSync } from "node:fs";
import { readFile, rename, writeFile } from "node:fs/promises";
import path from "node:path";
import { openDeviceGroup } from "../../src/backends/cuda/cuda-backend.ts";
import { readPlanFolder } from "../../src/cli/plan/plan-folder.ts";
import type { World } from "../../src/launch/join-world.ts";
import { at } from "../../src/support/invariant.ts";
import { onGpus, type RankWork } from "../../bench/harness/on-gpus.ts";
import { createNoise } from "./noise.ts";

/** Seconds without a question until it gives up. */
const patience = 240;

async function answerQuestions({ world, names: [plan = "", folder = ""] }: RankWork): Promise<number> {
  const { rank } = world;
  const { document, ranks } = await readPlanFolder(plan);
  if (document.world !== world.worldSize) throw new Error(`the plan is for ${document.world} ranks`);
  const { ops, notes, tensors } = at(ranks, rank);
  const group = openDeviceGroup({ rendezvous: world, timeout: 60 });
  const prepared = await group.prepare(() => ({ ops, unjoined: () => ops, notes }));
  const fill = createNoise(7 + rank);
  for (const { role, place, position, bytes } of tensors) {
    if (role !== "input") continue;
    const drawn = new Uint8Array(bytes);
    fill(drawn);
    prepared.write(place, drawn);
    await writeFile(path.join(folder, `in-${rank}-${position}`), drawn);
  }
  await prepared.execute();
  for (const { role, place, position, bytes } of tensors) {
    if (role === "output") await writeFile(path.join(folder, `out-${rank}-${position}`), prepared.read(place, bytes));
  }
  await world.barrier();
  if (rank === 0) await answer(folder, -1, "");
  for (let turn = 0; ; turn++) {
    const runs = await asked(world, folder, turn);
    if (runs === 0) break;
    await prepared.execute({ runs: 3 });
    await world.barrier();
    const { deviceMilliseconds = NaN } = await prepared.execute({ runs, deviceTime: true, timeout: 60 });
    const each = await world.allGather(new TextEncoder().encode(String(deviceMilliseconds / runs)));
    if (rank === 0) await answer(folder, turn, each.map((bytes) => new TextDecoder().decode(bytes)).join(" "));
  }
  prepared.release();
  await group.close();
  return 0;
}

/** The runs that rank 0 is asked for. */
async function asked(world: World, folder: string, turn: number): Promise<number> {
  let own = "";
  if (world.rank === 0) {
    const file = path.join(folder, `ask-${turn}`);
    for (const start = Date.now(); !existsSync(file) && Date.now() - start < 1000 * patience;) {
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    own = existsSync(file) ? await readFile(file, "utf8") : "0";
  }
  const [first = new Uint8Array()] = await world.allGather(new TextEncoder().encode(own));
  return Number(new TextDecoder().decode(first));
}

async function answer(folder: string, turn: number, text: string): Promise<void> {
  const file = path.join(folder, `answer-${turn}`);
  await writeFile(`${file}.part`, text);
  await rename(`${file}.part`, file);
}

await onGpus({ url: import.meta.url, timeout: 1000 * (patience + 10), rank: answerQuestions });
