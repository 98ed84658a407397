/** Programs that reach peers' memory. */
import { DeviceMesh } from "../../src/ir/device-mesh.ts";
import { Fusion } from "../../src/ir/api/fusion.ts";
import { matmul, sum } from "../../src/ir/api/ops.ts";
import type { DType } from "../../src/numerics/dtype.ts";

/** Chunks of rows are multiplied while the next ones travel. */
export function ring(devices: number, [m, k, n]: readonly [number, number, number], dtype: DType): Fusion {
  const f = new Fusion();
  const [a, b] = [f.input([devices, m, k], dtype), f.input([k, n], dtype)];
  const c = matmul(a, b);
  f.output(c);
  for (const tensor of [a, b, c]) tensor.setDeviceMesh(DeviceMesh.range(devices));
  a.axis(0).parallelize("DIDx");
  c.axis(0).parallelize("Stream");
  return f;
}

/** Kernels that read and write peers' memory, with their signals inside. */
export function total(devices: number, length: number): Fusion {
  const f = new Fusion();
  const x = f.input([devices, length], "float");
  const y = sum(x, [0]);
  f.output(y);
  for (const tensor of [x, y]) tensor.setDeviceMesh(DeviceMesh.range(devices));
  x.axis(0).parallelize("DIDx");
  return f;
}
