/** Slices of an axis that devices share, and writes at its indices: nothing is gathered. */
import { expect, it } from "vitest";
import {
  broadcast,
  compile,
  DeviceMesh,
  expand,
  Fusion,
  full,
  gradients,
  iota,
  scatterAdd,
  slice,
  type TensorView,
} from "@braid-compiler/braid";
import { expectOracle } from "../support/expect-oracle.ts";
import { mostReceived } from "./received-bytes.ts";

/** What a device receives, of [4, 8] floats whose columns four devices share. */
async function received(build: (x: TensorView, f: Fusion) => TensorView): Promise<number> {
  const f = new Fusion();
  const x = f.input([4, 8]);
  f.output(build(x, f));
  x.setDeviceMesh(DeviceMesh.range(4)).outerSplit(1, 4).parallelize("DIDx");
  await expectOracle(f, { devices: 4, seed: 3 });
  return mostReceived(compile(f, { devices: 4 }).program);
}

/** An Allreduce of so many floats. */
const summed = (floats: number): number => (2 * floats * 4 * 3) / 4;
const gathered = 4 * 8 * 4 * (3 / 4);

it.each([
  ["every second column is local", [0, 1], [4, 8], [1, 2], 0],
  ["up to the last that counts", [0, 0], [4, 7], [1, 2], 0],
  ["and with fewer rows", [1, 1], [3, 8], [1, 2], 0],
  ["one column is summed", [0, 3], [4, 4], [1, 1], summed(4)],
  ["of its rows, those that are taken", [0, 3], [2, 4], [1, 1], summed(2)],
  ["more columns are gathered", [0, 1], [4, 7], [1, 1], gathered],
  ["a few columns, in steps that leave a rest, are summed", [0, 0], [4, 8], [1, 3], summed(12)],
] as const)("%s", async (_, starts, stops, steps, bytes) => {
  expect(await received((x) => slice(x, starts, stops, steps))).toBe(bytes);
});

it("the gradient of every second column is local", async () => {
  const bytes = await received((x, f) => {
    const dy = f.input([4, 4]);
    dy.setDeviceMesh(DeviceMesh.range(4)).outerSplit(1, 4).parallelize("DIDx");
    const [dx] = gradients(f, { of: [slice(x, [0, 1], [4, 8], [1, 2])], cotangents: [dy], wrt: [x] });
    return dx ?? x;
  });
  expect(bytes).toBe(0);
});

it("devices add to what they have of an axis", async () => {
  const columns = (f: Fusion): TensorView => expand(broadcast(iota(f, 2, { start: 3 }), [true, false]), [4, 2]);
  const bytes = await received((x, f) => scatterAdd(x, 1, columns(f), full(f, [4, 2], 1)));
  expect(bytes).toBe(0);
});
