/** A launcher as a process, whose ranks, the script of its argument, never end by themselves. Prints their process numbers, to be killed by a test. */
import process from "node:process";
import { spawnRanks } from "../../src/launch/spawn-ranks.ts";

const [rankProcess = ""] = process.argv.slice(2);

await spawnRanks({
  worldSize: 2,
  command: [process.execPath, rankProcess, "hangs", "1", "60000"],
  env: { PATH: process.env.PATH },
  timeout: 60_000,
  grace: 1000,
  out: () => {},
  err: () => {},
  onStart: (_, pid) => process.stdout.write(`${pid}\n`),
});
