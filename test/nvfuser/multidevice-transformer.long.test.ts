/**
 * nvFuser's tests/cpp/test_multidevice_transformer.cpp and tests/python/multidevice/test_transformer.py: the values, in
 * half or bfloat16 in turn at small sizes on 2 and 4 devices, and of two layers at nvFuser's sizes.
 */
import { expect, it } from "vitest";
import { expectNorms } from "./expect-norms.ts";
import { fullSizes, smallSizes, transformerPrograms } from "./multidevice-transformer-programs.ts";

const small = transformerPrograms.map((build, i) => build(i % 2 === 0 ? "half" : "bfloat16", smallSizes));

it.each(small)("$name: $communications", async ({ build, devices = [] }) => {
  expect(devices).not.toEqual([]);
  for (const count of devices) await expectNorms(build(count), count);
});

const layers = transformerPrograms
  .map((build) => build("bfloat16", fullSizes))
  .filter(({ name }) => name === "MLP_Layer" || name === "MultiheadAttention");

it.each(layers)("$name at nvFuser's sizes", async ({ build }) => {
  await expectNorms(build(2), 2);
});
