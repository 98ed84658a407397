/**
 * docs/gpu.md agrees with the code: messages of trouble-shooting, variables of launchers, options of the command line.
 */
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { graphUses } from "../../src/cuda.ts";
import { cli } from "../cli/captured-cli.ts";
import { fits, messagesIn, rowsOf } from "./messages-in.ts";

const root = path.resolve(import.meta.dirname, "../..");
const read = (file: string): string => readFileSync(path.join(root, file), "utf8");
const page = read("docs/gpu.md");

/** The committed log was written before these messages were reworded. */
const reworded: readonly (readonly [old: string, present: string])[] = [
  ["did not end its run", "did not finish its run"],
  ["came to command", "reached command"],
  ["expected: its end within", "expected: an end within"],
  [
    "look at the rank that it waits for; allow more time (--timeout), or use",
    "check the rank that it waits for, allow more time (--timeout) or use",
  ],
];

function inPresentWords(log: string): string {
  return reworded.reduce((text, [old, present]) => text.replaceAll(old, present), log);
}

const folders = ["src/backends/cuda", "src/launch"];
const files = folders.flatMap((folder) =>
  readdirSync(path.join(root, folder), { recursive: true, encoding: "utf8" })
    // docs/cluster.md has those of MPI.
    .filter((name) => name.endsWith(".ts") && name !== "mpi-world.ts")
    .map((name) => `${folder}/${name}`),
);
const messages = [...files, "src/cuda.ts", "src/cli/ranks/where-to-run.ts"].flatMap(messagesIn);
const troubles = page.slice(page.indexOf("## Trouble-shooting"));
const rows = rowsOf(page);

describe("trouble-shooting", () => {
  it("has messages of the code only", () => {
    expect(rows.length).toBeGreaterThan(5);
    expect(rows.filter((row) => !messages.some((message) => fits(message, row)))).toEqual([]);
  });

  it("is needed little: every message of the CUDA back end and of the launch has a fix", () => {
    expect(messages.length).toBeGreaterThan(20);
    expect(messages.filter(({ hasFix }) => !hasFix)).toEqual([]);
  });

  it("shows the log of a rank that was stopped as it is", () => {
    const log = inPresentWords(read("bench/results/gpu-failures-4xH200/stopped-cuda.txt"));
    const [, shown = ""] = /```\n(error\[timed-out\][^`]+)```/.exec(troubles) ?? [];
    const lines = shown.trim().split("\n");
    expect(lines).toHaveLength(5);
    for (const line of lines) for (const part of line.split("...")) expect(log).toContain(part);
  });
});

describe("launchers", () => {
  it("have their variables on the page", () => {
    const names = [...read("src/launch/rank-environment.ts").matchAll(/"([A-Z][A-Z_a-z]+_[A-Z_a-z]+|RANK)"/g)].map(
      ([, name = ""]) => name,
    );
    expect(names.length).toBeGreaterThan(12);
    expect(names.filter((name) => !page.includes(`\`${name}\``))).toEqual([]);
  });
});

describe("options", () => {
  it("are those that the command takes", async () => {
    const { out } = await cli("run", "--help");
    const table = page.slice(page.indexOf("## Options"), page.indexOf("## How a Program runs"));
    const shown = [...table.matchAll(/`(--[a-z-]+)/g)].map(([, flag = ""]) => flag);
    expect(shown).toContain("--graph");
    expect(shown.filter((flag) => !out.includes(flag))).toEqual([]);
    expect(table).toContain(`--graph ${graphUses.join(String.raw`\|`)}`);
  });
});
