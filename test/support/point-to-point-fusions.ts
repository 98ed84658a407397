/** nvFuser's fusions of a matmul and point-to-point communication, and the communication alone. */
import { DeviceMesh, Fusion, matmul, set, sum, type TensorView } from "braid";

function onMesh(tensors: readonly TensorView[], devices: number): void {
  for (const tensor of tensors) tensor.setDeviceMesh(DeviceMesh.range(devices));
}

export function allgather(devices: number): Fusion {
  const f = new Fusion();
  const x = f.input([devices, 6]);
  const y = set(x);
  f.output(y);
  onMesh([x, y], devices);
  x.axis(0).parallelize("DIDx");
  y.axis(0).parallelize("Stream");
  return f;
}

export function allgatherMatmul(devices: number): Fusion {
  const f = new Fusion();
  const a = f.input([devices, 3, 5]);
  const b = f.input([5, 4]);
  const c = matmul(a, b);
  f.output(c);
  onMesh([a, b, c], devices);
  a.axis(0).parallelize("DIDx");
  c.axis(0).parallelize("Stream");
  return f;
}

/** ReduceScatterP2p: every chunk of partial sums goes to the device that keeps it; the sum is local, behind the loop. */
export function reduceScatterP2p(devices: number): Fusion {
  const f = new Fusion();
  const a = f.input([devices, devices, 4, 3]);
  const b = f.input([devices, 1, 3, 2]);
  const partial = matmul(a, b);
  const c = sum(partial, [0]);
  f.output(c);
  onMesh([a, b, partial, c], devices);
  a.axis(0).parallelize("DIDx");
  a.axis(1).parallelize("Stream");
  b.axis(0).parallelize("DIDx");
  partial.axis(0).parallelize("Stream");
  partial.axis(1).parallelize("DIDx");
  c.axis(1).parallelize("DIDx");
  return f;
}

/** ReduceScatterReduceBased: the reduced axis has Stream, and each iteration reduces to one device. */
export function reduceScatterReduceBased(devices: number): Fusion {
  const f = new Fusion();
  const a = f.input([devices, devices, 4, 3]);
  const b = f.input([devices, 1, 3, 2]);
  const partial = matmul(a, b);
  const c = sum(partial, [0]);
  f.output(c);
  onMesh([a, b, partial, c], devices);
  a.axis(0).parallelize("DIDx");
  a.axis(1).parallelize("Stream");
  b.axis(0).parallelize("DIDx");
  partial.axis(0).parallelize("DIDx");
  partial.axis(1).parallelize("Stream");
  c.axis(0).parallelize("Stream");
  c.axis(1).parallelize("DIDx");
  return f;
}
