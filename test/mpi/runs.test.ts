/** `mpirun braid run --on mpi`, under the mpirun of each library that is installed. */
import { execFile } from "node:child_process";
import process from "node:process";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { nodeScript } from "../support/node-script.ts";
import { endOf, fingerprintOf, launchers, underMpi } from "./under-mpi.ts";

const example = "examples/ring-allgather-matmul.ts";

describe.each(launchers)("braid run --on mpi by $abi", (launcher) => {
  const { obstacle, file, flags } = launcher;
  it.skipIf(obstacle !== "")(
    `and a program in code has the shards of one process${obstacle}`,
    async () => {
      const script = await nodeScript("test/mpi/api-rank.ts");
      const { status, out } = await endOf(file, [...flags, "-np", "2", process.execPath, script], { timeout: 60_000 });
      expect(status).toBe(0);
      const said = (out.match(/\{[^}]*\}/g) ?? []).map((document) => JSON.parse(document) as unknown);
      expect(said).toHaveLength(2);
      expect(said).toContainEqual({ rank: 0, size: 2, ranks: [0, 1], same: true, refused: "device-count" });
      expect(said).toContainEqual({ rank: 1, size: 2, ranks: [2, 3], same: true, refused: "device-count" });
    },
    60_000,
  );

  it.skipIf(obstacle !== "" || process.platform !== "linux").each([0, 20])(
    `starts where the heap can grow by %i pages only${obstacle}`,
    async (pages) => {
      const script = await nodeScript("test/mpi/crowded-heap-rank.ts");
      const { status, out } = await endOf(file, [...flags, "-np", "1", process.execPath, script, `${pages}`], {
        timeout: 30_000,
      });
      expect(status).toBe(0);
      expect(out).toContain("alive");
    },
    60_000,
  );

  it.skipIf(obstacle !== "")(
    `has the bits of --on cpu${obstacle}`,
    async () => {
      const args = [example, "--devices", "4", "--backend", "cuda", "--repeat", "2", "--json"];
      const { status, out } = await underMpi(launcher, 2, [...args, "--on", "mpi"]);
      expect(status).toBe(0);
      expect(await fingerprintOf(out)).toEqual(await fingerprintOf(null, args));
    },
    60_000,
  );
});

describe.each(launchers)("processes of $abi", ({ obstacle, file, flags }) => {
  it.skipIf(obstacle !== "")(
    `wait for one that leaves late${obstacle}`,
    async () => {
      const script = await nodeScript("test/mpi/late-rank.ts");
      const { status, out } = await endOf(file, [...flags, "-np", "2", process.execPath, script], { timeout: 30_000 });
      expect(status).toBe(0);
      expect(out.match(/left/g)).toHaveLength(2);
    },
    60_000,
  );
});

describe.each(launchers)("joinMpi with $abi", ({ abi, obstacle, file, flags }) => {
  it.skipIf(obstacle !== "")(
    `ends where a process does not come${obstacle}`,
    async () => {
      const script = await nodeScript("test/mpi/absent-rank.ts");
      const { status, err } = await endOf(file, [...flags, "-np", "2", process.execPath, script], { timeout: 30_000 });
      // MPICH's launcher may give the status of the other process, which it kills.
      expect(abi === "MPICH" ? [3, 9] : [3]).toContain(status);
      expect(err).toContain("error[rendezvous-failed]: MPI did not start");
      expect(err).toContain("MPI_Init_thread waited 1 s for the other processes");
    },
    60_000,
  );
});

const missing = launchers.every(({ obstacle }) => obstacle !== "") ? ", skipped because there is no MPI library" : "";

it.skipIf(missing !== "")(
  `a process whose MPI_Finalize does not return is ended by the system${missing}`,
  async () => {
    const script = await nodeScript("test/mpi/finalize-rank.ts");
    const ended = promisify(execFile)(process.execPath, [script], { killSignal: "SIGKILL", timeout: 20_000 });
    await expect(ended).rejects.toMatchObject({ signal: "SIGALRM", stdout: "entered\n" });
  },
  30_000,
);
