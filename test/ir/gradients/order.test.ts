/** Annotations mean the same before and after `gradients`: the programs differ in the numbers of axes alone. */
import { describe, expect, it } from "vitest";
import {
  add,
  crossEntropy,
  DeviceMesh,
  Fusion,
  gelu,
  gradients,
  layerNorm,
  linear,
  lower,
  permute,
  print,
  relu,
  reshape,
  sdpa,
  sum,
  type TensorView,
} from "@braid-compiler/braid";
import { collectivesOf } from "../../support/collectives-of.ts";

interface Program {
  readonly f: Fusion;
  readonly of: readonly TensorView[];
  readonly cotangents?: readonly TensorView[];
  readonly wrt: readonly TensorView[];
  /** The placement of the forward pass. */
  readonly annotate: () => void;
}

const devices = 2;
const mesh = DeviceMesh.range(devices);

function cut(axis: number, ...tensors: readonly TensorView[]): void {
  for (const tensor of tensors) tensor.outerSplit(axis, devices).parallelize("DIDx");
}

function on(...tensors: readonly TensorView[]): void {
  for (const tensor of tensors) tensor.setDeviceMesh(mesh);
}

/** `result`: whether the result and the activation between have placements of their own. */
const mlp = (rows: boolean, result: boolean) => (): Program => {
  const f = new Fusion();
  const [x, up, down, dz] = [f.input([8, 6]), f.input([16, 6]), f.input([6, 16]), f.input([8, 6])];
  const hidden = linear(x, up);
  const branch = linear(gelu(hidden), down);
  const z = add(x, branch);
  const annotate = (): void => {
    on(x, up, down, dz);
    cut(0, up);
    cut(1, down);
    if (rows) cut(0, x, dz);
    if (!result) return;
    on(z, branch, hidden);
    cut(0, z);
    cut(1, hidden);
  };
  return { f, of: [z], cotangents: [dz], wrt: [x, up, down], annotate };
};

const attention = (): Program => {
  const f = new Fusion();
  const [x, dz] = [f.input([2, 8, 8]), f.input([2, 8, 8])];
  const weights = [f.input([8, 8]), f.input([8, 8]), f.input([8, 8])] as const;
  const out = f.input([8, 8]);
  const heads = (weight: TensorView): TensorView => permute(reshape(linear(x, weight), [2, 8, 4, 2]), [0, 2, 1, 3]);
  const { output } = sdpa(heads(weights[0]), heads(weights[1]), heads(weights[2]));
  const z = add(x, linear(reshape(permute(output, [0, 2, 1, 3]), [2, 8, 8]), out));
  const annotate = (): void => {
    on(...f.inputs);
    cut(0, ...weights);
    cut(1, out, x, dz);
  };
  return { f, of: [z], cotangents: [dz], wrt: [x, ...weights, out], annotate };
};

/** `annotated`: the user cuts the logits, too. */
const vocabulary = (annotated: boolean) => (): Program => {
  const f = new Fusion();
  const [x, w, target] = [f.input([8, 4]), f.input([16, 4]), f.input([8], "int64")];
  const logits = linear(x, w);
  const loss = crossEntropy(logits, target);
  const annotate = (): void => {
    on(x, w, target);
    cut(0, w);
    if (!annotated) return;
    on(logits);
    cut(1, logits);
  };
  return { f, of: [loss], wrt: [x, w], annotate };
};

const norm = (): Program => {
  const f = new Fusion();
  const [x, gain, shift, dy] = [f.input([8, 6]), f.input([6]), f.input([6]), f.input([8, 6])];
  const y = layerNorm(x, gain, shift);
  const annotate = (): void => {
    on(x, gain, shift, dy, y);
    cut(0, x, dy, y);
  };
  return { f, of: [y], cotangents: [dy], wrt: [x, gain, shift], annotate };
};

/** Rows over the devices, and a loss that no output needs. */
const sumOfRows = (): Program => {
  const f = new Fusion();
  const [x, w] = [f.input([8, 4]), f.input([6, 4])];
  const loss = sum(relu(linear(x, w)), [0, 1]);
  const annotate = (): void => {
    on(x, w);
    cut(0, x);
  };
  return { f, of: [loss], wrt: [w], annotate };
};

const sumOfLinear = (): Program => {
  const f = new Fusion();
  const [x, w] = [f.input([8, 4]), f.input([6, 4])];
  const annotate = (): void => {
    on(x, w);
    cut(0, x);
  };
  return { f, of: [sum(linear(x, w), [0, 1])], wrt: [w], annotate };
};

function built(program: () => Program, annotatesFirst: boolean): Fusion {
  const { f, annotate, ...request } = program();
  if (annotatesFirst) annotate();
  const found = gradients(f, request);
  if (!annotatesFirst) annotate();
  for (const each of found) if (each !== null) f.output(each);
  return f;
}

/** The host program. Axes are numbered as they are made, which the order of statements decides. */
function textOf(f: Fusion): string {
  const numbers = new Map<string, number>();
  return print(lower(f)).replaceAll(
    /\b(?<kind>[irb](?:S|streamIdx|deviceIdx\.[a-z]))(?<number>\d+)\{/gu,
    (_, kind: string, number: string) => {
      if (!numbers.has(number)) numbers.set(number, numbers.size);
      return `${kind}${numbers.get(number)}{`;
    },
  );
}

describe("an annotation after gradients means what it means before", () => {
  it.each([
    ["an MLP", mlp(false, false), "Allreduce 1"],
    ["an MLP with rows of activations cut", mlp(true, false), "Allgather 2, ReduceScatter 1"],
    ["an MLP with placed results", mlp(true, true), "Allgather 2, ReduceScatter 1"],
    ["attention", attention, "Allgather 2, ReduceScatter 3"],
    ["a vocabulary-parallel loss", vocabulary(false), "Allreduce 3"],
    ["a vocabulary-parallel loss of placed logits", vocabulary(true), "Allreduce 3"],
    ["layerNorm", norm, "Allreduce 2"],
    ["a sum of relu of rows", sumOfRows, "Allreduce 1"],
    ["a sum of rows", sumOfLinear, "Allreduce 1"],
  ] as const)("%s", (_, program, sent) => {
    const [before, after] = [built(program, true), built(program, false)];
    expect(textOf(after)).toBe(textOf(before));
    expect(collectivesOf(after, devices)).toBe(sent);
  });
});

it("the gradient of a sum of rows is local but for one Allreduce, on the second dimension of a mesh, too", () => {
  const f = new Fusion();
  const [x, w] = [f.input([8, 4]), f.input([6, 4])];
  const y = linear(x, w);
  for (const each of gradients(f, { of: [sum(y, [0, 1])], wrt: [w] })) if (each !== null) f.output(each);
  f.output(y);
  for (const tensor of [x, w]) tensor.setDeviceMesh(DeviceMesh.ofShape([2, 2]));
  x.outerSplit(0, 2).parallelize("DIDy");
  expect(collectivesOf(f, 4)).toBe("Allreduce 2");
});
