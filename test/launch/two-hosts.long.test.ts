/** Ranks of two hosts that share nothing but a network, in namespaces: how they meet, and what a cut cable does. */
import process from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, describe, expect, it } from "vitest";
import { rootVariables } from "../mpi/under-mpi.ts";
import { mpirunFlags, openMpi } from "../support/mpirun-on-hosts.ts";
import { addresses, addresses6, hostNames, openTwoHosts } from "../support/two-hosts.ts";
import { type Ended, jobName, rank, torchrun } from "./rank-under.ts";

const hosts = process.platform === "linux" ? await openTwoHosts() : "namespaces are Linux's";
if (typeof hosts === "string") console.log(`test/launch/two-hosts is skipped: ${hosts}`);
afterAll(() => {
  if (typeof hosts !== "string") hosts.close();
});

let port = 29_500;

/** Two ranks on each host. */
function start(address: string, args: readonly string[], variables: Record<string, string> = {}): Promise<Ended>[] {
  if (typeof hosts === "string") return [];
  const shared = { MASTER_ADDR: address, MASTER_PORT: String((port += 2)), BRAID_TOKEN: "a secret", ...variables };
  return [0, 1, 2, 3].map((own) =>
    rank({ ...torchrun(jobName("cable"), own, 4, 2), ...shared }, args, hosts.on(own < 2 ? 0 : 1, [])),
  );
}

/** Four ranks under mpirun on the first host, which starts those of the second one, too. */
function mpirun(flags: readonly string[]): Promise<Ended> {
  if (typeof hosts === "string") throw new Error(hosts);
  const before = hosts.on(0, [openMpi ?? "", "-np", "4", ...mpirunFlags(hosts), ...flags]);
  return rank(rootVariables, ["hosts"], before);
}

describe.skipIf(typeof hosts === "string")("ranks of two hosts", () => {
  // The name of the first host is a loopback address there, and another address on the second one.
  it.each([addresses[0], addresses6[0], hostNames[0]])("meet at %s", async (address) => {
    const ended = await Promise.all(start(address, ["hosts"]));
    expect(ended.map(({ err }) => err)).toEqual(Array(4).fill(""));
    expect(ended.map(({ out }) => out)).toEqual(
      [0, 1, 0, 1].map((local) => `0 0 1 1: ${hostNames.join(", ")}; ${local}`),
    );
  });

  it("do not meet at an address of the second host, and say so on all", async () => {
    const ended = await Promise.all(start(addresses[1], ["work", "-1", "1000"]));
    expect(ended.map(({ status }) => status)).toEqual(Array(4).fill(3));
    expect(ended[0]?.err).toMatch(
      /rank 0 could not open the rendezvous[^]*set MASTER_ADDR to an address of the machine/,
    );
    expect(ended[3]?.err).toMatch(/rank 3 could not join the others\n.*10\.77\.0\.2:\d+\n.*ECONNREFUSED/);
  });

  it.skipIf(openMpi === null)("meet under Open MPI, which gives them its variables", async () => {
    const [token, address] = ["BRAID_TOKEN=a-secret", `MASTER_ADDR=${hostNames[0]}`];
    const { status, out, err } = await mpirun(["-x", token, "-x", address, "-x", `MASTER_PORT=${(port += 2)}`]);
    expect([status, err]).toEqual([0, ""]);
    expect(
      out
        .match(/0 0 1 1: host-a, host-b; [01]/g)
        ?.toSorted()
        .map((text) => text.at(-1)),
    ).toEqual(["0", "0", "1", "1"]);
  });

  it.skipIf(openMpi === null)("need an address under Open MPI, and ranks host by host", async () => {
    const nowhere = await mpirun(["-x", "BRAID_TOKEN=a-secret"]);
    expect(nowhere.status).toBe(3);
    expect(nowhere.err).toMatch(/launcher-environment[^]*2 of 4 ranks on this host, and no MASTER_ADDR[^]*mpirun -x/);
    const variables = ["BRAID_TOKEN=a-secret", `MASTER_ADDR=${hostNames[0]}`, `MASTER_PORT=${(port += 2)}`];
    const scattered = await mpirun(["--map-by", "node", ...variables.flatMap((text) => ["-x", text])]);
    expect(scattered.status).toBe(3);
    expect(scattered.err).toMatch(/the ranks of a host do not follow[^]*rank 0 on host-a, rank 1 on host-b/);
  });

  it("all end when the cable is cut while no message is under way, and name the other host", async () => {
    const ranks = start(addresses[0], ["idles", "-1", "60000"]);
    await sleep(2000);
    const begin = performance.now();
    if (typeof hosts !== "string") hosts.unplug();
    const ended = await Promise.all(ranks);
    expect(performance.now() - begin).toBeLessThan(14_000);
    expect(ended.map(({ status }) => status)).toEqual(Array(4).fill(3));
    for (const own of [0, 1]) expect(ended[own]?.err).toMatch(/rank [23] on host host-b failed/);
    for (const own of [2, 3]) expect(ended[own]?.err).toMatch(/rank 0 on host host-a failed[^]*rendezvous ended/);
  }, 30_000);
});
