/** Simulating takes steps in proportion to the commands, however many ranks meet in a collective. Steps are counted. */
import { afterAll, beforeAll, expect, it } from "vitest";
import type * as braid from "@braid-compiler/braid";
import { startCounting, type StepCounter } from "../support/count-steps.ts";
import { roundProfile } from "./profile.ts";

let steps: StepCounter;
let own: typeof braid;

beforeAll(async () => {
  steps = await startCounting();
  own = await import("@braid-compiler/braid");
});

afterAll(async () => {
  await steps.stop();
});

/** Four chunks, gathered by a collective each or in a ring of copies, and multiplied. */
function pipeline(devices: number, backend: "nccl" | "cuda"): braid.Program {
  const { compile, DeviceMesh, Fusion, matmul } = own;
  const f = new Fusion();
  const a = f.input(backend === "nccl" ? [4, devices, 2, 2] : [devices, 2, 2], "float");
  const b = f.input([2, 2], "float");
  const c = matmul(a, b);
  f.output(c);
  for (const tensor of [a, b, c]) tensor.setDeviceMesh(DeviceMesh.range(devices));
  a.axis(backend === "nccl" ? 1 : 0).parallelize("DIDx");
  c.axis(0).parallelize("Stream");
  return compile(f, { devices, backend, verify: "off" }).program;
}

it.each(["nccl", "cuda"] as const)("four times the ranks, steps per command grow by little: %s", async (backend) => {
  const perCommand = async (devices: number): Promise<number> => {
    const program = pipeline(devices, backend);
    const commands = program.ranks.reduce((sum, list) => sum + list.commands.length, 0);
    own.simulate(program, roundProfile, { graph: true });
    return (await steps.count(() => void own.simulate(program, roundProfile, { graph: true }))) / commands;
  };
  // Events come from a heap, whose depth is the logarithm of what is under way.
  expect((await perCommand(32)) / (await perCommand(8))).toBeLessThan(1.5);
});
