/** One rank of a test on fake GPUs: nvFuser's cases as test/gpu runs them, the large ones at small sizes. Prints a line for each row. */
import process from "node:process";
import { largeRows } from "../../../scripts/gpu/large-rows.ts";
import type { GraphOf } from "../../../scripts/gpu/lowering-label.ts";
import { enterWorld } from "../../../src/launch/enter-world.ts";
import { rankEnvironment } from "../../../src/launch/rank-environment.ts";

const who = rankEnvironment(process.env);
if (who === null) throw new Error("no rank in the environment");
const world = await enterWorld(who, process.env, 20_000);

/** The fake NCCL is not captured. */
const graphOf: GraphOf = ({ communicatorBackend }, asked) => (communicatorBackend === "nccl" ? "off" : asked);

let failed = false;
for await (const { name, ok, text } of largeRows(
  { world },
  { sizes: { m: 64, k: 32, n: 16, chunks: 4 }, graphOf, dtypes: ["bfloat16"] },
)) {
  failed ||= !ok;
  if (world.rank === 0 || !ok) console.log(`${ok ? "ok" : `FAIL on rank ${world.rank}`} ${name}: ${text}`);
}
await world.leave();
process.exit(failed ? 1 : 0);
