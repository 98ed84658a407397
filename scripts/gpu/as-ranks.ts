/** Runs a script as one process per GPU: called without a rank, it starts itself once for each. */
import { createRequire } from "node:module";
import path from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { enterWorld } from "../../src/launch/enter-world.ts";
import type { World } from "../../src/launch/join-world.ts";
import { rankEnvironment } from "../../src/launch/rank-environment.ts";
import { spawnRanks } from "../../src/launch/spawn-ranks.ts";

const rankMark = "--as-rank";

/**
 * `script` is the caller's `import.meta.url`; its first argument is the number of GPUs. `runRank` gets the others in
 * every process, and returns its exit status, which is also that of the whole.
 */
export async function asRanks(
  script: string,
  timeout: number,
  runRank: (world: World, values: readonly string[]) => Promise<number>,
): Promise<number> {
  const values = process.argv.slice(2);
  if (values[0] === rankMark) {
    const who = rankEnvironment(process.env);
    if (who === null) throw new Error("no rank in the environment");
    const world = await enterWorld(who, process.env, timeout);
    const status = await runRank(world, values.slice(1));
    await world.leave();
    return status;
  }
  const [devices = "2", ...rest] = values;
  const require = createRequire(import.meta.url);
  const jiti = path.join(path.dirname(require.resolve("jiti/package.json")), "lib/jiti-cli.mjs");
  const { end, statuses } = await spawnRanks({
    worldSize: Number(devices),
    command: [process.execPath, jiti, fileURLToPath(script), rankMark, ...rest],
    env: process.env,
    timeout,
    out: (text) => process.stdout.write(text),
    err: (text) => process.stderr.write(text),
  });
  if (end !== null) console.log(`ended early by rank ${end.rank}: ${end.reason}`);
  return statuses.every((status) => status === 0) ? 0 : 1;
}
