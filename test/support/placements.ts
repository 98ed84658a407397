/** Shardings and chunks of a tensor of two axes, for ops whose elements depend on where they lie. */
import { DeviceMesh, type TensorView } from "@braid-compiler/braid";

const grid = new DeviceMesh([
  [0, 1],
  [2, 3],
]);

/** What it is, the number of devices, and how an operand x of two axes and a result y lie. */
export const placements: readonly (readonly [string, number, (x: TensorView, y: TensorView) => void])[] = [
  ["on one device", 1, () => {}],
  ["by rows", 2, (x) => void x.setDeviceMesh(DeviceMesh.range(2)).outerSplit(0, 2).parallelize("DIDx")],
  ["by columns", 2, (x) => void x.setDeviceMesh(DeviceMesh.range(2)).outerSplit(1, 2).parallelize("DIDx")],
  [
    "on a grid",
    4,
    (x) => {
      x.setDeviceMesh(grid).outerSplit(0, 2).parallelize("DIDy");
      x.outerSplit(2, 2).parallelize("DIDx");
    },
  ],
  [
    "in chunks of rows",
    2,
    (x, y) => {
      x.setDeviceMesh(DeviceMesh.range(2)).outerSplit(1, 2).parallelize("DIDx");
      y.outerSplit(0, 3).parallelize("Stream");
    },
  ],
  [
    "in chunks of shares",
    2,
    (x, y) => {
      x.setDeviceMesh(DeviceMesh.range(2)).outerSplit(0, 2).parallelize("DIDx");
      y.setDeviceMesh(DeviceMesh.range(2)).outerSplit(0, 2).parallelize("DIDx");
      y.outerSplit(1, 2).parallelize("Stream");
    },
  ],
  [
    "in shares of chunks",
    2,
    (x, y) => {
      for (const view of [x, y]) {
        view.setDeviceMesh(DeviceMesh.range(2)).outerSplit(0, 3);
        view.outerSplit(1, 2).parallelize("DIDx");
      }
      y.axis(0).parallelize("Stream");
    },
  ],
  ["by uneven rows", 3, (x) => void x.setDeviceMesh(DeviceMesh.range(3)).outerSplit(0, 3).parallelize("DIDx")],
];
