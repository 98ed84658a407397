/**
 * What sunken Waits are worth, in the data-parallel backward pass of examples/transformer: the communication that then
 * runs under kernels, and the memory that it costs.
 */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { parseProfile } from "@braid-compiler/braid";
import { at } from "../../src/support/invariant.ts";
import { predicted } from "../support/predicted.ts";
import { exampleFusion } from "../support/example-program.ts";

const devices = 4;
const name = "4xH200.json";
const profile = parseProfile(readFileSync(new URL(`../../profiles/${name}`, import.meta.url), "utf8"), name);
/** cover-communications would give some of them something to run beside. */
const sunk = { disablePass: ["cover-communications"] };
const rightAfter = { disablePass: ["sink-waits", ...sunk.disablePass] };

describe("four layers of 8192 tokens in bfloat16, predicted on four H200", () => {
  const sizes = { S: 1, LAYERS: 4, B: 4, L: 2048, H: 4096, FFN: 16384, DTYPE: "bfloat16" } as const;
  const options = { devices, on: "cuda" } as const;

  it.each([
    { DATA: 2, exposed: [2.44, 1.0], milliseconds: [12.55, 11.66], peak: [772, 772] },
    { DATA: 4, exposed: [4.86, 0.78], milliseconds: [15.02, 12.69], peak: [789, 973] },
  ])("$DATA groups", async ({ DATA, ...expected }) => {
    const fusion = await exampleFusion("transformer/data-parallel.ts", devices, { ...sizes, DATA });
    const both = [rightAfter, sunk].map((own) => predicted(fusion, { ...options, ...own }, profile));
    for (const name of ["exposed", "milliseconds"] as const) {
      both.forEach((each, i) => expect(each[name], name).toBeCloseTo(at(expected[name], i), 1));
    }
    both.forEach(({ peak }, i) => expect(Math.round(peak)).toBe(at(expected.peak, i)));
  });
});
