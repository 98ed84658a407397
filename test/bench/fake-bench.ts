/** `braid bench --on cuda` with a process per rank on fake GPUs, and a stand-in for PyTorch. */
import { chmodSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import process from "node:process";
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { emulationObstacle } from "../backends/cuda/emulate/compiler.ts";
import { buildFakes } from "../backends/cuda/fake/build-fakes.ts";
import { nodeScript } from "../support/node-script.ts";

/** Why there are no fake GPUs; null if there are. */
export const obstacle = process.platform === "linux" ? emulationObstacle() : "fake GPUs are shared objects for Linux";

const main = path.resolve(import.meta.dirname, "../../dist/cli/main.js");

export interface FakeBench {
  /** A Python that is the stand-in. */
  readonly python: string;
  readonly bench: (...args: readonly string[]) => Promise<{ readonly stdout: string; readonly stderr: string }>;
  readonly remove: () => void;
}

export async function fakeBench(devices: number): Promise<FakeBench> {
  const fakes = buildFakes(devices);
  const python = path.join(fakes.folder, "python");
  const fakePeer = await nodeScript("test/bench/fake-peer.ts");
  // The arguments are those of a real one: its script.
  writeFileSync(python, `#!/bin/sh\nexec "${process.execPath}" "${fakePeer}"\n`);
  chmodSync(python, 0o755);
  return {
    python,
    bench: (...args) =>
      promisify(execFile)(process.execPath, [main, "bench", ...args], {
        // oxlint-disable-next-line node/no-process-env -- what the ranks inherit
        env: { ...process.env, ...fakes.env },
      }),
    remove: () => rmSync(fakes.folder, { recursive: true }),
  };
}
