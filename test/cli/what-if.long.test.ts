/** `braid explain --what-if`: other machines, other numbers of devices, several hosts. */
import path from "node:path";
import { expect, it } from "vitest";
import { cli } from "./captured-cli.ts";

const example = path.resolve(import.meta.dirname, "../../examples/matmul-reduce-scatter.ts");

it("predicts for other machines and other numbers of devices", async () => {
  const sizes = ["M", "N", "K"].flatMap((name) => ["--set", `${name}=8192`]);
  const asked = ["explain", example, "--devices", "2", "--profile", "4xH200", "--schedule", "as-written", ...sizes];
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
  const text = await cli(...asked, "--what-if", "devices=16");
  expect(text.out).toMatch(/^what if devices=16: [\d.]+ \w+ \(90 %: /m);
  expect(text.out).toMatch(/^assumed: \w+ over 16 ranks is timed as .* \(mean error [^)]+\)$/m);
  for (const { now, then } of [gemm, link, devices].flatMap((each) => each ?? [])) expect(then).toBeLessThan(now);
  expect(slow?.then).toBeGreaterThan(slow?.now ?? Infinity);
  const refused = await cli(...asked, "--what-if", "network=2x");
  expect(refused).toMatchObject({ status: 2 });
  expect(refused.err).toContain("fix: give the rate of a network interface with GB/s");
  const wrong = await cli(...asked, "--what-if", "gem=2x");
  expect(wrong).toMatchObject({ status: 2 });
  expect(wrong.err).toContain("did you mean gemm?");
});

it("predicts for several hosts, by the profile's network or by another", async () => {
  const file = path.resolve(example, "../hosts/allgather-matmul.ts");
  const sizes = ["M=16384", "N=8192", "K=8192"].flatMap((size) => ["--set", size]);
  const asked = ["explain", file, "--devices", "4", "--profile", "8xH100", "--backend", "cuda", ...sizes];
  const predicted = async (...changes: readonly string[]): Promise<number> => {
    const { status, out, err } = await cli(...asked, ...changes.flatMap((change) => ["--what-if", change]), "--json");
    expect([status, err]).toEqual([0, ""]);
    return (JSON.parse(out) as { readonly whatIf: { readonly milliseconds: number } }).whatIf.milliseconds;
  };
  const [twice, fast, slow] = await Promise.all([
    predicted("hosts=2"),
    predicted("hosts=2", "network=4x"),
    predicted("hosts=2", "network=5GB/s"),
  ]);
  expect(fast).toBeLessThan(twice);
  expect(slow).toBeGreaterThan(twice);
  const launched = await cli(...asked, "--devices-per-host", "2");
  expect(launched.out).toMatch(/predicted on 4 devices of 2 hosts/);
  expect(await cli(...asked, "--what-if", "hosts=few")).toMatchObject({ status: 2 });
  const both = await cli(...asked, "--what-if", "hosts=2", "--what-if", "devices=4");
  expect(both).toMatchObject({ status: 2 });
  expect(both.err).toContain("hosts and devices contradict each other");
});
