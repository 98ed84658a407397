/** `--schedule auto --profile FILE` on the command line: the printed reason, the result, and bad values. */
import { DeviceMesh, Fusion, linear, MultiDeviceExecutor } from "@braid-compiler/braid";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { choose } from "../../../src/tune/choose/choose.ts";
import { cli, type ProgramFolder, programFolder } from "../../cli/captured-cli.ts";
import { roundProfile } from "../../simulate/profile.ts";

let folder: ProgramFolder;
let profile: string;
let broken: string;
beforeAll(() => {
  folder = programFolder();
  profile = folder.write("machine.json", JSON.stringify(roundProfile));
  broken = folder.write("broken.json", JSON.stringify({ ...roundProfile, version: 0 }));
});
afterAll(() => {
  folder.remove();
});

const run = [
  "run",
  "test/fixtures/programs/ring-allgather-matmul.ts",
  "--devices",
  "2",
  "--set",
  "M=32",
  "--set",
  "K=16",
];
const auto = [...run, "--schedule", "auto"];

it("is the default with a profile, unless streams or a schedule are given", async () => {
  const chosen = await cli(...run, "--profile", profile);
  expect(chosen.out).toMatch(/^schedule: .+: [\d.e+]+ ms, the fastest of \d+ simulated schedules; /m);
  for (const given of [
    ["--schedule", "streams=2"],
    ["--schedule", "as-written"],
  ]) {
    const { status, out } = await cli(
      "explain",
      ...run.slice(1),
      "--on",
      "cpu",
      "--profile",
      profile,
      ...given,
      "--json",
    );
    expect(status).toBe(0);
    expect(JSON.parse(out)).not.toHaveProperty("scheduleChoice");
  }
  const explained = await cli("explain", ...run.slice(1), "--on", "cpu", "--profile", profile, "--json");
  expect(JSON.parse(explained.out)).toHaveProperty("scheduleChoice");
});

it("is not the default of a dump, which says its order", async () => {
  const dump = "test/fixtures/dumps/e2-allgather-matmul.hir";
  const sizes = ["--sizes", "i0=8,i3=8,i4=8,i5=8,i6=8"];
  const { status, out } = await cli("verify", dump, ...sizes, "--profile", profile);
  expect(status).toBe(0);
  expect(out).not.toContain("schedule:");
});

it("chooses, says why, and has the oracle's result", async () => {
  const { status, out } = await cli(...auto, "--profile", profile, "--check");
  expect(status).toBe(0);
  expect(out).toMatch(/^schedule: .+: [\d.e+]+ ms, the fastest of \d+ simulated schedules; /m);
  expect(out).toContain("passed");
  expect(out).toContain("2 devices (cpu), seed 0");
});

it("keeps to the form that the flags name", async () => {
  const { out } = await cli(...auto, "--profile", profile, "--backend", "nccl", "--json");
  const { scheduleChoice } = JSON.parse(out) as { readonly scheduleChoice: string };
  expect(scheduleChoice).toMatch(/^(serial|collectives in chunks|sends and receives): /);
});

it("takes a shipped profile by its name", async () => {
  const { status, out } = await cli(...auto, "--profile", "4xH200", "--backend", "nccl");
  expect(status).toBe(0);
  expect(out).toMatch(/^schedule: (serial|collectives in chunks|sends and receives).*: /m);
});

describe("a schedule beside the choice is refused in the same words", () => {
  const message = "schedule auto chooses the streams and the rewrites itself";

  it.each([
    ["run", ["--schedule", "streams=4"], "streams (--schedule streams)"],
    ["verify", ["--schedule", "streams=2"], "streams (--schedule streams)"],
    ["lower", ["--schedule", "streams=2", "--print", "lists"], "streams (--schedule streams)"],
  ])("by braid %s %j", async (command, flags, found) => {
    const { status, err } = await cli(command, ...auto.slice(1), "--profile", profile, ...flags);
    expect(status).toBe(2);
    expect(err).toContain(`error[bad-option]: ${message}`);
    expect(err).toContain(`found: auto with ${found}\n`);
  });

  it("by a flag", async () => {
    const { status, err } = await cli(...auto, "--profile", profile, "--schedule", "inPlace");
    expect(status).toBe(2);
    expect(err).toContain("error[option-value]: option --schedule has a bad value");
    expect(err).toContain("auto alone or with options of lowering");
  });

  it("by the API", async () => {
    const f = new Fusion();
    const a = f.input([2, 4, 8], "float");
    const w = f.input([8, 8], "float");
    const c = linear(a, w);
    f.output(c);
    for (const tensor of [a, w, c]) tensor.setDeviceMesh(DeviceMesh.range(2));
    const [rewritten, streamed] = [
      { devices: 2, schedule: { inPlace: false } },
      { devices: 2, streams: 8 },
    ];
    expect(() => choose(f, rewritten, roundProfile)).toThrow(/found: auto with inPlace \(--schedule inPlace\)$/m);
    const executed = { ...streamed, schedule: "auto", profile: roundProfile } as const;
    for (const part of [message, /found: auto with streams \(--schedule streams\)$/m]) {
      expect(() => choose(f, streamed, roundProfile)).toThrow(part);
      await expect(MultiDeviceExecutor.create(f, executed)).rejects.toThrow(part);
    }
  });
});

describe("refuses", () => {
  it.each([
    ["a choice without a profile", auto, "error[option-value]"],
    [
      "a profile beside rewrites",
      [...run, "--profile", "machine.json", "--schedule", "inPlace"],
      "error[option-value]",
    ],
    ["a file that is not there", [...auto, "--profile", "nowhere.json"], "error[file-unreadable]"],
  ])("%s", async (_, args, code) => {
    const { status, err } = await cli(...args);
    expect(status).toBe(2);
    expect(err).toContain(code);
  });

  it("what is no profile", async () => {
    const { status, err } = await cli(...auto, "--profile", broken);
    expect(status).toBe(2);
    expect(err).toContain("error[profile-invalid]");
    expect(err).toContain("profile.version");
  });
});
