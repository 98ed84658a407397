import { DeviceMesh, Fusion, linear, sum } from "../../src/index.ts";

const f = new Fusion();
const x = f.input([null, 32], "bfloat16"); // [M, K]
const w = f.input([16, 32], "bfloat16"); // [N, K]
const y = linear(x, w);
const total = sum(y, [1]);
f.output(total);

const mesh = DeviceMesh.range(2);
for (const tv of [x, w]) tv.setDeviceMesh(mesh);
x.outerSplit(0, 2).parallelize("DIDx");
y.outerSplit(0, 4).parallelize("Stream");

export const lines = [x, w, y, total].map(String);
