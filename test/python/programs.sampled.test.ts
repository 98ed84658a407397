/** The programs that braid_torch compiles for its ops: right on the CPU, and as plans of copies between devices. */
import path from "node:path";
import { describe, expect, it } from "vitest";
import { cli } from "../cli/captured-cli.ts";
import { everyNth } from "../support/suite.ts";

const folder = path.resolve(import.meta.dirname, "../../python/src/braid_torch/programs");
const scattered = ["--schedule", "insertReshardingAfter"];
const sizes = ["M=16", "K=8", "DTYPE=float"];

const cases: readonly (readonly [program: string, settings: readonly string[], flags: readonly string[]])[] = [
  ["all-gather-matmul", ["N0=6"], ["--schedule", "protocol=put"]],
  ["all-gather-matmul", ["N0=6", "ROWS=1", "RETURN_A=1"], ["--schedule", "protocol=put"]],
  ["all-gather-matmul", ["N0=6", "N1=4", "N2=2"], ["--schedule", "protocol=put"]],
  ["all-gather-matmul", ["N0=6", "CHUNKS=4"], ["--schedule", "protocol=put"]],
  ["all-gather-matmul", ["N0=6", "N1=5", "CHUNKS=2", "ROWS=1", "RETURN_A=1"], ["--schedule", "protocol=put"]],
  ["matmul-reduce-scatter", ["N=6"], scattered],
  ["matmul-reduce-scatter", ["N=6", "ROWS=1"], scattered],
  ["matmul-reduce-scatter", ["N=8", "LAST=1"], scattered],
  ["matmul-reduce-scatter", ["N=12", "LAST=1", "ROWS=1"], scattered],
  ["matmul-all-reduce", ["N=6", "CHUNKS=2"], scattered],
  ["matmul-all-reduce", ["N=6", "CHUNKS=1", "ROWS=1"], scattered],
];

describe.each([2, 4])("on %d devices", (devices) => {
  it.each(everyNth(cases, 2 * devices))(
    "%s %j is verified, and gives the oracle's result",
    async (program, settings, flags) => {
      const set = [...sizes, ...settings].flatMap((each) => ["--set", each]);
      const file = path.join(folder, `${program}.ts`);
      const options = ["--devices", String(devices), "--backend", "cuda", ...set, ...flags];
      const { status, out, err } = await cli("run", file, "--check", "--blas", "off", ...options);
      expect(err).not.toContain("error");
      expect(status).toBe(0);
      expect(out).toMatch(/ passed$/m);
    },
  );
});
