/**
 * One rank of a test on fake GPUs: nvFuser's cases as in test/gpu, the matmuls of full size at small sizes, without
 * messages of megabytes. An argument selects cases by a pattern of their names. Prints a line for each row.
 */
import process from "node:process";
import { largeRows } from "../../../../scripts/gpu/large-rows.ts";
import { referenceRows } from "../../../../scripts/gpu/case-rows.ts";
import type { Row } from "../../../../bench/harness/rows.ts";
import { enterWorld } from "../../../../src/launch/enter-world.ts";
import { rankEnvironment } from "../../../../src/launch/rank-environment.ts";

const who = rankEnvironment(process.env);
if (who === null) throw new Error("no rank in the environment");
const world = await enterWorld(who, process.env, 20_000);
const pattern = new RegExp(process.argv[2] ?? "");

/** The fake NCCL takes no messages of megabytes. */
const wanted = (name: string): boolean => pattern.test(name) && !/AllgatherP2p|\d{4,} KiB/.test(name);

async function* rows(): AsyncGenerator<Row> {
  const context = { world };
  yield* referenceRows(context, { wanted });
  // Of 2, 3 and 4 ranks.
  const sizes = { m: 96, k: 48, n: 16, chunks: 4 };
  yield* largeRows(context, { sizes, wanted, dtypes: ["bfloat16"] });
}

let failed = false;
for await (const { name, ok, text } of rows()) {
  failed ||= !ok;
  if (world.rank === 0 || !ok) console.log(`${ok ? "ok" : `FAIL on rank ${world.rank}`} ${name}: ${text}`);
}
await world.leave();
process.exit(failed ? 1 : 0);
