/** `braid run --on cuda` on fake GPUs of two hosts: what CUDA cannot do between them is refused. */
import path from "node:path";
import { describe, expect, it } from "vitest";
import { obstacle, ownFakes } from "./fake/own-fakes.ts";
import { runOnHosts } from "./fake/torchrun.ts";

const root = path.resolve(import.meta.dirname, "../../..");
const ring = path.join(root, "test/fixtures/programs/ring-allgather-matmul.ts");
const small = ["M=8", "K=4", "N=5"].flatMap((size) => ["--set", size]);
const args = [ring, "--on", "cuda", "--check", ...small];

const fakes = ownFakes(4);

const twoHosts = ["a", "a", "b", "b"];

describe.skipIf(obstacle !== null)("ranks on fake GPUs of two hosts", () => {
  it("are refused copies between hosts, on all ranks, when the program is prepared", async () => {
    const ranks = await runOnHosts(fakes(), twoHosts, [...args, "--backend", "cuda", "--devices-per-host", "4"]);
    expect(ranks.map(({ status, out }) => [status, out])).toEqual(Array(4).fill([3, ""]));
    const [err = "", ...others] = ranks.map((rank) => rank.err);
    expect(err).toMatch(/^error\[gpu-unsupported\]: the program reaches memory of GPUs on another host\n/);
    expect(err).toMatch(/^ {2}at: rank 0, stream \d+: command \d+, (signal|copy|waitSignal) /m);
    expect(err).toMatch(/^ {2}found: rank 0 on host a (signals|reaches the memory of) rank [23] on host b$/m);
    expect(err).toMatch(/^ {2}fix: lower it with --devices-per-host 2, /m);
    // All ranks know it, and one says it.
    expect(others).toEqual(["", "", ""]);
  }, 60_000);

  it("end with status 2 and one message if the launcher contradicts the hosts", async () => {
    const ranks = await runOnHosts(fakes(), ["a", "b", "a", "b"], args);
    expect(ranks.map(({ status }) => status)).toEqual(Array(4).fill(2));
    expect(ranks.map(({ err }) => err.split("\n")[0])).toEqual([
      "error[launcher-environment]: the ranks of a host do not follow each other",
      ...Array<string>(3).fill(""),
    ]);
  }, 60_000);
});
