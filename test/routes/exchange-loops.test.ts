/**
 * An exchange of all with all in a loop over the devices, before the matmul that reads it and after the one that makes
 * it: the tokens of experts. Annotated by the user, or by the option `deviceLoops`.
 */
import { describe, expect, it } from "vitest";
import {
  clamp,
  DeviceMesh,
  Fusion,
  gelu,
  groupedMatmul,
  lower,
  matmul,
  permute,
  print,
  set,
  unsqueeze,
} from "@braid-compiler/braid";
import type { LoweringOptions } from "../../src/passes/options.ts";
import { expectOracle } from "../support/expect-oracle.ts";

const devices = 4;

interface Sizes {
  readonly experts: number;
  readonly tokens: number;
}

/** The tokens of each expert are spread over the devices; each device has some experts. */
function experts({ experts: E, tokens }: Sizes, isAnnotated: boolean): Fusion {
  const f = new Fusion();
  const x = f.input([E, tokens, 8], "float");
  const [up, down] = [f.input([E, 8, 16], "float"), f.input([E, 16, 8], "float")];
  const arrived = set(x);
  const made = matmul(gelu(matmul(arrived, up)), down);
  const y = set(made);
  f.output(y);
  const mesh = DeviceMesh.range(devices);
  for (const tensor of [x, up, down, arrived, made, y]) tensor.setDeviceMesh(mesh);
  for (const tensor of [x, y]) tensor.outerSplit(1, devices).parallelize("DIDx");
  for (const tensor of [up, down]) tensor.outerSplit(0, devices).parallelize("DIDx");
  for (const tensor of [arrived, made]) {
    if (isAnnotated) tensor.outerSplit(1, devices).parallelize("Stream");
    tensor.outerSplit(0, devices).parallelize("DIDx");
  }
  if (isAnnotated) y.outerSplit(0, devices).parallelize("Stream");
  return f;
}

const even: Sizes = { experts: 8, tokens: 16 };
const uneven: Sizes = { experts: 7, tokens: 11 };
const sizes: readonly Sizes[] = [even, { experts: 4, tokens: 8 }, { experts: 3, tokens: 5 }];

const loops: readonly Partial<LoweringOptions>[] = [
  { backend: "cuda", protocol: "get" },
  { backend: "cuda", protocol: "put" },
  { backend: "nccl", p2p: "rotated" },
  { backend: "nccl", p2p: "linear" },
];

const whole: readonly Partial<LoweringOptions>[] = [
  { backend: "nccl", p2p: "broadcast" },
  { backend: "ucc", p2p: "broadcast" },
  { backend: "nccl", overlap: false },
];

describe.each([true, false])("experts, annotated: %s", (isAnnotated) => {
  const options = (given: Partial<LoweringOptions>): Partial<LoweringOptions> =>
    isAnnotated ? given : { ...given, deviceLoops: given.overlap !== false };

  it.each(loops)("are exchanged chunk by chunk, beside the matmuls: $backend $p2p $protocol", (given) => {
    const text = print(lower(experts(even, isAnnotated), options(given)));
    expect(text).not.toContain("type=AllToAll");
    const inLoops = text.split(/^ {2}FOR /m).filter((part) => /^ +P2PCommunication .*type=recv/m.test(part));
    expect(inLoops.every((part) => part.includes("matmul("))).toBe(true);
    expect(text.match(/^ +P2PCommunication .*type=recv/gm)?.length).toBe(2);
  });

  it.each(whole)("are exchanged at once where no loop can: $backend $p2p $overlap", (given) => {
    const text = print(lower(experts(even, isAnnotated), options(given)));
    expect(text.match(/type=AllToAll/g)?.length).toBe(2);
  });

  it.each([
    ...sizes.map((size) => ({ size, given: loops[1] ?? never() })),
    ...[...loops, ...whole.slice(0, 2)].map((given) => ({ size: uneven, given })),
  ])(
    "have the oracle's result: $size.experts experts, $size.tokens tokens, $given.backend $given.p2p $given.protocol",
    async ({ size, given }) => {
      await expectOracle(experts(size, isAnnotated), { devices, rounds: true, machineAlone: true, ...options(given) });
    },
  );
});

/**
 * Each device sends each expert a buffer of rows, of which the first ones are used, and gets the results back: by expert
 * and source, or by source and expert.
 */
function buffers(experts: number, isAnnotated: boolean, bySource = false): Fusion {
  const f = new Fusion();
  const [x, used] = [f.input([devices, experts, 3, 8], "float"), f.input([devices, experts], "int64")];
  const [up, down] = [f.input([experts, 1, 1, 8, 16], "float"), f.input([experts, 1, 1, 16, 8], "float")];
  const [rows, counts] = [set(permute(x, [1, 0, 2, 3])), unsqueeze(permute(clamp(used, 0, 3), [1, 0]), 2)];
  const wide = groupedMatmul(rows, up, counts);
  const made = groupedMatmul(gelu(wide), down, counts);
  const y = set(bySource ? permute(made, [1, 0, 2, 3]) : made);
  f.output(y);
  const mesh = DeviceMesh.range(devices);
  for (const tensor of [x, used, up, down, rows, counts, wide, made, y]) tensor.setDeviceMesh(mesh);
  for (const tensor of [x, used]) tensor.axis(0).parallelize("DIDx");
  y.axis(bySource ? 0 : 1).parallelize("DIDx");
  for (const tensor of [rows, wide, made]) if (isAnnotated) tensor.axis(1).parallelize("Stream");
  for (const tensor of [up, down, rows, counts, wide, made]) tensor.outerSplit(0, devices).parallelize("DIDx");
  if (isAnnotated) y.outerSplit(bySource ? 1 : 0, devices).parallelize("Stream");
  return f;
}

describe.each([true, false])("buffers of experts, annotated: %s", (isAnnotated) => {
  const options = (given: Partial<LoweringOptions>): Partial<LoweringOptions> =>
    isAnnotated ? given : { ...given, deviceLoops: given.overlap !== false };
  it.each(loops)("arrive beside the grouped matmuls of others, and leave so: $backend $p2p $protocol", (given) => {
    const text = print(lower(buffers(8, isAnnotated), options(given)));
    const inLoops = text.split(/^ {2}FOR /m).filter((part) => /^ +P2PCommunication .*type=recv/m.test(part));
    expect(inLoops.every((part) => part.includes("grouped_matmul("))).toBe(true);
    // The numbers of rows travel at once or in the loop.
    expect(text.match(/type=AllToAll/g)?.length ?? 0).toBe(isAnnotated ? 1 : 0);
    expect(text.match(/^ +P2PCommunication .*type=recv/gm)?.length).toBe(isAnnotated ? 2 : 3);
  });

  it.each(
    [...loops, ...whole].flatMap((given, i) => [8, 7, 4].map((experts) => ({ experts, bySource: i % 2 === 0, given }))),
  )(
    "have the oracle's result: $experts experts, by source: $bySource, $given.backend $given.p2p $given.protocol",
    async ({ experts, bySource, given }) => {
      const fusion = buffers(experts, isAnnotated, bySource);
      await expectOracle(fusion, { devices, rounds: true, machineAlone: true, ...options(given) });
    },
  );
});

function never(): never {
  throw new Error("a list is empty");
}
