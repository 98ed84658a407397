/** Messages between processes under the mpirun of each MPI library that is installed. */
import { execFile } from "node:child_process";
import process from "node:process";
import { promisify } from "node:util";
import { beforeAll, describe, expect, it } from "vitest";
import { mpiAbis } from "../../src/backends/mpi/abi.ts";
import { nodeScript } from "../support/node-script.ts";
import { launchers, rootVariables } from "./under-mpi.ts";

const limit = 60_000;

let script = "";
beforeAll(async () => {
  script = await nodeScript("test/mpi/exchange-rank.ts");
});

describe.each(launchers)("messages by $abi", ({ abi, file, flags, obstacle }) => {
  it.skipIf(obstacle !== "")(
    `between two processes, and of each with itself${obstacle}`,
    async () => {
      const number = mpiAbis.findIndex(({ name }) => name === abi);
      const { stdout } = await promisify(execFile)(
        file,
        [...flags, "-np", "2", process.execPath, script, String(number)],
        { env: { ...process.env, ...rootVariables }, killSignal: "SIGKILL", timeout: limit },
      );
      // A launcher may join the lines of its processes.
      const ranks = (stdout.match(/\{[^}]*\}/g) ?? []).map((document) => JSON.parse(document) as unknown);
      expect(ranks).toHaveLength(2);
      for (const rank of [0, 1])
        expect(ranks).toContainEqual({ rank, size: 2, threads: "multiple", started: 72, wrong: 0 });
    },
    limit,
  );
});
