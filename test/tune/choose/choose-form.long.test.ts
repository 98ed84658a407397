/** The form of a primitive that `braid bench` chooses, on machines that favour one or another. */
import { describe, expect, it } from "vitest";
import { chooseForm } from "../../../bench/compare/choose-form.ts";
import { withoutAddend } from "../../../src/commands/kernel.ts";
import { machine, rate } from "./round-machine.ts";

describe("the form of matmul + all-reduce", () => {
  const problem = { primitive: "tp-allreduce", devices: 4, m: 8192, n: 8192, k: 8192, dtype: "bfloat16" } as const;

  it("takes the backend of a primitive's collectives in chunks that is faster", () => {
    const formWith = (bytesPerMicrosecond: number): unknown => {
      const transfers = [{ type: "Allreduce", ranks: 4, timings: rate(15, 2.2e5) }] as const;
      const profile = { ...machine, transfers, reductionsInPeers: rate(5, bytesPerMicrosecond) };
      const { shape, compilation } = chooseForm({}, problem, { insertReshardingAfter: true }, profile);
      const { backend, overlap } = compilation.options;
      return [shape.form, backend, overlap];
    };
    expect(formWith(3.2e5)).toEqual(["collective", "cuda", true]);
    expect(formWith(1e4)).toEqual(["collective", "nccl", true]);
  });

  it("takes two halves and adds them in GEMMs between two devices, as long as GEMMs read what they add fast", () => {
    const formWith = (devices: number, memory: number): unknown => {
      const two = { ...problem, devices, k: 1024 };
      const profile = { ...machine, memory: rate(2, memory) };
      const { shape, compilation } = chooseForm({}, two, { insertReshardingAfter: true, backend: "cuda" }, profile);
      const adds = compilation.program.kernels.some((kernel) => withoutAddend(kernel) !== null);
      return [shape.form, shape.outputs, adds];
    };
    expect(formWith(2, 2.9e6)).toEqual(["rotated", 2, true]);
    expect(formWith(2, 1e5)).not.toContain(true);
    expect(formWith(4, 2.9e6)).not.toContain(true);
  });
});
