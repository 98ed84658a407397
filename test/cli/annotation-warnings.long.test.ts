/** Commands that compile warn of annotations that contradict each other, beside their output. */
import { afterAll, expect, it } from "vitest";
import { cli, programFolder } from "./captured-cli.ts";

const folder = programFolder();
afterAll(folder.remove);

const text = `import { add, DeviceMesh, Fusion, program } from "@braid-compiler/braid";

export default program({}, () => {
  const f = new Fusion();
  const [a, b] = [f.input([8, 4]), f.input([8, 4])];
  for (const tensor of [a, b]) tensor.setDeviceMesh(DeviceMesh.range(2));
  a.outerSplit(0, 2).parallelize("DIDx");
  b.outerSplit(1, 2).parallelize("DIDx");
  f.output(add(a, b));
  return f;
});
`;

it.each(["lower", "run", "verify"])(
  "%s warns once, with the lines and bytes, and its output stays",
  async (command) => {
    const file = folder.write("conflict.ts", text);
    const { status, out, err } = await cli(command, file, "--devices", "2", "--json");
    expect(status).toBe(0);
    expect(JSON.parse(out)).toMatchObject({ file });
    expect(err.match(/annotations-conflict/gu)).toHaveLength(1);
    expect(err).toMatch(/^warning\[annotations-conflict\]: [ab] and [ab] are annotated differently, so [ab] moves/u);
    expect(err).toMatch(/conflict\.ts:7:\d+/u);
    expect(err).toMatch(/conflict\.ts:8:\d+/u);
    expect(err).toMatch(/\d+ bytes to a device/u);
  },
);

it.each(["run", "verify", "explain"])("%s warns once where no tensor has a mesh", async (command) => {
  const file = folder.write("unplaced.ts", text.replaceAll(/^ {2}(?:for|[ab]\.).*\n/gmu, ""));
  const profile = command === "explain" ? ["--profile", "2xH200"] : [];
  const two = await cli(command, file, "--devices", "2", ...profile);
  expect(two.status).toBe(0);
  expect(
    two.err.match(/warning\[mesh-missing\]: no tensor has a DeviceMesh, so device 0 computes alone/gu),
  ).toHaveLength(1);
  const one = await cli("verify", file, "--devices", "1");
  expect(one.err).not.toContain("mesh-missing");
});

it("what moves has the program's names of tensors and of mesh dimensions, and the op at the end of its route", async () => {
  const file = folder.write(
    "route.ts",
    `import { DeviceMesh, Fusion, linear, program, relu } from "@braid-compiler/braid";
export default program({}, () => {
  const f = new Fusion();
  const x = f.input([8, 8]), w = f.input([128, 8]), v = f.input([128, 128]);
  const h = relu(linear(x, w)), y = linear(h, v);
  f.output(y);
  for (const tensor of [x, w, h, v]) {
    tensor.setDeviceMesh(DeviceMesh.of({ dp: 1, tp: 2 }));
    tensor.outerSplit(0, 2).parallelize("tp");
  }
  return f;
});
`,
  );
  const { out } = await cli("lower", file, "--devices", "2", "--print", "reshardings");
  const rows = out.split("\n").map((line) => line.trim().split(/ {2,}/u));
  expect(
    rows.slice(1, 4).map(([tensor, collective, along, , , reason]) => [tensor, collective, along, reason]),
  ).toEqual([
    ["x", "Allgather", "tp", expect.stringMatching(/^T\d+ = linear\(x, w\) needs it to follow w$/u)],
    ["h", "AllToAll", "tp", "y = linear(h, v) needs it to follow v"],
    ["copy of h", "Allgather", "tp", "y = linear(h, v) needs it to follow v"],
  ]);
});

it("explain warns of each of many equal layers, of which it compiles few", async () => {
  const file = folder.write(
    "layers.ts",
    `import { add, DeviceMesh, Fusion, linear, program } from "@braid-compiler/braid";
export default program({}, () => {
  const f = new Fusion();
  const mesh = DeviceMesh.range(2);
  let x = f.input([8, 8]);
  x.setDeviceMesh(mesh);
  for (let layer = 0; layer < 16; layer++) {
    const w = f.input([8, 8]), b = f.input([8, 8]);
    const y = linear(x, w);
    for (const tensor of [w, b, y]) tensor.setDeviceMesh(mesh);
    w.outerSplit(0, 2).parallelize("DIDx");
    y.outerSplit(0, 2).parallelize("DIDx");
    b.outerSplit(1, 2).parallelize("DIDx");
    x = add(y, b);
  }
  f.output(x);
  return f;
});
`,
  );
  const { status, out, err } = await cli("explain", file, "--devices", "2", "--profile", "2xH200");
  expect(status).toBe(0);
  expect(out).toMatch(/^layers: 1\d of the equal ones/mu);
  expect(err.match(/annotations-conflict/gu)?.length).toBeGreaterThanOrEqual(16);
});
