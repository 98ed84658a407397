/** `braid run --on cuda` on fake GPUs of two hosts: NCCL between them, peers' memory within, and ranks that die. */
import { readFileSync } from "node:fs";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { obstacle, ownFakes } from "./fake/own-fakes.ts";
import { type RankEnd, runOnHosts, startOnHosts } from "./fake/torchrun.ts";

const root = path.resolve(import.meta.dirname, "../../..");
const ring = path.join(root, "test/fixtures/programs/ring-allgather-matmul.ts");
const sizes = (text: string): readonly string[] => text.split(" ").flatMap((size) => ["--set", size]);
const onGpus = ["--on", "cuda"];
const checked = [...onGpus, "--check", "--json"];

const fakes = ownFakes(4);

interface RunDocument {
  readonly outputs: readonly { readonly fingerprint: string }[];
}

function fingerprints(ranks: readonly RankEnd[]): readonly string[] {
  expect(ranks.map(({ status, err }) => [status, err])).toEqual(ranks.map(() => [0, ""]));
  return (JSON.parse(ranks[0]?.out ?? "") as RunDocument).outputs.map(({ fingerprint }) => fingerprint);
}

const twoHosts = ["a", "a", "b", "b"];
const oneHost = ["a", "a", "a", "a"];

describe.skipIf(obstacle !== null)("ranks on fake GPUs of two hosts", () => {
  it.each([
    ["test/fixtures/programs/ring-allgather-matmul.ts", "nccl", "M=8 K=4 N=5"],
    ["examples/hosts/matmul-allreduce.ts", "cuda", "M=32 K=8 N=5"],
  ])(
    "run %s with --backend %s, with the results of one host",
    async (file, backend, of) => {
      const flags = [path.join(root, file), ...checked, "--backend", backend, ...sizes(of)];
      const two = fingerprints(await runOnHosts(fakes(), twoHosts, flags));
      expect(two).toEqual(fingerprints(await runOnHosts(fakes(), oneHost, [...flags, "--devices-per-host", "2"])));
    },
    60_000,
  );

  it("map the memory of ranks of their own host only, with the results of one host", async () => {
    const file = path.join(root, "examples/hosts/allgather-matmul.ts");
    const flags = [file, ...checked, "--backend", "cuda", "--devices-per-host", "2", ...sizes("M=32 K=4 N=5")];
    const run = async (hosts: readonly string[]) => {
      const log = path.join(fakes().folder, `calls-${hosts.join("")}`);
      const outputs = fingerprints(await runOnHosts(fakes(), hosts, flags, { FAKE_CUDA_LOG: log }));
      const calls = readFileSync(log, "utf8").split("\n");
      return { outputs, mapped: calls.filter((call) => call === "cuIpcOpenMemHandle").length };
    };
    const [one, two] = [await run(oneHost), await run(twoHosts)];
    expect(two.outputs).toEqual(one.outputs);
    expect(two.mapped).toBeGreaterThan(0);
    expect(one.mapped).toBe(3 * two.mapped);
  }, 60_000);

  it("all end within 5 s when one is killed, and name its host", async () => {
    // The fake NCCL blocks the thread that waits for a peer, which the real one does not: for as short as possible.
    const one = ["--graph", "off", ...sizes("M=8 K=1 N=1"), "--repeat", "100000000"];
    const flags = [ring, ...onGpus, "--backend", "cuda", ...one];
    const ranks = startOnHosts(fakes(), twoHosts, flags, {
      FAKE_NCCL_PATIENCE: "1000",
      FAKE_NCCL_ABORT: "20000",
    });
    await sleep(4500);
    expect(ranks.map(({ child }) => child.exitCode)).toEqual(Array(4).fill(null));
    const killed = performance.now();
    ranks[2]?.child.kill("SIGKILL");
    const ended = await Promise.all(ranks.map(({ ended }) => ended));
    expect(performance.now() - killed).toBeLessThan(5000);
    expect(ranks.map(({ child }) => child.exitCode)).toEqual([3, 3, null, 3]);
    for (const rank of [0, 1, 3])
      expect(ended[rank]?.err).toMatch(
        /^error\[rank-failed\]: rank 2 on host b failed, so the run ended on all ranks\n/,
      );
  }, 60_000);
});
