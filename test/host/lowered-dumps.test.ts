/** Fusions lower to nvFuser's dumps of the collective pipelines, with the numbers of tensors, axes and extents that those have. */
import { readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { DeviceMesh, Fusion, lower, matmul, print, set, sum, type TensorView } from "braid";
import { normaliseDump } from "../support/normalise-dump.ts";

function onMesh(f: Fusion, input: TensorView, output: TensorView): Fusion {
  f.output(output);
  for (const tensor of [...f.inputs, output]) tensor.setDeviceMesh(DeviceMesh.range(8));
  input.axis(1).parallelize("DIDx");
  output.axis(0).parallelize("Stream");
  return f;
}

const fusions: { readonly [name: string]: () => Fusion } = {
  "e2-allgather": () => {
    const f = new Fusion();
    const x = f.input([null, null]);
    return onMesh(f, x, set(x));
  },
  "e2-allreduce": () => {
    const f = new Fusion();
    const x = f.input([null, null, null]);
    return onMesh(f, x, sum(x, [1]));
  },
  "e2-allgather-matmul": () => {
    const f = new Fusion();
    const a = f.input([null, null, null, null]);
    return onMesh(f, a, matmul(a, f.input([null, null])));
  },
};

describe.each(Object.entries(fusions))("%s", (name, build) => {
  const file = path.resolve(import.meta.dirname, `../fixtures/dumps/${name}.hir`);
  const dump = normaliseDump(readFileSync(file, "utf8"));

  it.each([0, 7])("prints as the dump on rank %i", (rank) => {
    const program = lower(build(), { rank, deallocate: false, shrinkStreamBuffers: false });
    expect(normaliseDump(print(program, { style: "2025-05" })).text).toBe(dump.text);
  });
});
