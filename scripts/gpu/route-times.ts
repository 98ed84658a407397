/**
 * Reshardings by one exchange and by collectives, and an MLP on a mesh of 2 x 2: medians of 15 runs of the slowest rank.
 * All forms of a problem take turns, and their results are compared. With `--profile`, also predictions and the chosen
 * schedules.
 *
 *     sh braid-offline/braid --script scripts/gpu/route-times.ts 4 --profile profiles/4xH200.json
 *     ... route-times.ts 4 --only "MLP.*half"                    the problems whose names match
 */
import { readFileSync } from "node:fs";
import process from "node:process";
import { parseArgs } from "node:util";
import type { Group, Prepared } from "../../src/backends/backend.ts";
import { gatherReports } from "../../src/cli/run/gather.ts";
import { createCudaBackend } from "../../src/cuda.ts";
import type { World } from "../../src/launch/join-world.ts";
import type { MachineProfile } from "../../src/simulate/machine-profile.ts";
import { parseProfile } from "../../src/simulate/parse-profile.ts";
import { at } from "../../src/support/invariant.ts";
import { asRanks } from "./as-ranks.ts";
import { createNoise } from "./noise.ts";
import { type Form, type Problem, problems } from "./route-forms.ts";
import { median } from "./rows.ts";
import { versions } from "./versions.ts";

const runs = 15;
/** Runs before each one that counts, so that no form runs with what another left in caches or queues. */
const warmUp = 2;

interface Contender extends Form {
  readonly prepared: Prepared;
  readonly milliseconds: number[];
}

/** Inputs of one position are the same in every form. */
async function prepare(group: Group, forms: readonly Form[], rank: number): Promise<readonly Contender[]> {
  const drawn = new Map<number, Uint8Array>();
  const contenders: Contender[] = [];
  for (const form of forms) {
    const prepared = await group.prepare(form.program);
    for (const { id, role, rank: owner, position, bytes } of form.program.buffers) {
      if (role !== "input" || owner !== rank || position === null) continue;
      const words = drawn.get(position) ?? new Uint8Array(bytes);
      if (!drawn.has(position)) createNoise(100 * rank + position)(words);
      drawn.set(position, words);
      prepared.write(id, words);
    }
    contenders.push({ ...form, prepared, milliseconds: [] });
  }
  return contenders;
}

/** Clocks, temperature and other load then affect all forms equally. */
async function runInTurns(world: World, contenders: readonly Contender[]): Promise<void> {
  for (let run = 0; run < runs; run++) {
    for (let i = 0; i < contenders.length; i++) {
      const { prepared, milliseconds } = at(contenders, (i + run) % contenders.length);
      for (let j = 0; j <= warmUp; j++) {
        await world.barrier();
        const own = await prepared.execute();
        if (j === warmUp) milliseconds.push(at(await gatherReports(world, [own]), 0).milliseconds);
      }
    }
  }
}

function outputOf({ program, prepared }: Contender, rank: number): Uint16Array {
  const output = program.buffers.find(({ role, rank: owner }) => role === "output" && owner === rank);
  if (output === undefined) throw new Error("a rank has an output");
  return new Uint16Array(prepared.read(output.id).slice().buffer);
}

/** The share of words on all ranks in which a form's output is not that of the first form. */
async function differences(world: World, contenders: readonly Contender[]): Promise<readonly number[]> {
  const first = outputOf(at(contenders, 0), world.rank);
  const shares: number[] = [];
  for (const contender of contenders) {
    const own = outputOf(contender, world.rank);
    const isEqual = Buffer.compare(Buffer.from(own.buffer), Buffer.from(first.buffer)) === 0;
    const count = isEqual ? 0 : own.reduce((sum, word, i) => sum + (word === first[i] ? 0 : 1), 0);
    const all = await world.allGather(new Uint8Array(Float64Array.of(count / own.length).buffer));
    shares.push(Math.max(...all.map((bytes) => at(new Float64Array(bytes.slice().buffer), 0))));
  }
  return shares;
}

async function runProblem(world: World, group: Group, problem: Problem, profile: MachineProfile | null): Promise<void> {
  const contenders = await prepare(group, problem.forms(profile), world.rank);
  await runInTurns(world, contenders);
  const differing = await differences(world, contenders);
  if (world.rank === 0) {
    console.log(problem.name);
    for (const [i, { name, milliseconds, predicted }] of contenders.entries()) {
      const spread = [Math.min(...milliseconds), Math.max(...milliseconds)].map((each) => each.toFixed(3)).join(" to ");
      const guess = predicted === null ? "" : `predicted ${predicted.toFixed(3)}`;
      const same = differing[i] === 0 ? "" : `${(100 * (differing[i] ?? NaN)).toFixed(2)} % of words differ`;
      console.log(
        `  ${name.padEnd(20)} ${median(milliseconds).toFixed(3).padStart(8)} ms (${spread}) ${guess} ${same}`.trimEnd(),
      );
    }
  }
  for (const { prepared } of contenders) prepared.release();
}

process.exitCode = await asRanks(import.meta.url, 120_000, async (world, given) => {
  const { values } = parseArgs({
    args: [...given],
    options: { profile: { type: "string" }, only: { type: "string", default: "" } },
  });
  const { rank, worldSize } = world;
  const profile =
    values.profile === undefined ? null : parseProfile(readFileSync(values.profile, "utf8"), values.profile);
  const group = await createCudaBackend({ rendezvous: world, graph: "on" }).open({
    world: worldSize,
    localRanks: [rank],
  });
  if (rank === 0) console.log(JSON.stringify({ devices: worldSize, ...versions(rank, world.localRank) }));
  const wanted = new RegExp(values.only);
  for (const problem of problems) {
    if (problem.devices === worldSize && wanted.test(problem.name)) await runProblem(world, group, problem, profile);
  }
  await group.close();
  return 0;
});
