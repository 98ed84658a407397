/** What `braid run --on mpi` says if the MPI library could not reach its launcher: one message, by the first process. */
import path from "node:path";
import process from "node:process";
import { describe, expect, it } from "vitest";
import { launcherOf, requireConnection, tasksOutsideMpi } from "../../src/backends/mpi/launcher-of.ts";
import { joinMpi } from "@braid-compiler/braid/mpi";
import { endOf, launchers } from "./under-mpi.ts";

const main = path.resolve(import.meta.dirname, "../../dist/cli/main.js");
const run = [main, "run", "examples/allgather-matmul.ts", "--devices", "2", "--on", "mpi"];
/** Starts the command as npx does: by Node, which closes for it the descriptors that it inherited. */
const byNode = [
  "--eval",
  "const [, file, ...args] = process.argv; " +
    "const child = require('node:child_process').spawn(file, args, { stdio: 'inherit' }); " +
    "child.on('exit', (status) => process.exit(status))",
  process.execPath,
];

const underNode = ["-np", "2", process.execPath, ...byNode, ...run];

it.each([Infinity, NaN, 0, -1, 1e9])("joinMpi refuses a time-out of %s before it enters MPI", (timeout) => {
  expect(() => joinMpi({ timeout })).toThrow(/bad-option|option-value/);
});

describe("the launcher", () => {
  it.each([
    ["none", {}, null, 1],
    ["Open MPI's mpirun", { OMPI_COMM_WORLD_RANK: "3", PMIX_RANK: "3" }, { abi: "Open MPI", rank: 3 }, 1],
    [
      "srun --mpi=pmix",
      { PMIX_RANK: "1", SLURM_PROCID: "1", SLURM_STEP_NUM_TASKS: "4" },
      { abi: "Open MPI", rank: 1 },
      1,
    ],
    ["MPICH's mpirun -pmi-port", { PMI_PORT: "host:1", PMI_ID: "2" }, { abi: "MPICH", rank: 2 }, 1],
    [
      "Open MPI's mpirun in a step of pmi2",
      { PMIX_RANK: "0", PMI_RANK: "5", PMI_FD: "99" },
      { abi: "Open MPI", rank: 0 },
      1,
    ],
    ["srun without a flag", { SLURM_PROCID: "1", SLURM_STEP_NUM_TASKS: "4" }, null, 4],
    ["a batch script of Slurm", { SLURM_PROCID: "0", SLURM_NTASKS: "4" }, null, 1],
  ])("%s", (_, env, launcher, tasks) => {
    expect(launcherOf(env)).toEqual(launcher);
    expect(tasksOutsideMpi(env)).toBe(tasks);
    expect(() => requireConnection(env)).not.toThrow();
  });

  it("of MPICH must have its connection open", () => {
    expect(() => requireConnection({ PMI_RANK: "0", PMI_FD: "99" })).toThrow("found: PMI_FD=99");
  });
});

describe.each(launchers)("processes that $abi starts through Node", ({ abi, file, flags, obstacle }) => {
  it.skipIf(obstacle !== "")(
    `run, or say what to do${obstacle}`,
    async () => {
      if (abi === "MPICH") {
        const { status, err } = await endOf(file, [...flags, ...underNode], { timeout: 30_000 });
        expect(err.split("the connection to the MPI launcher was closed before Braid started")).toHaveLength(2);
        expect(err).toContain("-pmi-port");
        expect(status).toBe(2);
      }
      const named = abi === "MPICH" ? ["-pmi-port"] : [];
      const { status, out } = await endOf(file, [...flags, ...named, ...underNode], { timeout: 30_000 });
      expect(out.split("2 devices (mpi)")).toHaveLength(2);
      expect(status).toBe(0);
    },
    60_000,
  );
});

describe("tasks of srun", () => {
  it.each([
    ["0", /^error\[launcher-environment\]: srun did not connect the processes for MPI\n[^]*srun --mpi=pmix/],
    ["1", /^$/],
  ])(
    "without a flag for MPI end: task %s",
    async (task, said) => {
      const variables = { SLURM_PROCID: task, SLURM_STEP_NUM_TASKS: "2", SLURM_STEP_ID: "0" };
      const { status, err } = await endOf(process.execPath, run, { variables, timeout: 30_000 });
      expect(err).toMatch(said);
      expect(status).toBe(2);
    },
    30_000,
  );
});
