/** What covered communications are worth. docs/passes/host-program.md has the figures. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { DeviceMesh, Fusion, matmul, neg, parseProfile, permute } from "@braid-compiler/braid";
import { predicted } from "../support/predicted.ts";
import { exampleFusion } from "../support/example-program.ts";

const devices = 4;
const dtype = "bfloat16";
const name = "4xH200.json";
const profile = parseProfile(readFileSync(new URL(`../../profiles/${name}`, import.meta.url), "utf8"), name);
const options = { devices, on: "cuda", overlap: false } as const;
const llama8B = { S: 1, B: 1, L: 8192, H: 4096, HEADS: 32, GROUPS: 8, FFN: 14336, DTYPE: dtype } as const;
const llama70B = { ...llama8B, H: 8192, HEADS: 64, FFN: 28672 } as const;

describe("predicted on four H200", () => {
  it.each([
    { file: "llama-block", sizes: llama8B, exposed: [1.2, 0.82], milliseconds: [6.62, 6.42], peak: [608, 625] },
    { file: "llama-block", sizes: llama70B, exposed: [2.09, 1.06], milliseconds: [21.11, 20.57], peak: [1196, 1229] },
    {
      file: "weight-prefetch",
      sizes: { LAYERS: 4, M: 32768, H: 4096 },
      exposed: [0.75, 0.19],
      milliseconds: [23.63, 23.33],
      peak: [336, 403],
    },
  ])("$file, H $sizes.H", async ({ file, sizes, exposed, milliseconds, peak }) => {
    const fusion = await exampleFusion(`transformer/${file}.ts`, devices, sizes);
    const both = [{ disablePass: ["cover-communications"] }, {}].map((own) =>
      predicted(fusion, { ...options, ...own }, profile),
    );
    expect(both.map((each) => Number(each.exposed.toFixed(2)))).toEqual(exposed);
    expect(both.map((each) => Number(each.milliseconds.toFixed(2)))).toEqual(milliseconds);
    expect(both.map((each) => Math.round(each.peak))).toEqual(peak);
  });

  it("before a loop over the devices, by copies beside its matmuls", () => {
    const f = new Fusion();
    const [x, dy, w] = [f.input([8192, 4096], dtype), f.input([8192, 14336], dtype), f.input([14336, 4096], dtype)];
    const [dx, dw] = [matmul(dy, w), matmul(permute(dy, [1, 0]), neg(x))];
    f.output(dx);
    f.output(dw);
    for (const tv of [...f.inputs, dx, dw]) tv.setDeviceMesh(DeviceMesh.range(devices));
    for (const tv of [x, w, dx, dw]) tv.outerSplit(0, devices).parallelize("DIDx");
    dy.outerSplit(1, devices).parallelize("DIDx");
    const loops = { devices, on: "cuda", backend: "cuda", deviceLoops: true } as const;
    const schedule = { inPlace: true, computeStreams: 2, copyStream: "dedicated" } as const;
    const both = [{ disablePass: ["cover-communications"] }, {}].map((own) =>
      predicted(f, { ...loops, schedule, ...own }, profile),
    );
    expect(both.map((each) => Number(each.exposed.toFixed(2)))).toEqual([0.2, 0]);
    expect(both.map((each) => Number(each.milliseconds.toFixed(2)))).toEqual([0.92, 0.67]);
  });
});
