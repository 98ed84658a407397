import { DeviceMesh, Fusion, matmul, sum } from "../../src/index.ts";

const f = new Fusion();
const a = f.input([4, 2, 8, null], "bfloat16"); // [S, D, M / (S D), K]
const b = f.input([null, 16], "bfloat16"); // [K, N]
const c = matmul(a, b);
const total = sum(c, [3]);
f.output(total);

const mesh = DeviceMesh.range(2);
for (const tv of [a, b, c, total]) tv.setDeviceMesh(mesh);
a.axis(1).parallelize("DIDx");
c.axis(0).parallelize("Stream");
total.split(2, 4).merge(1);

export const lines = [a, b, c, total].map(String);
