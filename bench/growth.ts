/**
 * How time and memory of each stage grow with ops, layers and ranks: `npx jiti bench/growth.ts [SECONDS]`. Each point is
 * a process that ends after SECONDS (30 by default). Stages that it has not reached by then are left out, there and at
 * larger sizes of the axis. Prints a table with the fitted exponents and draws bench/results/growth.svg.
 */
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync, writeSync } from "node:fs";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { link } from "../src/commands/link/link.ts";
import { lowerRanks } from "../src/compile/lower.ts";
import { recordAll } from "../src/compile/record.ts";
import { DeviceMesh } from "../src/ir/device-mesh.ts";
import { add, Fusion, matmul, neg, set, type TensorView } from "../src/index.ts";
import { applySchedule } from "../src/schedule/schedule.ts";
import { parseProfile } from "../src/simulate/parse-profile.ts";
import { simulate } from "../src/simulate/simulate.ts";
import { verify } from "../src/verify/verify.ts";
import { type Curve, plotGrowth, type Point, type Stage, stages } from "./growth-plot.ts";

const axes = {
  ops: [10, 100, 1000, 10_000, 100_000],
  layers: [1, 2, 4, 8, 16, 32, 64, 128],
  ranks: [8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096],
} as const;
type Axis = keyof typeof axes;
const axisNames = ["ops", "layers", "ranks"] as const;

function on(tensor: TensorView, mesh: DeviceMesh, axis: number | null, type: "DIDx" | "Stream" = "DIDx"): TensorView {
  tensor.setDeviceMesh(mesh);
  if (axis !== null) tensor.axis(axis).parallelize(type);
  return tensor;
}

/** A chain that mixes units, loops and reshardings, on two ranks. */
function chain(ops: number): Fusion {
  const f = new Fusion();
  const mesh = DeviceMesh.range(2);
  const input = on(f.input([4, 2, 4], "float"), mesh, null);
  let last = input;
  for (let i = 0; i < ops; i++) {
    const fused = i % 7 === 3;
    last = on(fused ? neg(last) : i % 5 === 0 ? set(last) : add(last, input), mesh, null);
    if (!fused && i % 11 < 8) last.axis(0).parallelize("Stream");
    if (i % 13 === 0) last.axis(1).parallelize("DIDx");
  }
  f.output(last);
  return f;
}

/** Per layer: rows gathered in a loop over the devices and multiplied; the result is sharded again. */
function gathers(layers: number, devices: number): Fusion {
  const f = new Fusion();
  const mesh = DeviceMesh.range(devices);
  let x = on(f.input([devices, 4, 8], "float"), mesh, 0);
  for (let layer = 0; layer < layers; layer++) {
    const weight = on(f.input([8, 8], "float"), mesh, null);
    x = on(set(on(matmul(x, weight), mesh, 0, "Stream")), mesh, 0);
  }
  f.output(x);
  return f;
}

function problem(axis: Axis, size: number): { readonly fusion: Fusion; readonly devices: number } {
  if (axis === "ops") return { fusion: chain(size), devices: 2 };
  if (axis === "layers") return { fusion: gathers(size, 8), devices: 8 };
  return { fusion: gathers(1, size), devices: size };
}

/** Prints the seconds of each stage, and the megabytes so far, when it ends. */
function measure(axis: Axis, size: number, leaveOut: readonly string[]): void {
  const { fusion, devices } = problem(axis, size);
  const timed = <T>(stage: Stage, run: () => T): T => {
    const before = process.cpuUsage();
    const result = run();
    const { user, system } = process.cpuUsage(before);
    writeSync(1, `${stage} ${(user + system) / 1e6} ${process.resourceUsage().maxRSS / 1024}\n`);
    return result;
  };
  const { hosts } = timed("lower", () => lowerRanks(fusion, devices, { backend: "cuda" }));
  const lists = timed("record", () => recordAll(hosts, { devices, streams: 8 }));
  const program = timed("link", () => link(lists));
  const file = new URL("../profiles/4xH200.json", import.meta.url);
  const profile = parseProfile(readFileSync(file, "utf8"), file.pathname);
  const rest: Readonly<Record<Exclude<Stage, "lower" | "record" | "link">, () => unknown>> = {
    verify: () => verify(program, { notes: false }),
    simulate: () => simulate(program, profile, { graph: true }),
    rewrite: () => applySchedule(program, { inPlace: true, computeStreams: 1 }),
  };
  for (const stage of ["verify", "simulate", "rewrite"] as const) {
    if (!leaveOut.includes(stage)) timed(stage, rest[stage]);
  }
}

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

/** Not by npx, whose child would outlive it. */
const jiti = fileURLToPath(new URL("../node_modules/jiti/lib/jiti-cli.mjs", import.meta.url));

/** The points in order of size, up to the first without linked lists. Stages that were left out are NaN. */
function pointsOf(axis: Axis, seconds: number): readonly Point[] {
  const points: Point[] = [];
  let leaveOut: readonly Stage[] = [];
  for (const size of axes[axis]) {
    const args = [jiti, fileURLToPath(import.meta.url), "--point", axis, String(size), ...leaveOut];
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

function main(seconds: number): void {
  const curves = axisNames.map((axis): Curve => ({ axis, sizes: axes[axis], points: pointsOf(axis, seconds) }));
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
  writeFileSync(new URL("results/growth.svg", import.meta.url), plotGrowth(curves));
}

const [first, axis, size, ...leaveOut] = process.argv.slice(2);
if (first === "--point") {
  const found = axisNames.find((each) => each === axis);
  if (found === undefined) throw new Error(`no axis ${axis}`);
  measure(found, Number(size), leaveOut);
} else main(Number(first ?? 30));
