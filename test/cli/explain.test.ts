/** Output and exit status of `braid explain`. */
import path from "node:path";
import { expect, it } from "vitest";
import { cli } from "./captured-cli.ts";

const example = path.resolve(import.meta.dirname, "../../examples/matmul-reduce-scatter.ts");
const dump = path.resolve(import.meta.dirname, "../fixtures/dumps");

it("prints a verdict, regions, and causes that add up", async () => {
  const { status, out } = await cli("explain", example, "--devices", "4", "--profile", "4xH200", "--json");
  expect(status).toBe(0);
  const found: unknown = JSON.parse(out);
  expect(found).toMatchObject({ devices: 4, on: "cuda", regions: [{ isLoop: true, chunks: 4 }] });
  const { causes, exposed, milliseconds, floor } = found as {
    readonly causes: readonly { readonly milliseconds: number }[];
    readonly exposed: number;
    readonly milliseconds: number;
    readonly floor: { readonly milliseconds: number };
  };
  expect(causes.reduce((sum, { milliseconds: time }) => sum + time, 0)).toBeCloseTo(exposed, 9);
  expect(milliseconds).toBeGreaterThanOrEqual(floor.milliseconds);
  const text = await cli("explain", example, "--devices", "4", "--profile", "4xH200");
  expect(text.out).toMatch(/predicted on 4 devices; [\d.]+ % of communication hidden; [\d.]+ \w+ exposed\n/);
  expect(text.out).toMatch(/^exposed because of +time +of the run$/m);
});

it("explains the chosen schedule", async () => {
  const given = ["explain", example, "--devices", "2", "--profile", "2xH200", "--schedule-choice", "auto"];
  const { status, out } = await cli(...given, "--json");
  expect(status).toBe(0);
  const { considered, milliseconds } = JSON.parse(out) as {
    readonly considered: readonly { readonly milliseconds: number }[];
    readonly milliseconds: number;
  };
  expect(considered.length).toBeGreaterThan(2);
  expect(milliseconds).toBeLessThanOrEqual(1.05 * Math.min(...considered.map((each) => each.milliseconds)));
});

it("needs a profile, and names those that come with Braid", async () => {
  const { status, err } = await cli("explain", example);
  expect(status).toBe(2);
  expect(err).toContain("error[option-value]: a prediction needs the profile of a machine");
  expect(err).toContain("4xH200");
  const unknown = await cli("explain", example, "--profile", "9xH200");
  expect(unknown).toMatchObject({ status: 2 });
  expect(unknown.err).toContain("error[file-unreadable]");
});

it("explains a dump, against its own kernels", async () => {
  const { status, out } = await cli("explain", `${dump}/draft-allgather-linear.hir`, "--profile", "4xH200", "--json");
  expect(status).toBe(0);
  expect(JSON.parse(out)).toMatchObject({ serial: null });
});

it("predicts for other machines and other numbers of devices", async () => {
  const asked = ["explain", example, "--devices", "2", "--profile", "4xH200", "--set", "M=8192", "--set", "K=8192"];
  const predicted = async (change: string): Promise<{ readonly now: number; readonly then: number }> => {
    const { status, out } = await cli(...asked, "--what-if", change, "--json");
    expect(status).toBe(0);
    const { milliseconds, whatIf } = JSON.parse(out) as {
      readonly milliseconds: number;
      readonly whatIf: { readonly milliseconds: number };
    };
    return { now: milliseconds, then: whatIf.milliseconds };
  };
  const [gemm, link, slow, devices] = await Promise.all(
    ["gemm=2x", "link=2000GB/s", "link=0.5x", "devices=4"].map(predicted),
  );
  for (const { now, then } of [gemm, link, devices].flatMap((each) => each ?? [])) expect(then).toBeLessThan(now);
  expect(slow?.then).toBeGreaterThan(slow?.now ?? Infinity);
  const wrong = await cli(...asked, "--what-if", "gem=2x");
  expect(wrong).toMatchObject({ status: 2 });
  expect(wrong.err).toContain("did you mean gemm?");
});
