/** Ranks of several hosts, emulated by NCCL_HOSTID on this machine: how they meet, and why they do not. */
import { networkInterfaces } from "node:os";
import { describe, expect, it } from "vitest";
import { type Ended, jobName, rank, torchrun } from "./rank-under.ts";

const hasIpv6 = Object.values(networkInterfaces()).some((each) => each?.some(({ address }) => address === "::1"));

let port = 20_000 + (process.pid % 9000) * 2;

/** Four ranks on hosts a and b. `changes`: by rank. */
function start(
  args: readonly string[],
  shared: Readonly<Record<string, string>> = {},
  changes: Readonly<Record<number, Readonly<Record<string, string>>>> = {},
  ranks: readonly number[] = [0, 1, 2, 3],
): Promise<readonly Ended[]> {
  const here = { MASTER_PORT: String((port += 2)), BRAID_TOKEN: "a secret of this test", ...shared };
  return Promise.all(
    ranks.map((own) => {
      const hosts = { NCCL_HOSTID: own < 2 ? "a" : "b" };
      return rank({ ...torchrun(jobName("hosts"), own, 4, 2), ...hosts, ...here, ...changes[own] }, args);
    }),
  );
}

/** The variables of mpirun and srun, of four ranks on two hosts. Slurm says itself where they meet. */
const launchers: Readonly<Record<string, (own: string, local: string) => Readonly<Record<string, string>>>> = {
  mpirun: (own, local) => ({
    OMPI_COMM_WORLD_RANK: own,
    OMPI_COMM_WORLD_SIZE: "4",
    OMPI_COMM_WORLD_LOCAL_RANK: local,
    OMPI_COMM_WORLD_LOCAL_SIZE: "2",
    MASTER_ADDR: "localhost",
    MASTER_PORT: String(port),
  }),
  srun: (own, local) => ({
    SLURM_PROCID: own,
    SLURM_STEP_NUM_TASKS: "4",
    SLURM_LOCALID: local,
    SLURM_STEP_TASKS_PER_NODE: "2(x2)",
    SLURM_JOB_ID: String(process.pid),
    SLURM_STEP_ID: "0",
    SLURM_STEP_NODELIST: "localhost,other[1-3]",
  }),
};

describe("ranks of two hosts", () => {
  it.each(Object.entries(launchers))("meet under %s", async (_, variables) => {
    port += 2;
    const ended = await Promise.all(
      [0, 1, 2, 3].map((own) => {
        const host = { NCCL_HOSTID: own < 2 ? "a" : "b", BRAID_TOKEN: "a secret of this test" };
        return rank({ ...variables(String(own), String(own % 2)), ...host }, ["hosts"]);
      }),
    );
    expect(ended.map(({ out, err }) => [out, err])).toEqual(
      [0, 1, 0, 1].map((local) => [`0 0 1 1: a, b; ${local}`, ""]),
    );
  });

  // A launcher above names localhost.
  it.each(["127.0.0.1", ...(hasIpv6 ? ["[::1]"] : [])])("meet at %s, and learn who shares a host", async (address) => {
    const ended = await start(["hosts"], { MASTER_ADDR: address });
    expect(ended.map(({ err }) => err)).toEqual(Array(4).fill(""));
    expect(ended.map(({ out }) => out)).toEqual([0, 1, 0, 1].map((local) => `0 0 1 1: a, b; ${local}`));
  });

  it("all end, with one message, if the launcher contradicts the hosts", async () => {
    const ended = await start(["work"], {}, { 1: { NCCL_HOSTID: "b" } });
    expect(ended.map(({ status }) => status)).toEqual(Array(4).fill(3));
    for (const { err } of ended)
      expect(err).toMatch(/^error\[launcher-environment\].*\n.*\n {2}found: 1 on host a, 3 on host b\n/);
  });

  it("name the host of a rank that is killed, on all others", async () => {
    const begin = performance.now();
    const ended = await start(["killed", "2"]);
    expect(performance.now() - begin).toBeLessThan(5000);
    expect(ended.map(({ status }) => status)).toEqual([3, 3, null, 3]);
    for (const own of [0, 1, 3])
      expect(ended[own]?.err).toMatch(/^error\[rank-failed\]: rank 2 on host b failed, so the run ended on all ranks/);
  });

  it("name the host of a rank that hangs", async () => {
    const [zero] = await start(["hangs", "3", "1000"], {}, {}, [0, 1, 2, 3]).then((ended) => ended.slice(0, 1));
    expect(zero?.err).toMatch(/rank 3 on host b failed[^]*rank 3 did not reach exchange 2/);
  });

  it("that never come are named by rank 0", async () => {
    const ended = await start(["work", "-1", "700"], {}, {}, [0, 1]);
    expect(ended.map(({ status }) => status)).toEqual([3, 3]);
    expect(ended[0]?.err).toContain("ranks 2, 3 did not reach the rendezvous within 0.7 s");
  });

  it("that have another token are named by rank 0", async () => {
    const ended = await start(["work", "-1", "700"], {}, { 2: { BRAID_TOKEN: "another" } });
    expect(ended.map(({ status }) => status)).toEqual(Array(4).fill(3));
    expect(ended[0]?.err).toContain("rank 2 did not reach the rendezvous within 0.7 s");
    expect(ended[0]?.err).toMatch(/a process at .*127\.0\.0\.1 has another BRAID_TOKEN, or another version of Braid/);
    expect(ended[2]?.err).toContain("the tokens differ");
  });
});
