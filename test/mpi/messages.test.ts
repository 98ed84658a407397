/** Messages between processes under the mpirun of each MPI library that is installed. */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import process from "node:process";
import { promisify } from "node:util";
import { beforeAll, describe, expect, it } from "vitest";
import { mpiAbis } from "../../src/backends/mpi/abi.ts";
import { nodeScript } from "../support/node-script.ts";

/** Debian's names, under which both libraries can be installed. */
const launchers = [
  {
    abi: "Open MPI",
    file: "/usr/bin/mpirun.openmpi",
    flags: ["--oversubscribe", "--bind-to", "none"],
  },
  { abi: "MPICH", file: "/usr/bin/mpirun.mpich", flags: [] },
];

/** Open MPI starts as root only with them. */
const rootVariables = { OMPI_ALLOW_RUN_AS_ROOT: "1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM: "1" };

const limit = 60_000;

let script = "";
beforeAll(async () => {
  script = await nodeScript("test/mpi/exchange-rank.ts");
});

describe.each(launchers)("messages by $abi", ({ abi, file, flags }) => {
  const obstacle = existsSync(file) ? "" : `, skipped because there is no ${file}`;
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
