/**
 * One rank of a test on fake GPUs: every op and communication over parts that are shorter or empty, each in every second
 * combination of size and idiom. Prints a line for each.
 */
import process from "node:process";
import { createCudaBackend } from "../../../../src/cuda.ts";
import { enterWorld } from "../../../../src/launch/enter-world.ts";
import { rankEnvironment } from "../../../../src/launch/rank-environment.ts";
import { checkCase } from "../../../gpu/check-case.ts";
import { expectationsOf } from "../../../gpu/expectation.ts";
import { unevenFusion, unevenFusions } from "../../../support/uneven-fusions.ts";

const who = rankEnvironment(process.env);
if (who === null) throw new Error("no rank in the environment");
const world = await enterWorld(who, process.env, 20_000);
const devices = world.worldSize;

const idioms = [
  { backend: "nccl" },
  { backend: "cuda", protocol: "get" },
  { backend: "cuda", protocol: "put" },
] as const;

let failed = false;
for (const [program, name] of Object.keys(unevenFusions).entries()) {
  for (const [turn, size] of [0, 1, devices - 1, devices + 1].entries()) {
    const expectations = expectationsOf(unevenFusion(name, size, devices));
    for (const [idiom, lowering] of idioms.entries()) {
      if ((program + turn + idiom) % 2 === 1) continue;
      const on = createCudaBackend({ rendezvous: world, graph: "on", timeout: 20 });
      const options = { ...lowering, rank: world.rank, devices, on, repeat: 2 };
      const problems = await checkCase(unevenFusion(name, size, devices), expectations, options);
      failed ||= problems.length > 0;
      const label = `${name} of ${size}, ${Object.values(lowering).join(" ")}`;
      if (world.rank === 0 || problems.length > 0) console.log(`${label}: ${problems.join("; ") || "ok"}`);
    }
  }
}
await world.leave();
process.exit(failed ? 1 : 0);
