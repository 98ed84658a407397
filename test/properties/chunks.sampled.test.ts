/**
 * Loops over chunks of rows at any sizes: 1 to 5 devices, 1 to 8 chunks, 0 to 13 rows, whether shares and chunks
 * coincide or not. The oracle's result on all back ends, the same bits with slots and without, and in every
 * interleaving.
 */
import fc from "fast-check";
import { expect, it } from "vitest";
import { type Fusion, type LowerOptions, MultiDeviceExecutor, type Tensor } from "@braid-compiler/braid";
import { type CpuOptions, createCpuBackend } from "@braid-compiler/braid/cpu";
import { randomInputs } from "../../src/oracle/random-inputs.ts";
import { shapeOf } from "../../src/ir/sizes.ts";
import { createRandom } from "../../src/support/random.ts";
import { chunkedFusion, fusedMlp, gathered, gatheredMlp, rowNorm } from "../support/chunked-fusions.ts";
import { expectOracle } from "../support/expect-oracle.ts";
import { draws } from "../support/suite.ts";

const bodies = { gathered, fusedMlp, gatheredMlp, rowNorm } as const;

const settings = fc.record({
  body: fc.constantFrom("gathered", "fusedMlp", "gatheredMlp", "rowNorm"),
  devices: fc.integer({ min: 1, max: 5 }),
  chunks: fc.integer({ min: 1, max: 8 }),
  rows: fc.integer({ min: 1, max: 13 }),
  streams: fc.integer({ min: 1, max: 4 }),
  options: fc.constantFrom<LowerOptions>(
    {},
    { p2p: "linear" },
    { p2p: "broadcast" },
    { backend: "cuda", protocol: "get" },
    { backend: "cuda", protocol: "put" },
  ),
});

it("gives the oracle's result", async () => {
  await fc.assert(
    fc.asyncProperty(settings, async ({ body, devices, chunks, rows, streams, options }) => {
      const { build } = chunkedFusion(body, devices, bodies[body](rows, chunks));
      await expectOracle(build(), { devices, streams, ...options });
    }),
    draws({ quick: 4, long: 70 }),
  );
});

async function runOnce(
  fusion: Fusion,
  devices: number,
  options: LowerOptions & { readonly streams: number },
  on: CpuOptions,
): Promise<readonly unknown[]> {
  const data = fusion.data();
  const shapes = data.inputs.map((id) => {
    const tensor = data.tensors[id];
    if (tensor === undefined) throw new Error("an input without a tensor");
    return { dtype: tensor.dtype, shape: shapeOf(tensor, new Map()) };
  });
  const inputs: Tensor[] = randomInputs(shapes, createRandom(3), "uniform");
  const executor = await MultiDeviceExecutor.create(fusion, { devices, ...options, on: createCpuBackend(on) });
  try {
    return await executor.run(inputs, { gather: false });
  } finally {
    await executor.close();
  }
}

it("gives the same bits with slots and without, under every schedule", async () => {
  await fc.assert(
    fc.asyncProperty(settings, fc.nat(), async ({ body, devices, chunks, rows, streams, options }, seed) => {
      const { build } = chunkedFusion(body, devices, bodies[body](rows, chunks));
      const whole = await runOnce(build(), devices, { ...options, streams, shrink: false }, {});
      const ways: readonly CpuOptions[] = [
        { interleaving: { kind: "seed", seed } },
        { transfers: "eager" },
        { queues: "ranks" },
      ];
      for (const way of ways) expect(await runOnce(build(), devices, { ...options, streams }, way)).toEqual(whole);
    }),
    draws({ quick: 2, long: 25 }),
  );
});
