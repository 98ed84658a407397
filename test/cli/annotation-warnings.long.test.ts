/** Commands that compile warn of annotations that contradict each other, beside their output. */
import { afterAll, expect, it } from "vitest";
import { cli, programFolder } from "./captured-cli.ts";

const folder = programFolder();
afterAll(folder.remove);

const text = `import { add, DeviceMesh, Fusion, program } from "braid";

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
