/**
 * Runs four programs with loops over the devices under 1,000 seeded schedules each, by every kind of loop, and compares bits: `jiti scripts/run-seeds.ts
 * [SEEDS]`. CI takes 50. Some minutes; ends with 1 where a bit differs.
 */
import * as programs from "../test/support/point-to-point-fusions.ts";
import { differingSeeds } from "../test/support/seeded-schedules.ts";

const [seeds = "1000"] = process.argv.slice(2);
for (const [name, build] of Object.entries(programs)) {
  const differing = await differingSeeds(build, Number(seeds));
  console.log(`${name}: ${seeds} seeds, ${differing.length} with other bits`);
  for (const line of differing.slice(0, 10)) console.log(`  ${line}`);
  if (differing.length > 0) process.exitCode = 1;
}
