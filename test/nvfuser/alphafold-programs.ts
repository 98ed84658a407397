/**
 * nvFuser's tests/python/multidevice/test_alphafold3.py: a triangle update, at small sizes. The pairs [batch, i, j, c]
 * are cut along all of batch, i and j.
 */
import {
  broadcast,
  type DType,
  DeviceMesh,
  layerNorm,
  linear,
  matmul,
  mul,
  permute,
  sigmoid,
  split,
  type TensorView,
  where,
} from "@braid-compiler/braid";
import { cut, outputs, place, program, type SuiteProgram } from "./setup.ts";

// Counted on 8 devices: one per team of two.
const channels = 4;

/** Batch, i and j of a tensor, at these axes, on d devices. */
function spread(tensor: TensorView, d: number, [batch, i, j]: readonly [number, number, number]): void {
  place(DeviceMesh.ofShape([d / 4, 2, 2]), tensor);
  cut(tensor, j, 2);
  cut(tensor, i, 2, "DIDy");
  cut(tensor, batch, d / 4, "DIDz");
}

function gated(x: TensorView, w: TensorView, from: TensorView, gate: TensorView): TensorView {
  return mul(linear(x, w), sigmoid(linear(from, gate)));
}

function triangleUpdate(dtype: DType, direction: "outgoing" | "incoming", communications: string): SuiteProgram {
  return program(
    `test_triangle_updates, ${direction}`,
    communications,
    (f, d) => {
      const mesh = DeviceMesh.ofShape([d / 4, 2, 2]);
      const weight = (...shape: readonly number[]): TensorView => f.input(shape, dtype).setDeviceMesh(mesh);
      const shape = [d / 4, 6, 6];
      const pairs = f.input([...shape, channels], dtype);
      const mask = f.input(shape, "bool");
      const normed = layerNorm(pairs, weight(channels), weight(channels));
      const both = gated(normed, weight(2 * channels, channels), normed, weight(2 * channels, channels));
      const kept = where(broadcast(mask, [false, false, false, true]), both, 0);
      const [a, b] = split(kept, [channels, channels], -1);
      // Over the third corner k of the triangle: the edges i k and j k, or k i and k j.
      const isOutgoing = direction === "outgoing";
      const left = permute(a, isOutgoing ? [0, 3, 1, 2] : [0, 3, 2, 1]);
      const right = permute(b, isOutgoing ? [0, 3, 2, 1] : [0, 3, 1, 2]);
      const product = matmul(left, right);
      const updated = layerNorm(permute(product, [0, 2, 3, 1]), weight(channels), weight(channels));
      outputs(f, gated(updated, weight(channels, channels), normed, weight(channels, channels)));
      spread(pairs, d, [0, 1, 2]);
      spread(mask, d, [0, 1, 2]);
      // The corners k, which are reduced.
      place(mesh, product);
      cut(product, -1, 2, isOutgoing ? "DIDx" : "DIDy");
      spread(product, d, [0, 2, 3]);
    },
    { devices: [4, 8] },
  );
}

export const alphafoldPrograms = (dtype: DType): readonly SuiteProgram[] => [
  triangleUpdate(dtype, "outgoing", "Allgather 4, ReduceScatter 4"),
  triangleUpdate(dtype, "incoming", "Allgather 4, ReduceScatter 4, CollectivePermute 2"),
];
