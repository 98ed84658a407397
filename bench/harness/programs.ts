/** Programs that several benchmarks time. */
import { add, DeviceMesh, Fusion, matmul, neg, set } from "@braid-compiler/braid";

/** A chain that mixes units, Stream loops and reshardings. `shape`: chunks, devices, and what each holds of a chunk. */
export function mixedChain(ops: number, shape: readonly [number, number, number]): Fusion {
  const f = new Fusion();
  const mesh = DeviceMesh.range(shape[1]);
  const input = f.input([...shape], "float");
  input.setDeviceMesh(mesh);
  let last = input;
  for (let i = 0; i < ops; i++) {
    const fused = i % 7 === 3;
    const next = fused ? neg(last) : i % 5 === 0 ? set(last) : add(last, input);
    next.setDeviceMesh(mesh);
    if (!fused && i % 11 < 8) next.axis(0).parallelize("Stream");
    if (i % 13 === 0) next.axis(1).parallelize("DIDx");
    last = next;
  }
  f.output(last);
  return f;
}

/**
 * Allgather + matmul in a loop over the first axis, or the allgather alone without `columns`. The devices share axis
 * `sharded`: 0 makes a ring over them, 1 chunks.
 */
export function gathered(shape: readonly number[], sharded: 0 | 1, columns: number | null): Fusion {
  const f = new Fusion();
  const a = f.input([...shape], "float");
  const b = columns === null ? null : f.input([shape.at(-1) ?? 1, columns], "float");
  const c = b === null ? set(a) : matmul(a, b);
  f.output(c);
  for (const tensor of [a, b, c]) tensor?.setDeviceMesh(DeviceMesh.range(shape[sharded] ?? 1));
  a.axis(sharded).parallelize("DIDx");
  c.axis(0).parallelize("Stream");
  return f;
}
