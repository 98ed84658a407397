/**
 * Schedules given by flags: the printed Program is the one that runs and is verified, and bad values name their flag.
 */
import { expect, it } from "vitest";
import { cli } from "../cli/captured-cli.ts";

const ring = [
  "test/fixtures/programs/ring-allgather-matmul.ts",
  "--backend",
  "cuda",
  "--devices",
  "4",
  "--schedule",
  "streams=4",
];
const small = ["--set", "M=48", "--set", "K=16", "--set", "N=8"];
const schedule = ["--schedule", "inPlace,computeStreams=1,batchSignals"];

function printed(text: string, kind: string): number {
  return text.split("\n").filter((line) => new RegExp(`^ +\\d+ +s\\d+ +${kind}\\b`).test(line)).length;
}

it("braid lower --print lists prints the commands of one rank, as recorded or rewritten", async () => {
  const recorded = await cli("lower", ...ring, ...small, "--print", "lists");
  const rewritten = await cli("lower", ...ring, ...small, "--print", "lists", ...schedule);
  const counts = [recorded, rewritten].map(({ out }) =>
    ["copy", "launch", "recordEvent"].map((kind) => printed(out, kind)),
  );
  expect(counts).toEqual([
    [4, 4, 8],
    [3, 4, 5],
  ]);
  expect(rewritten.out).toContain("\nrank 0\n");
  expect(rewritten.out).not.toContain("\nrank 1\n");
});

it("braid run and braid verify take the same flags", async () => {
  const ran = await cli(
    "run",
    ...ring,
    ...small,
    "--check",
    "--blas",
    "off",
    ...schedule,
    "--schedule",
    "splitChunks=2",
  );
  expect(ran.out).toContain("passed");
  const plain = await cli("run", ...ring, ...small, "--blas", "off");
  const fingerprint = (text: string): string | undefined => /[0-9a-f]{16}/.exec(text)?.[0];
  expect(fingerprint(ran.out)).toBe(fingerprint(plain.out));
  const verified = await cli("verify", ...ring, ...small, ...schedule, "--json");
  expect(JSON.parse(verified.out)).toMatchObject({ ok: true, size: { streams: 8 } });
});

it.each([
  ["--schedule", "computeStreams=0"],
  ["--schedule", "smMargin=0"],
])("%s refuses '%s'", async (flag, value) => {
  const { err, status } = await cli("run", ...ring, flag, value);
  expect(err).toContain(`option ${flag} has a bad value`);
  expect(status).toBe(2);
});
