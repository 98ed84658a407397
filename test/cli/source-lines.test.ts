/** Errors name lines of the TypeScript file that the user wrote, not of what the loader makes of it. */
import { afterAll, expect, it } from "vitest";
import { cli, programFolder } from "./captured-cli.ts";

const folder = programFolder();
afterAll(folder.remove);

const text = `
import { DeviceMesh, Fusion, program, slice } from "@braid-compiler/braid";

interface Options {
  readonly rows: number;
  readonly columns: number;
}

type Sizes = Readonly<Record<keyof Options, number>>;

export default program({ rows: 6 }, ({ params }) => {
  const sizes: Sizes = { ...params, columns: 4 };
  const f = new Fusion();
  const x = f.input([sizes.rows, sizes.columns]).setDeviceMesh(DeviceMesh.range(2));
  const y = slice(x, [1, 0], [5, 4]).named("middle");
  f.output(y);
  y.setDeviceMesh(DeviceMesh.range(2));
  (y as typeof x).axis(0).parallelize("Stream");
  return f;
});
`;

it("of the call that made a tensor, and of those that placed it", async () => {
  const file = folder.write("lines.ts", text);
  const { status, err } = await cli("lower", file, "--devices", "2");
  expect(status).toBe(2);
  expect(err).toContain("error[stream-on-cut-axis]");
  expect(err).toMatch(
    /T1 is middle, from \S*lines\.ts:15:\d+; setDeviceMesh at \S*lines\.ts:17:\d+; axis\(0\)\.parallelize\("Stream"\) at \S*lines\.ts:18:\d+/u,
  );
});

it("of the tensors that a refused call mentions", async () => {
  const refused = text
    .replace("program, slice", "gradients, program, round, slice, sum")
    .replace("  f.output(y);", "  const wrong = round(x);\n  gradients(f, { of: [sum(wrong, [0, 1])], wrt: [x] });");
  const { err } = await cli("lower", folder.write("refused.ts", refused), "--devices", "2");
  expect(err).toContain("error[not-differentiable]");
  // The line has 25 columns.
  expect(err).toMatch(/where: \S*refused\.ts:17:12\n {2}where: T2 is from \S*refused\.ts:16:[12]\d\n/u);
});
