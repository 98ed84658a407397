/** Runs one of the rank scripts in this folder, in a process per fake GPU. */
import process from "node:process";
import { spawnRanks } from "../../../../src/launch/spawn-ranks.ts";
import { nodeScript } from "../../../support/node-script.ts";
import type { Fakes } from "./build-fakes.ts";

export async function runRanks(fakes: Fakes, worldSize: number, script: string, ...values: readonly string[]) {
  const printed: string[] = [];
  const result = await spawnRanks({
    worldSize,
    command: [process.execPath, await nodeScript(`test/backends/cuda/fake/${script}`), ...values],
    // oxlint-disable-next-line node/no-process-env -- what the ranks inherit
    env: { ...process.env, ...fakes.env },
    timeout: 30_000,
    out: (text) => void printed.push(text),
    err: (text) => void printed.push(text),
  });
  return { ...result, printed: printed.join("") };
}
