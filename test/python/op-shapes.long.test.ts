/** The programs of braid_torch's ops at shapes of chance: what Python's ranks get is what plain Python computes. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import process from "node:process";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { emulationObstacle } from "../backends/cuda/emulate/compiler.ts";
import { buildFakes, type Fakes } from "../backends/cuda/fake/build-fakes.ts";
import { cli } from "../cli/captured-cli.ts";
import { pythonRanks } from "./python-ranks.ts";

const obstacle = process.platform === "linux" ? emulationObstacle() : "fake GPUs are shared objects for Linux";
if (obstacle !== null) console.log(`test/python/op-shapes is skipped: ${obstacle}`);

const scratch = mkdtempSync(path.join(tmpdir(), "braid-tests-"));
let fakes: Fakes;
beforeAll(() => {
  if (obstacle === null) fakes = buildFakes(3);
}, 60_000);
afterAll(() => {
  rmSync(scratch, { recursive: true });
  if (obstacle === null) rmSync(fakes.folder, { recursive: true });
});

/** As python/src/braid_torch/compiled.py has them. */
const flags = {
  "all-gather-matmul": ["--schedule", "protocol=put"],
  "matmul-reduce-scatter": ["--schedule", "insertReshardingAfter"],
  "matmul-all-reduce": ["--schedule", "insertReshardingAfter"],
  "all-gather-scaled-matmul": ["--schedule", "protocol=put"],
  "scaled-matmul-reduce-scatter": ["--schedule", "insertReshardingAfter"],
} as const;

const extent = fc.integer({ min: 1, max: 9 });
const shape = fc.record({
  devices: fc.constantFrom(2, 3),
  /** Of A on one device, by the devices. */
  rows: extent,
  inner: fc.integer({ min: 1, max: 40 }),
  columns: fc.array(extent, { minLength: 2, maxLength: 3 }),
  byRows: fc.constantFrom("0", "1"),
});
const programs = [
  { program: "all-gather-matmul", last: false },
  { program: "matmul-reduce-scatter", last: false },
  { program: "matmul-all-reduce", last: false },
  { program: "all-gather-matmul", last: true },
  { program: "matmul-reduce-scatter", last: true },
  { program: "all-gather-scaled-matmul", last: false },
  { program: "scaled-matmul-reduce-scatter", last: false },
] as const;
/** With scales of tensors first, then of rows. */
const scales = (program: string, run: number): object => (program.includes("scaled") ? { byRows: `${run}` } : {});
const cases = programs.flatMap((program, i) =>
  fc.sample(shape, { numRuns: 2, seed: 20 + i }).map((s, j) => ({ ...program, ...s, ...scales(program.program, j) })),
);

describe.skipIf(obstacle !== null)("braid_torch's programs on fake GPUs", () => {
  const name = "$program, last $last: $devices ranks, $rows, $inner, $columns, by rows $byRows";
  it.each(cases)(name, async (each) => {
    const { program, last, devices } = each;
    const gathers = program.startsWith("all-gather");
    // With scales, K is a multiple of 16, weights are [N, K], and either rows or tensors have scales.
    const isScaled = program.includes("scaled");
    const rowwise = isScaled ? each.byRows : "";
    const [inner, byRows] = isScaled ? [16 * Math.ceil(each.inner / 16), "0"] : [each.inner, each.byRows];
    const scattered = each.columns.slice(0, 1).map((n) => (last ? n * devices : n));
    const columns = gathers ? each.columns : scattered;
    const rows = each.rows * devices;
    const widths = gathers ? columns.map((n, i) => `N${i}=${n}`) : [`N=${columns.join("")}`];
    const whole = gathers
      ? last
        ? { M: rows, K: inner * devices }
        : { M: rows * devices, K: inner }
      : { M: rows, K: inner };
    const chunks = {
      "all-gather-matmul": last ? [`CHUNKS=${devices}`] : [],
      "matmul-reduce-scatter": last ? ["LAST=1"] : [],
      "matmul-all-reduce": ["CHUNKS=1"],
      "all-gather-scaled-matmul": [],
      "scaled-matmul-reduce-scatter": [],
    };
    const layout = isScaled ? { ROWWISE: rowwise, E5M2: 2 } : { ROWS: byRows };
    const own = { ...whole, ...layout, DTYPE: "float" };
    const set = [...Object.entries(own).map(([key, value]) => `${key}=${value}`), ...widths, ...chunks[program]];
    const folder = mkdtempSync(path.join(scratch, "plan-"));
    const source = path.resolve(import.meta.dirname, `../../python/src/braid_torch/programs/${program}.ts`);
    const options = [...flags[program], ...set.flatMap((one) => ["--set", one])];
    const { status, err } = await cli("compile", source, "--devices", `${devices}`, ...options, "-o", folder);
    expect(err).not.toContain("error");
    expect(status).toBe(0);
    const args = [folder, program, `${rows}`, `${inner}`, columns.join(","), byRows, last ? "1" : "0", rowwise];
    for (const rank of await pythonRanks(devices, "op-shape.py", args, fakes.env)) {
      expect(rank.err).toBe("");
      expect(Number(rank.out)).toBeGreaterThan(0);
    }
  });
});
