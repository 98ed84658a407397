/** The rank of a process, from the variables of every launcher, and contradictions among them. */
import { describe, expect, it } from "vitest";
import { rankEnvironment } from "../../src/launch/rank-environment.ts";
import type { Environment } from "../../src/support/environment.ts";

const torchrun: Environment = {
  RANK: "3",
  WORLD_SIZE: "8",
  LOCAL_RANK: "3",
  LOCAL_WORLD_SIZE: "8",
  MASTER_ADDR: "127.0.0.1",
  MASTER_PORT: "29500",
  TORCHELASTIC_RUN_ID: "none",
};
const mpirun: Environment = {
  OMPI_COMM_WORLD_RANK: "1",
  OMPI_COMM_WORLD_SIZE: "2",
  OMPI_COMM_WORLD_LOCAL_RANK: "1",
  OMPI_COMM_WORLD_LOCAL_SIZE: "2",
  PMIX_NAMESPACE: "prterun-host-1234@1",
};
const srun: Environment = {
  SLURM_PROCID: "2",
  SLURM_STEP_NUM_TASKS: "4",
  SLURM_LOCALID: "2",
  SLURM_STEP_TASKS_PER_NODE: "4(x1)",
  SLURM_JOB_ID: "77",
  SLURM_STEP_ID: "0",
};

describe("rankEnvironment", () => {
  it("is null where no launcher speaks", () => {
    expect(rankEnvironment({})).toBeNull();
    expect(rankEnvironment({ SLURM_PROCID: "0", SLURM_STEP_NUM_TASKS: "1", SLURM_JOB_ID: "77" })).toBeNull();
    const batchScript = { SLURM_PROCID: "0", SLURM_NTASKS: "4", SLURM_TASKS_PER_NODE: "3,1", SLURM_JOB_ID: "77" };
    expect(rankEnvironment(batchScript)).toBeNull();
    expect(rankEnvironment({ MASTER_ADDR: "host" })).toBeNull();
  });

  it("reads torchrun, mpirun and srun", () => {
    expect(rankEnvironment(torchrun)).toEqual({
      launcher: "torchrun",
      rank: 3,
      worldSize: 8,
      localRank: 3,
      localWorldSize: 8,
      address: "127.0.0.1",
      port: 29500,
      job: "torchrun-none-127.0.0.1-29500",
    });
    expect(rankEnvironment(mpirun)).toMatchObject({
      launcher: "mpirun",
      rank: 1,
      worldSize: 2,
      localRank: 1,
      port: null,
    });
    expect(rankEnvironment(srun)).toMatchObject({ launcher: "srun", rank: 2, worldSize: 4, localWorldSize: 4 });
  });

  it.each([
    ["4", "0", 4],
    ["3,1", "1", 1],
    ["2(x2),5", "1", 2],
    ["2(x2),5", "2", 5],
  ])("finds in %s the tasks of host %s of Slurm", (list, node, found) => {
    const env = { ...srun, SLURM_STEP_NUM_TASKS: "9", SLURM_STEP_TASKS_PER_NODE: list, SLURM_NODEID: node };
    expect(rankEnvironment(env)).toMatchObject({ localWorldSize: found });
  });

  it("believes torchrun inside a job of Slurm", () => {
    expect(rankEnvironment({ ...srun, ...torchrun })).toMatchObject({ launcher: "torchrun", rank: 3, worldSize: 8 });
  });

  it.each<readonly [string, Environment, string]>([
    ["a rank without a world", { RANK: "0" }, "RANK without WORLD_SIZE"],
    ["a world without a rank", { WORLD_SIZE: "2" }, "WORLD_SIZE without RANK"],
    ["a rank beyond the world", { ...torchrun, RANK: "8" }, "RANK=8, WORLD_SIZE=8"],
    ["a rank that is no number", { ...torchrun, RANK: "two" }, "RANK=two"],
    ["an empty world", { ...torchrun, WORLD_SIZE: "0" }, "WORLD_SIZE=0"],
    ["a host that Slurm's list lacks", { ...srun, SLURM_NODEID: "4" }, "SLURM_STEP_TASKS_PER_NODE=4(x1)"],
    ["a port that is no number", { ...torchrun, MASTER_PORT: "-1" }, "MASTER_PORT=-1"],
    [
      "two launchers that differ",
      { ...torchrun, ...mpirun },
      "RANK=3, WORLD_SIZE=8, but OMPI_COMM_WORLD_RANK=1, OMPI_COMM_WORLD_SIZE=2",
    ],
  ])("refuses %s", (_, env, found) => {
    expect(() => rankEnvironment(env)).toThrow(`found: ${found}`);
  });
});
