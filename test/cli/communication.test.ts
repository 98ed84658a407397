/** What moves between devices, and why, wherever a program is compiled for a user. */
import { afterAll, expect, it } from "vitest";
import { cli, cliAt, programFolder } from "./captured-cli.ts";

const folder = programFolder();
afterAll(folder.remove);

const program = (
  annotation: string,
): string => `import { DeviceMesh, Fusion, linear, program } from "@braid-compiler/braid";

export default program({}, () => {
  const f = new Fusion();
  const [x, w] = [f.input([8, 4]), f.input([8, 4])];
  const y = linear(x, w);
  f.output(y);
  for (const tensor of [x, w]) tensor.setDeviceMesh(DeviceMesh.range(2));
  w.outerSplit(0, 2).parallelize("DIDx");
  ${annotation}
  return f;
});
`;

it.each([["lower", "--print", "reshardings"], ["run"]])(
  "%s names the tensor, its bytes and the reason",
  async (...args) => {
    const file = folder.write("gathered.ts", program("y.setDeviceMesh(DeviceMesh.range(2));"));
    const { status, out } = await cli(...args, file, "--devices", "2");
    expect(status).toBe(0);
    expect(out).toMatch(/^w +Allgather +DIDx +no +64 +y = linear\(x, w\) needs it as y is annotated$/mu);
    expect(out).toMatch(/^hint: w is a weight that every device gathers/mu);
  },
);

it("lower has the hints beside the program, and at a terminal the table", async () => {
  const file = folder.write("gathered.ts", program("y.setDeviceMesh(DeviceMesh.range(2));"));
  const { out, err } = await cli("lower", file, "--devices", "2");
  expect(out).toMatch(/^\s*%HostIrContainer/u);
  expect(err).toMatch(/^hint: w is a weight that every device gathers/mu);
  expect(err).not.toMatch(/Allgather +DIDx/u);
  const watched = await cliAt({ interactive: true }, "lower", file, "--devices", "2");
  expect(watched.out).toBe(out);
  expect(watched.err).toMatch(/^w \(T1\) +Allgather +DIDx +no +64 .*\nhint: w/mu);
  expect((await cli("lower", file, "--devices", "2", "--json")).err).not.toContain("hint:");
  expect((await cli("lower", folder.write("still.ts", program("")), "--devices", "2")).err).toBe("");
});

it("run --json has the same entries as lower", async () => {
  const file = folder.write("gathered.ts", program("y.setDeviceMesh(DeviceMesh.range(2));"));
  const [ran, lowered] = [
    await cli("run", file, "--devices", "2", "--json"),
    await cli("lower", file, "--devices", "2", "--print", "reshardings", "--json"),
  ];
  const expected = JSON.parse(lowered.out) as { readonly reshardings: readonly object[] };
  expect(expected.reshardings).toHaveLength(1);
  expect(JSON.parse(ran.out)).toMatchObject({ reshardings: expected.reshardings });
});

it("run says nothing where nothing moves, nor of a host program", async () => {
  const file = folder.write("still.ts", program(""));
  const { status, out } = await cli("run", file, "--devices", "2");
  expect(status).toBe(0);
  expect(out).not.toMatch(/collective|hint:|moves/u);
  const built = await cli("run", "examples/hand-built.ts", "--devices", "2");
  expect(built.status).toBe(0);
  expect(built.out).not.toMatch(/collective|hint:/u);
});
