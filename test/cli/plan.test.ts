/** `braid compile`, and `braid run` and `braid verify` on a plan: output, exit status, and each bad input. */
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { cli, type ProgramFolder, programFolder } from "./captured-cli.ts";

const example = path.resolve(import.meta.dirname, "../../examples/nvfuser/allgather-matmul.ts");
let folder: ProgramFolder;
let plan: string;
let made: { readonly status: number; readonly out: string };

beforeAll(async () => {
  folder = programFolder();
  plan = path.join(folder.path, "plan");
  made = await cli("compile", example, "--devices", "2", "-o", plan);
});
afterAll(() => {
  folder.remove();
});

it("writes a verified plan, which verify reads back", async () => {
  expect(made.status).toBe(0);
  expect(made.out).toMatch(/^.*\/plan: 2 devices, \d+ commands verified, \d+ operations, \d+ kernels?, [\d.]+ KB\n$/);
  const { status, out } = await cli("verify", plan);
  expect(status).toBe(0);
  expect(out).toMatch(/\/plan: ok; 2 devices, \d+ commands on \d+ queues, verified by Braid [\d.]+; \d+ operations\n/);
  expect(out).toContain("for GPUs of compute capability 9.0 with 132 multiprocessors, or more");
  const { out: json } = await cli("verify", path.join(plan, "plan.json"), "--json");
  expect(JSON.parse(json)).toMatchObject({ ok: true, world: 2, target: { capability: 90, multiprocessors: 132 } });
});

it("keeps the options that were given, and says what it wrote as JSON", async () => {
  const other = path.join(folder.path, "other");
  const { out } = await cli("compile", example, "--devices", "2", "--schedule", "streams=2", "-o", other, "--json");
  const document: unknown = JSON.parse(readFileSync(path.join(other, "plan.json"), "utf8"));
  expect(document).toMatchObject({ world: 2, options: { "--backend": "cuda", "--schedule streams": "2" } });
  const { files } = JSON.parse(out) as { files: readonly string[] };
  expect(files.slice(-3)).toEqual(["rank-0.json", "rank-1.json", "plan.json"]);
});

describe("is refused", () => {
  it.each([
    ["without -o", () => ["compile", example], ["--out <folder>"]],
    [
      "with calls of NCCL",
      () => ["compile", example, "--backend", "nccl", "-o", plan],
      ["plan-unsupported", "compile with --backend cuda"],
    ],
    [
      "with calls of NCCL that the program itself has",
      () => ["compile", "examples/hand-built.ts", "-o", plan],
      ["plan-unsupported", 'give the communications of the host program the back end "cuda"'],
    ],
    ["into a file", () => ["compile", example, "-o", example], ["file-unwritable", "choose another folder"]],
    ["on the CPU", () => ["run", plan], ["a plan runs on GPUs only", "run it with --on cuda"]],
    [
      "by an option that would compile again",
      () => ["run", plan, "--on", "cuda", "--schedule", "streams=2"],
      ["--schedule streams for a plan"],
    ],
    ["by a check", () => ["run", plan, "--on", "cuda", "--check"], ["--check for a plan"]],
    [
      "on another number of devices",
      () => ["run", plan, "--on", "cuda", "--devices", "4"],
      ["plan-mismatch", "found: 4 devices", "expected: 2", "braid compile FILE --devices 4"],
    ],
    [
      "to be verified with options",
      () => ["verify", plan, "--verify", "full"],
      ["a plan was verified when it was made"],
    ],
    [
      "from a folder without one",
      () => ["verify", folder.path],
      ["file-unreadable", "a directory", "a plan has a plan.json"],
    ],
  ] as const)("%s", async (_, args, expected) => {
    const { status, err } = await cli(...args());
    expect(status).toBe(2);
    for (const text of expected) expect(err).toContain(text);
    expect(err.match(/^error/gm)).toHaveLength(1);
  });

  it("with a flipped bit, in every command", async () => {
    const file = path.join(plan, "rank-1.json");
    const bytes = readFileSync(file);
    const broken = Uint8Array.from(bytes);
    broken[100] = (broken[100] ?? 0) ^ 1;
    writeFileSync(file, broken);
    for (const args of [
      ["verify", plan],
      ["run", plan, "--on", "cuda"],
    ]) {
      const { status, err } = await cli(...args);
      expect(status).toBe(2);
      expect(err).toContain("error[plan-invalid]: a plan's file is not as braid compile wrote it");
      expect(err).toMatch(/at: .*rank-1\.json\n/);
    }
    writeFileSync(file, bytes);
  });

  it("of a program with findings", async () => {
    const hand = path.resolve(import.meta.dirname, "../../examples/hand-built.ts");
    const source = readFileSync(hand, "utf8").replaceAll(/^.*\b(wait|synchronize)\(.*$/gim, "");
    const { status, err } = await cli("compile", folder.write("racy.ts", source), "-o", path.join(folder.path, "racy"));
    expect(status).toBe(1);
    expect(err).toMatch(/^error\[/);
  });
});
