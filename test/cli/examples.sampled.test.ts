/** Every example lowers on every rank, and runs and checks, with 1, 2, 3, 4 and 8 devices and 1, 3 and 8 streams. */
import { readFileSync } from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import { exampleFiles, examplesFolder } from "../support/example-program.ts";
import { combinations } from "../support/split-cases.ts";
import { runs, sample } from "../support/suite.ts";
import { cli } from "./captured-cli.ts";

const cases = sample(combinations({ name: exampleFiles, devices: [1, 2, 3, 4, 8] }), 9);
const streamCounts = [1, 3, 8];
/** Quick contracts fewer elements than the examples do. */
const contracted = runs({ quick: 48, long: 0 });

function sizesOf(file: string): readonly string[] {
  const hasContraction = /\bprogram\(\s*\{[^}]*\bK: \d/u.test(readFileSync(file, "utf8"));
  return contracted > 0 && hasContraction ? ["--set", `K=${contracted}`] : [];
}

interface RunDocument {
  readonly outputs: readonly { readonly fingerprint: string; readonly check: { readonly ok: boolean } }[];
}

it.each(cases)("$name lowers for every rank of $devices devices", async ({ name, devices }) => {
  const file = path.join(examplesFolder, name);
  for (let rank = 0; rank < devices; rank++) {
    const { status, out, err } = await cli("lower", file, "--devices", String(devices), "--rank", String(rank));
    expect([status, err]).toEqual([0, ""]);
    // A ring of one device has no loop.
    const loop =
      name === "hand-built.ts" ? (devices === 1 ? "= matmul\\(" : "FOR i\\d+ from 0 to") : "FOR streamIdx in ";
    expect(out).toMatch(new RegExp(`^\\n%HostIrContainer \\{ .*${loop}.*\\} // %HostIrContainer\\n`, "s"));
  }
});

const title = "$name runs on $devices devices as the oracle does, with the same bits on any number of streams";

it.each(cases)(title, async ({ name, devices }) => {
  const file = path.join(examplesFolder, name);
  const fingerprints = new Set<string>();
  for (const streams of streamCounts) {
    // Without a BLAS: its bits depend on whether a product is done in parts, which depends on who is idle.
    const plain = ["--blas", "off", "--check", "--json", ...sizesOf(file)];
    const args = ["--devices", String(devices), "--streams", String(streams), ...plain];
    const { status, out, err } = await cli("run", file, ...args);
    expect([status, err]).toEqual([0, ""]);
    const { outputs } = JSON.parse(out) as RunDocument;
    expect(outputs).toHaveLength(1);
    for (const { fingerprint, check } of outputs) {
      expect(check.ok).toBe(true);
      fingerprints.add(fingerprint);
    }
  }
  expect(fingerprints.size).toBe(1);
});
