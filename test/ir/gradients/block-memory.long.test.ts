/**
 * Memory of a transformer block, forward and backward, on one of four devices: the peak against the sum of all
 * temporaries, and what splitBackward's policies save. docs/gradients.md has the figures.
 */
import { describe, expect, it } from "vitest";
import {
  compile,
  type CompileOptions,
  DeviceMesh,
  type Fusion,
  type SavePolicy,
  splitBackward,
  type SplitPrograms,
} from "@braid-compiler/braid";
import { at } from "../../../src/support/invariant.ts";
import { exampleFusion } from "../../support/example-program.ts";

const devices = 4;
/** Of Llama-3 8B, one sequence of 8192 tokens. */
const sizes = { S: 1, B: 1, L: 8192, H: 4096, HEADS: 32, FFN: 14336, DTYPE: "bfloat16" } as const;
const blocks = { llama: { ...sizes, GROUPS: 8 }, gpt: { ...sizes, FFN: 16384 } };

interface Temporaries {
  readonly peak: number;
  readonly sum: number;
}

/** Megabytes on rank 0. `overlap`: with Stream loops. */
function temporariesOf(fusion: Fusion, options: Partial<CompileOptions> = { overlap: false }): Temporaries {
  const { program } = compile(fusion, { devices, verify: "off", ...options });
  const own = program.buffers.filter(({ rank, role }) => rank === 0 && role === "temporary");
  return { peak: megabytes(at(program.ranks, 0).arenaBytes.temporary), sum: megabytes(bytesOf(own)) };
}

function bytesOf(buffers: readonly { readonly bytes: number }[]): number {
  return buffers.reduce((sum, { bytes }) => sum + bytes, 0);
}

function megabytes(bytes: number): number {
  return Math.round(bytes / 1e6);
}

describe("forward and backward in one program", () => {
  it.each([
    { block: "llama", peak: 625, sum: 1330 },
    { block: "gpt", peak: 655, sum: 1259 },
  ] as const)("$block", async ({ block, ...expected }) => {
    const fusion = await exampleFusion(`transformer/${block}-block.ts`, devices, blocks[block]);
    expect(temporariesOf(fusion)).toEqual(expected);
  });
});

describe("of a Llama block as two programs", () => {
  async function splitBlock(policy: SavePolicy, { B, S } = { B: 1, S: 1 }): Promise<SplitPrograms> {
    const f = await exampleFusion("transformer/llama-block.ts", devices, { ...blocks.llama, B, S, BACKWARD: 0 });
    const dz = f.input([B, sizes.L, sizes.H], "bfloat16");
    const wrt = f.inputs.slice(0, -1);
    dz.setDeviceMesh(DeviceMesh.range(devices)).outerSplit(1, devices).parallelize("DIDx");
    return splitBackward(f, { of: f.outputs, cotangents: [dz], wrt }, policy);
  }

  it.each([
    { policy: "all", saved: 327, forward: 84, backward: 386 },
    { policy: "minimal", saved: 176, forward: 143, backward: 403 },
    { policy: { bytes: 0 }, saved: 0, forward: 201, backward: 533 },
  ] as const)("$policy", async ({ policy, ...expected }) => {
    const { forward, backward, saved } = await splitBlock(policy);
    const { buffers } = compile(forward, { devices, verify: "off" }).program;
    const outputs = buffers.filter(({ rank, role }) => rank === 0 && role === "output");
    expect(outputs).toHaveLength(1 + saved.length);
    expect({
      saved: megabytes(bytesOf(outputs.slice(1))),
      forward: temporariesOf(forward).peak,
      backward: temporariesOf(backward).peak,
    }).toEqual(expected);
  });

  it.each([
    { chunks: 1, streams: 1, overlap: false, forward: 336 },
    { chunks: 4, streams: 1, overlap: true, forward: 92 },
    { chunks: 4, streams: 4, overlap: true, forward: 344 },
  ])("of four sequences in $chunks chunks on $streams streams", async ({ chunks, forward, ...options }) => {
    const split = await splitBlock("all", { B: 4, S: chunks });
    expect(temporariesOf(split.forward, options).peak).toBe(forward);
  });
});
