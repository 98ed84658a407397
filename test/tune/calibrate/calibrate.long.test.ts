/** `braid calibrate` on the CPU: the written profile can be read and used to choose a schedule. */
import { readFileSync } from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import { parseProfile } from "../../../src/simulate/parse-profile.ts";
import { cli } from "../../cli/captured-cli.ts";
import { ownFolder } from "../../cli/own-folder.ts";

const folder = ownFolder();

it("writes a profile of this machine, by which a schedule is chosen", async () => {
  const file = path.join(folder.path, "machine.json");
  const { status, out, err } = await cli("calibrate", "--devices", "2", "--out", file);
  expect(err).toContain("measuring fixed costs");
  expect(status).toBe(0);
  expect(out).toMatch(/machine\.json: 2 x .+, Node v?\d+\.\d+\.\d+, \d{4}-\d\d-\d\d\n$/);
  const profile = parseProfile(readFileSync(file, "utf8"), file);
  expect(profile.transfers.map(({ type }) => type)).toEqual([
    "Allgather",
    "Allreduce",
    "ReduceScatter",
    "AllToAll",
    "group",
  ]);
  expect(profile.betweenHosts).toBeUndefined();
  const sums = profile.reductions?.map(({ timings }) => timings) ?? [];
  const inPeers = profile.reductionsInPeers ?? [];
  // Of 2 devices each reads half of the other's input and writes half of its output.
  expect(inPeers.map(({ bytes }) => bytes)).toEqual(profile.memory.map(({ bytes }) => bytes));
  const times = [...sums, inPeers, profile.memory, profile.localCopies, profile.peerCopies].map((timings) =>
    timings.map(({ microseconds }) => microseconds),
  );
  // 4 MiB take longer than 1 KiB, however busy the machine is.
  for (const [first = NaN, ...rest] of times) expect(rest.at(-1)).toBeGreaterThan(first);
  expect(Math.min(...(profile.products[0]?.teraflops ?? []))).toBeGreaterThan(0);
  const [attention] = profile.attention ?? [];
  expect(attention).toMatchObject({ dtype: "float", lengths: [64, 256] });
  expect(Math.min(...(attention?.forward ?? []), ...(attention?.backward ?? []))).toBeGreaterThan(0);
  expect(profile.reductions?.map(({ kernel, dtype }) => `${kernel} ${dtype}`)).toEqual([
    "reduction float",
    "combine float",
  ]);
  expect(profile.sustained?.map(({ factor }) => factor)[0]).toBe(1);
  expect(profile.costs.underTransfer).toBeGreaterThanOrEqual(1);
  expect(profile.costs.underTransfer).toBeLessThanOrEqual(2);
  expect(Math.min(...(profile.margins?.factors ?? []))).toBeGreaterThanOrEqual(1);
  const [room = NaN] = profile.margins?.room ?? [];
  expect(room).toBeGreaterThanOrEqual(0);
  expect(room).toBeLessThanOrEqual(1);
  const residuals = Object.entries(profile.residuals ?? {});
  expect(residuals.map(([of]) => of)).toEqual(["gemms", "kernels", "copies", "transfers", "reductionsInPeers"]);
  for (const [of, error] of residuals) expect(error, of).toBeGreaterThan(0);

  const command = [
    "run",
    "test/fixtures/programs/ring-allgather-matmul.ts",
    "--devices",
    "2",
    "--set",
    "M=64",
    "--set",
    "K=32",
  ];
  const run = await cli(...command, "--schedule", "auto", "--profile", file, "--check");
  expect(run.out).toMatch(/^schedule: .+ simulated schedules/m);
  expect(run.status).toBe(0);
}, 60_000);
