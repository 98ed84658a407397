/** A launcher as a process, whose ranks never end by themselves: prints their process numbers, to be killed by a test. */
import process from "node:process";
import { spawnRanks } from "../../src/launch/spawn-ranks.ts";
import { node, typescriptFile } from "./run-typescript.ts";

await spawnRanks({
  worldSize: 2,
  command: [node, ...typescriptFile("rank-process.ts"), "hangs", "1", "60000"],
  env: { PATH: process.env.PATH },
  timeout: 60_000,
  grace: 1000,
  out: () => {},
  err: () => {},
  onStart: (_, pid) => process.stdout.write(`${pid}\n`),
});
