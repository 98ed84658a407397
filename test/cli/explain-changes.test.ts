/** Every edit that `explain` advises is typed, and gives the time that was predicted for it. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { cli, type ProgramFolder, programFolder } from "./captured-cli.ts";

let folder: ProgramFolder;
beforeAll(() => {
  folder = programFolder();
});
afterAll(() => {
  folder.remove();
});

interface Explained {
  readonly milliseconds: number;
  readonly alternatives: readonly {
    readonly change: string;
    readonly options?: object;
    readonly milliseconds: number | null;
  }[];
}

async function explained(...asked: readonly string[]): Promise<Explained> {
  const { status, out, err } = await cli(
    "explain",
    ...asked,
    "--profile",
    "4xH200",
    "--schedule",
    "as-written",
    "--json",
  );
  expect([status, err]).toEqual([0, ""]);
  return JSON.parse(out) as Explained;
}

const source = `import { DeviceMesh, Fusion, linear, program } from "braid";
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
  const { alternatives, milliseconds } = await explained(...asked(source));
  const edits = alternatives.filter(({ options }) => options === undefined);
  expect(edits.map(({ change }) => change)).toContain('hidden.outerSplit(0, 4).parallelize("Stream")');
  for (const { change, milliseconds: predicted } of edits) {
    const edited = await explained(...asked(source.replace("// edit", `${change};`)));
    expect(edited.milliseconds).toBeCloseTo(predicted ?? 0, 9);
    expect(edited.milliseconds).toBeLessThan(milliseconds);
  }
  const { out } = await cli("explain", ...asked(source), "--profile", "4xH200", "--schedule", "as-written");
  expect(out).toMatch(
    /^not in a loop: .*, beside hidden = linear\(.*, w\) \(.*edited\.ts:5:\d+\): hidden has no Stream axis$/m,
  );
  expect(out).toMatch(/^ {2}[\d.]+ % faster, [\d.]+ \w+ +hidden\.outerSplit\(0, 4\)\.parallelize\("Stream"\)$/m);
});
