/**
 * A launcher as a process. Its ranks run the script of its argument and never end by themselves. It prints their
 * process numbers, so that a test can kill them, and in the end the signal that it received.
 */
import process from "node:process";
import { spawnRanks } from "../../src/launch/spawn-ranks.ts";

const [rankProcess = "", what = "hangs", worldSize = "2", timeout = "60000"] = process.argv.slice(2);

const { interrupted } = await spawnRanks({
  worldSize: Number(worldSize),
  command: [process.execPath, rankProcess, what, "1", timeout],
  env: { PATH: process.env.PATH, TMPDIR: process.env.TMPDIR },
  timeout: Number(timeout),
  grace: 1000,
  out: () => {},
  err: () => {},
  onStart: (_, pid) => process.stdout.write(`${pid}\n`),
});
process.stdout.write(`${interrupted}\n`);
