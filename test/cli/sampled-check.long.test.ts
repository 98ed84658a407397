/** `--check` of large outputs on the command line. */
import { afterAll, describe, expect, it } from "vitest";
import { cli, programFolder } from "./captured-cli.ts";

describe("braid run --check", () => {
  const folder = programFolder();
  afterAll(folder.remove);
  const file = folder.write(
    "large.ts",
    `import { DeviceMesh, Fusion, neg, program } from "@braid-compiler/braid";
     export default program({}, ({ devices }) => {
       const f = new Fusion();
       const x = f.input([2048, 256], "float");
       x.setDeviceMesh(DeviceMesh.range(devices));
       x.outerSplit(0, devices).parallelize("DIDx");
       f.output(neg(x));
       return f;
     });`,
  );

  it("says how many rows were compared, and how to compare all", async () => {
    const { status, out, err } = await cli("run", "--check", file, "--devices", "2", "--seed", "4");
    expect([status, err]).toEqual([0, ""]);
    expect(out).toContain("passed\nT1: 512 of 2048 rows were compared, chosen by seed 4; --check=full compares all\n");
    const json = await cli("run", file, "--devices", "2", "--check", "--json");
    expect(JSON.parse(json.out)).toMatchObject({
      outputs: [{ check: { ok: true, rows: { compared: 512, of: 2048 } } }],
    });
  });

  it("compares all rows with --check=full", async () => {
    const { status, out } = await cli("run", file, "--devices", "2", "--check=full");
    expect([status, out.includes("passed"), out.includes("rows")]).toEqual([0, true, false]);
  });

  it("refuses another value", async () => {
    const { status, err } = await cli("run", file, "--check=some");
    expect(status).toBe(2);
    expect(err).toContain("error[option-value]: option --check has a bad value");
    expect(err).toContain("one of rows, full");
  });
});
