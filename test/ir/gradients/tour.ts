import { add, DeviceMesh, Fusion, gradients, linear, lower, print, tanh } from "../../../src/index.ts";

const f = new Fusion();
const [x, up, down, dz] = [f.input([8, 6]), f.input([16, 6]), f.input([6, 16]), f.input([8, 6])];
const z = add(x, linear(tanh(linear(x, up)), down));

const mesh = DeviceMesh.range(2);
for (const tv of [x, up, down, dz]) tv.setDeviceMesh(mesh);
up.outerSplit(0, 2).parallelize("DIDx");
down.outerSplit(1, 2).parallelize("DIDx");

const found = gradients(f, { of: [z], cotangents: [dz], wrt: [x, up, down] });
for (const each of [z, ...found]) if (each !== null) f.output(each);

export const text = print(lower(f));
export const fusion = f;
