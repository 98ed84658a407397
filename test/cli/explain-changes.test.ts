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

it("what is advised is no conflict that a warning would undo: both are decided by predicted times", async () => {
  const text = (edit: string): string => `import {
  crossEntropy, DeviceMesh, Fusion, gradients, linear, program
} from "@braid-compiler/braid";
export default program({ T: 8192 }, ({ devices, params: { T } }) => {
  const f = new Fusion();
  const x = f.input([T, 4096], "bfloat16"), head = f.input([32000, 4096], "bfloat16");
  const target = f.input([T], "int64");
  const logits = linear(x, head);
  const loss = crossEntropy(logits, target);
  f.output(loss);
  for (const tensor of f.inputs) tensor.setDeviceMesh(DeviceMesh.range(devices));
  for (const rows of [x, head]) rows.outerSplit(0, devices).parallelize("DIDx");
  ${edit}
  for (const gradient of gradients(f, { of: [loss], wrt: [x, head] })) if (gradient) f.output(gradient);
  return f;
});
`;
  const flags = ["--devices", "2", "--on", "cuda", "--profile", "2xH100"];
  const advised = await cli("explain", folder.write("logits.ts", text("")), ...flags);
  const edit = 'logits.setDeviceMesh(x.mesh!); logits.outerSplit(0, 2).parallelize("DIDx")';
  const [, time = ""] = /^ {2}[\d.]+ % faster, ([\d.]+ ms) +logits\.setDeviceMesh.*$/mu.exec(advised.out) ?? [];
  expect(advised.out).toContain(`${time}   ${edit}\n`);
  const typed = folder.write("logits.ts", text(`${edit};`));
  const edited = await cli("explain", typed, ...flags);
  expect(edited.out).toContain(`logits.ts: ${time} (`);
  expect(edited.err).toMatch(
    /^warning\[annotations-conflict\]: head and logits are cut along different axes of the op/u,
  );
  expect(edited.err).not.toContain("leave out the mesh of logits");
  // Without a machine, bytes decide.
  expect((await cli("lower", typed, "--devices", "2")).err).toMatch(/leave out the mesh of logits.*bytes move in all/u);
});

it("a warning has the time that is predicted for its fix", async () => {
  const text = (weight: string): string => `import { DeviceMesh, Fusion, linear, program } from "@braid-compiler/braid";
export default program({ M: 8192 }, ({ devices, params: { M } }) => {
  const f = new Fusion();
  const x = f.input([M, 4096], "bfloat16"), w = f.input([4096, 4096], "bfloat16");
  f.output(linear(x, w));
  for (const tensor of [x, w]) tensor.setDeviceMesh(DeviceMesh.range(devices));
  x.outerSplit(0, devices).parallelize("DIDx");
  ${weight}
  return f;
});
`;
  const flags = ["--devices", "4", "--on", "cuda", "--profile", "4xH200"];
  const cut = await cli(
    "explain",
    folder.write("w.ts", text('w.outerSplit(0, devices).parallelize("DIDx");')),
    ...flags,
  );
  const [, time = ""] = /annotate w whole on .* \(([\d.]+ us) predicted, now [\d.]+ us\)/u.exec(cut.err) ?? [];
  const whole = await cli("explain", folder.write("w.ts", text("")), ...flags);
  expect(whole.out).toContain(`w.ts: ${time} (`);
});
