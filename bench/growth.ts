/**
 * How time and memory of each stage grow with ops, layers, ranks and hosts: `npx jiti bench/growth.ts [SECONDS [AXIS]]`.
 * Each point is a process that ends after SECONDS (30 by default). Stages that it has not reached by then are left out,
 * there and at larger sizes of the axis. Prints a table with the fitted exponents, and without AXIS draws
 * bench/results/growth.svg.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { build } from "rolldown";
import { type Curve, plotGrowth, type Point, type Stage, stages } from "./growth-plot.ts";

const axes = {
  ops: [10, 100, 1000, 10_000, 100_000],
  layers: [1, 2, 4, 8, 16, 32, 64, 128],
  ranks: [8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096],
  hosts: [1, 2, 4, 8, 16, 32, 64, 128, 256, 512],
  uneven: [8, 16, 32, 64, 128, 256, 512, 1024],
} as const;
type Axis = keyof typeof axes;
const axisNames = ["ops", "layers", "ranks", "hosts", "uneven"] as const;

/** The slope of the logarithms over the larger half of the measured sizes, where fixed costs count little. */
function exponent(sizes: readonly number[], values: readonly number[]): number {
  const points = values.flatMap((value, i) =>
    Number.isNaN(value) ? [] : [[Math.log(sizes[i] ?? 1), Math.log(Math.max(value, 1e-6))] as const],
  );
  const last = points.slice(Math.min(Math.max(0, points.length - 2), Math.floor(points.length / 2)));
  const mean = (of: 0 | 1): number => last.reduce((sum, point) => sum + point[of], 0) / last.length;
  const [x, y] = [mean(0), mean(1)];
  const above = last.reduce((sum, point) => sum + (point[0] - x) * (point[1] - y), 0);
  return above / last.reduce((sum, point) => sum + (point[0] - x) ** 2, 0);
}

/** The points in order of size, up to the first without linked lists. Stages that were left out are NaN. */
function pointsOf(axis: Axis, seconds: number, bundled: string): readonly Point[] {
  const points: Point[] = [];
  let leaveOut: readonly Stage[] = [];
  for (const size of axes[axis]) {
    const args = [bundled, axis, String(size), ...leaveOut];
    const { stdout, stderr, status, error } = spawnSync(process.execPath, args, {
      encoding: "utf8",
      timeout: 1000 * seconds,
    });
    const isLate = error !== undefined && "code" in error && error.code === "ETIMEDOUT";
    if (status !== 0 && !isLate) throw new Error(`${size} ${axis}: ${stderr}`);
    const found = new Map(
      stdout
        .trim()
        .split("\n")
        .map((line) => [line.split(" ")[0], line.split(" ").map(Number)]),
    );
    const secondsOf = (stage: Stage): number => found.get(stage)?.[1] ?? NaN;
    const [low, rec, linked] = [secondsOf("lower"), secondsOf("record"), secondsOf("link")];
    if (Number.isNaN(linked)) break;
    const times = { rewrite: secondsOf("rewrite"), verify: secondsOf("verify"), simulate: secondsOf("simulate") };
    // The process may have taken more before it was ended.
    const megabytes = isLate ? NaN : Math.max(...[...found.values()].map((values) => values[2] ?? 0));
    points.push({ lower: low, record: rec, link: linked, ...times, megabytes });
    leaveOut = stages.filter((stage) => !found.has(stage));
  }
  return points;
}

async function main(seconds: number, only: string | undefined): Promise<void> {
  // As users run it: jiti's modules read each other's names by getters, which takes a fifth of the time.
  const folder = mkdtempSync(path.join(tmpdir(), "growth-"));
  const bundled = path.join(folder, "growth.mjs");
  await build({
    input: fileURLToPath(new URL("growth-point.ts", import.meta.url)),
    platform: "node",
    logLevel: "warn",
    output: { file: bundled, codeSplitting: false },
  });
  const asked = axisNames.filter((axis) => only === undefined || axis === only);
  const curves = asked.map((axis): Curve => ({
    axis,
    sizes: axes[axis],
    points: pointsOf(axis, seconds, bundled),
  }));
  rmSync(folder, { recursive: true });
  for (const { axis, sizes, points } of curves) {
    const columns = [...stages, "megabytes"] as const;
    const rows = points.map((point, i) => [
      String(sizes[i]),
      ...stages.map((stage) => (Number.isNaN(point[stage]) ? "" : point[stage].toPrecision(2))),
      Number.isNaN(point.megabytes) ? "" : point.megabytes.toFixed(0),
    ]);
    const measured = sizes.slice(0, points.length);
    const fitted =
      points.length < 2
        ? []
        : [
            [
              "exponent",
              ...columns.map((of) =>
                exponent(
                  measured,
                  points.map((point) => point[of]),
                ).toFixed(2),
              ),
            ],
          ];
    console.log(`\n| ${[axis, ...stages.map((stage) => `${stage}, s`), "MB"].join(" | ")} |`);
    console.log(`| ${Array.from({ length: stages.length + 2 }, () => "---").join(" | ")} |`);
    for (const row of [...rows, ...fitted]) console.log(`| ${row.join(" | ")} |`);
    const left = sizes.slice(points.length);
    const sentence = left.length === 0 ? "" : `, and all of ${left.join(", ")} ${axis}`;
    console.log(`\nLeft out, because the process took more than ${seconds} s: empty cells${sentence}.`);
  }
  if (only === undefined) writeFileSync("bench/results/growth.svg", plotGrowth(curves));
}

await main(Number(process.argv[2] ?? 30), process.argv[3]);
