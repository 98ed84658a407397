/** Which ranks share a host, from what they say about it, and launchers that say otherwise. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { rankName } from "../../src/backends/cuda/world.ts";
import { type HostClaim, hostClaim, requireTopology, topologyOf } from "../../src/launch/enter-world.ts";
import { firstOfSlurm, meetingPoint } from "../../src/launch/meeting-point.ts";
import { rankEnvironment } from "../../src/launch/rank-environment.ts";
import type { Environment } from "../../src/support/environment.ts";

const nowhere = { localRank: null, localWorldSize: null };

/** Ranks on these hosts, by a letter each. */
const on = (hosts: string): readonly HostClaim[] =>
  Array.from(hosts, (name) => ({ host: `boot of ${name}`, name, ...nowhere }));

const required = (claims: readonly HostClaim[]): void => requireTopology("torchrun", claims, topologyOf(claims, 0));

describe("the topology", () => {
  it("numbers hosts by their first rank, and ranks within them", () => {
    expect([0, 1, 2, 3].map((rank) => topologyOf(on("bbaa"), rank))).toEqual(
      [0, 1, 0, 1].map((localRank) => ({ localRank, hosts: [0, 0, 1, 1], hostNames: ["b", "a"] })),
    );
    expect(topologyOf(on("bab"), 2)).toEqual({ localRank: 1, hosts: [0, 1, 0], hostNames: ["b", "a"] });
  });

  it("counts every rank once on its host", () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom("a", "b", "c"), minLength: 1, maxLength: 12 }), (letters) => {
        const ranks = Array.from(letters, (_, rank) => topologyOf(on(letters), rank));
        const [{ hosts, hostNames } = { hosts: [], hostNames: [] }] = ranks;
        expect(hosts.map((host) => hostNames[host]).join("")).toBe(letters);
        expect(new Set(ranks.map(({ localRank }, rank) => `${hosts[rank]} ${localRank}`)).size).toBe(letters.length);
      }),
    );
  });

  it("takes NCCL_HOSTID for the host, otherwise its name and boot id", () => {
    expect(hostClaim({ NCCL_HOSTID: "b" }, nowhere)).toMatchObject({ host: "NCCL_HOSTID b", name: "b" });
    const [own, again] = [{}, { NCCL_HOSTID: "" }].map((env) => hostClaim(env, nowhere));
    expect(own).toEqual(again);
    expect(own?.host).toMatch(/^\S+ [0-9a-f-]{36}$/);
  });

  it("keeps apart hosts of one name, and names hosts only if there are several", () => {
    const claims = on("ab").map((claim) => ({ ...claim, name: "gpu" }));
    expect(topologyOf(claims, 0).hostNames).toEqual(["gpu", "gpu#1"]);
    expect(rankName(1, topologyOf(on("ab"), 0))).toBe("rank 1 on host b");
    expect(rankName(1, topologyOf(on("aa"), 0))).toBe("rank 1");
  });
});

describe("the hosts of a run on GPUs", () => {
  it.each(["a", "aabb", "abc"])("may be %s", (hosts) => expect(() => required(on(hosts))).not.toThrow());

  it.each([
    ["aab", "found: 2 on host a, 1 on host b"],
    ["abab", "found: rank 0 on a, rank 1 on b"],
    ["aabbba", "found: rank 0 on a, rank 1 on a, rank 2 on b"],
    ["abba", "found: rank 0 on a, rank 1 on b"],
  ])("may not be %s", (hosts, found) => {
    expect(() => required(on(hosts))).toThrow(new RegExp(`launcher-environment[^]*(${found})`));
  });

  it.each([
    [{ localRank: 2, localWorldSize: 2 }, "local rank 2 of 2"],
    [{ localRank: null, localWorldSize: 4 }, "local rank not given of 4"],
  ])("may not contradict the launcher: %o", (said, text) => {
    const claims = on("aabb").map((claim, rank) => (rank === 2 ? { ...claim, ...said } : claim));
    expect(() => required(claims)).toThrow(`found: rank 2 is local rank 0 of 2 on host b\n  expected: ${text}`);
  });
});

const place = (env: Environment): unknown => {
  const who = rankEnvironment(env);
  return who === null ? null : meetingPoint(who, env);
};
const mpirun = {
  OMPI_COMM_WORLD_RANK: "2",
  OMPI_COMM_WORLD_SIZE: "4",
  OMPI_COMM_WORLD_LOCAL_RANK: "0",
  OMPI_COMM_WORLD_LOCAL_SIZE: "2",
};
const srun = {
  SLURM_PROCID: "2",
  SLURM_STEP_NUM_TASKS: "4",
  SLURM_LOCALID: "0",
  SLURM_STEP_TASKS_PER_NODE: "2(x2)",
  SLURM_JOB_ID: "77",
  SLURM_STEP_ID: "1",
  SLURM_STEP_NODELIST: "gpu[07-08]",
  SLURM_JOB_NODELIST: "gpu[06-09]",
};
const address = { MASTER_ADDR: "[fd00::1]", MASTER_PORT: "29500" };
const secret = { BRAID_TOKEN: "a secret" };

describe("ranks of several hosts", () => {
  it("meet on the port after MASTER_PORT", () => {
    const at = { kind: "address", host: "fd00::1", port: 29_501, token: "a secret", severalHosts: true };
    expect(place({ ...mpirun, ...address, ...secret })).toEqual(at);
  });

  it("meet where Slurm put rank 0, on a port of the job", () => {
    expect(place({ ...srun, ...secret })).toMatchObject({ kind: "address", host: "gpu07", port: 22_389 });
    expect(place({ ...mpirun, SLURM_JOB_ID: "77", SLURM_JOB_NODELIST: "a,b", ...secret })).toMatchObject({ host: "a" });
  });

  it.each<readonly [string, Environment, string]>([
    ["an address", { ...mpirun, ...secret }, "2 of 4 ranks on this host, and no MASTER_ADDR"],
    ["a port", { ...mpirun, ...secret, MASTER_ADDR: "a" }, "2 of 4 ranks on this host, and no MASTER_PORT"],
    ["a token", { ...mpirun, ...address }, "2 of 4 ranks on this host, and no BRAID_TOKEN"],
    ["a token that is not empty", { ...srun, BRAID_TOKEN: "" }, "2 of 4 ranks on this host, and no BRAID_TOKEN"],
  ])("need %s", (_, env, found) => {
    expect(() => place(env)).toThrow(new RegExp(`launcher-environment[^]*found: ${found}`));
  });

  it.each([
    ["gpu[07-09,12],login1", "gpu07"],
    ["a1,a2", "a1"],
    ["rack[2]-node[003-004].cluster", "rack2-node003.cluster"],
  ])("find the first host of %s", (list, first) => expect(firstOfSlurm(list)).toBe(first));
});
