/** Every edit that `explain` advises is typed, and gives the time that was predicted for it. */
import { expect, it } from "vitest";
import { cli } from "./captured-cli.ts";
import { explained } from "./explained.ts";
import { ownFolder } from "./own-folder.ts";

/** Annotations to be edited may be warned of. */
const annotationsConflict = /^warning\[annotations-conflict\][^]*$/u;

const folder = ownFolder();

const source = `import { DeviceMesh, Fusion, linear, program } from "@braid-compiler/braid";
export default program({ M: 8192 }, ({ devices, params: { M } }) => {
  const f = new Fusion();
  const [xin, w] = [f.input([M, 8192], "bfloat16"), f.input([8192, 8192], "bfloat16")];
  const hidden = linear(xin, w);
  f.output(hidden);
  for (const tensor of [xin, w, hidden]) tensor.setDeviceMesh(DeviceMesh.range(devices));
  xin.outerSplit(0, devices).parallelize("DIDx");
  // edit
  return f;
});
`;

it("the edits of a program, by the user's names", async () => {
  const asked = (text: string): readonly string[] => [folder.write("edited.ts", text), "--devices", "4"];
  const { alternatives, milliseconds } = await explained(asked(source), annotationsConflict);
  const edits = alternatives.filter(({ options }) => options === undefined);
  expect(edits.map(({ change }) => change)).toContain('hidden.outerSplit(0, 4).parallelize("Stream")');
  for (const { change, milliseconds: predicted } of edits) {
    const edited = await explained(asked(source.replace("// edit", `${change};`)), annotationsConflict);
    expect(edited.milliseconds).toBeCloseTo(predicted ?? 0, 9);
    expect(edited.milliseconds).toBeLessThan(milliseconds);
  }
  const { out } = await cli("explain", ...asked(source), "--profile", "4xH200", "--schedule", "as-written");
  expect(out).toMatch(
    /^not in a loop: .*, beside hidden = linear\(.*, w\) \(.*edited\.ts:5:\d+\): hidden has no Stream axis$/m,
  );
  expect(out).toMatch(/^ {2}[\d.]+ % faster, [\d.]+ \w+ +hidden\.outerSplit\(0, 4\)\.parallelize\("Stream"\)$/m);
});

/** Its edits are typed in place of `// edit`, and the time is that of the fastest. */
async function typedEdit(text: string, devices: string): Promise<{ readonly change: string; readonly gain: number }> {
  const asked = (edit: string): readonly string[] => [
    folder.write("placed.ts", text.replace("// edit", edit)),
    "--devices",
    devices,
  ];
  const { alternatives, milliseconds } = await explained(asked(""), annotationsConflict);
  const [fastest] = alternatives.filter(({ options }) => options === undefined);
  const change = fastest?.change ?? "";
  const edited = await explained(asked(`${change};`), annotationsConflict);
  expect(edited.milliseconds).toBeCloseTo(fastest?.milliseconds ?? 0, 9);
  return { change, gain: milliseconds / edited.milliseconds };
}

it("a causal attention over a cut sequence is cut by heads", async () => {
  const { change, gain } = await typedEdit(
    `import { DeviceMesh, Fusion, program, sdpa } from "@braid-compiler/braid";
export default program({ L: 4096 }, ({ devices, params: { L } }) => {
  const f = new Fusion();
  const [q, k, v] = [
    f.input([1, 8, L, 128], "bfloat16"),
    f.input([1, 8, L, 128], "bfloat16"),
    f.input([1, 8, L, 128], "bfloat16"),
  ];
  const { output } = sdpa(q, k, v, { causal: "topLeft" });
  f.output(output);
  for (const tensor of [q, k, v]) {
    tensor.setDeviceMesh(DeviceMesh.range(devices));
    tensor.outerSplit(2, devices).parallelize("DIDx");
  }
  // edit
  return f;
});
`,
    "4",
  );
  expect(change).toBe('output.setDeviceMesh(q.mesh!); output.outerSplit(1, 4).parallelize("DIDx")');
  expect(gain).toBeGreaterThan(2);
});

it("what moves between the stages of a pipeline gets the mesh of the next, and chunks", async () => {
  const { change, gain } = await typedEdit(
    `import { DeviceMesh, Fusion, linear, program, set } from "@braid-compiler/braid";
export default program({ M: 8192 }, ({ params: { M } }) => {
  const f = new Fusion();
  const x = f.input([M, 4096], "bfloat16"), w0 = f.input([8192, 4096], "bfloat16");
  const w1 = f.input([4096, 8192], "bfloat16");
  const hidden = linear(x, w0);
  const moved =
    set(hidden);
  const y = linear(moved, w1);
  f.output(y);
  for (const tensor of [x, w0]) tensor.setDeviceMesh(new DeviceMesh([0, 1]));
  w1.setDeviceMesh(new DeviceMesh([2, 3]));
  w0.outerSplit(0, 2).parallelize("DIDx");
  w1.outerSplit(1, 2).parallelize("DIDx");
  y.outerSplit(0, 4).parallelize("Stream");
  // edit
  return f;
});
`,
    "4",
  );
  expect(change).toMatch(
    /^moved\.setDeviceMesh\(w1\.mesh!\); moved\.outerSplit\(1, 2\)\.parallelize\("DIDx"\); moved\.outerSplit\(0, 4\)\.parallelize\("Stream"\)$/u,
  );
  expect(gain).toBeGreaterThan(1.1);
});
