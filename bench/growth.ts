/**
 * How time and memory of each stage grow with ops, layers and ranks: `npx jiti bench/growth.ts [MOST]`, where MOST
 * limits the sizes (default 16; 4096 for all of them). Run `npm run build` first. Prints a table with the fitted exponents and writes
 * bench/results/growth.svg. Each point is a process of its own.
 */
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import process from "node:process";
import { fileURLToPath } from "node:url";
import {
  add,
  DeviceMesh,
  Fusion,
  type HostProgram,
  link,
  lower,
  matmul,
  neg,
  parseProfile,
  type Program,
  record,
  set,
  simulate,
  type TensorView,
  verify,
} from "braid";
import { applySchedule } from "../src/schedule/schedule.ts";
import { type Curve, plotGrowth, type Point, type Stage, stages } from "./growth-plot.ts";

const axes = {
  ops: [10, 100, 1000, 10_000, 100_000],
  layers: [1, 2, 4, 8, 16, 32, 64, 128],
  ranks: [8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096],
} as const;
type Axis = keyof typeof axes;

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

function measure(axis: Axis, size: number): Point {
  const { fusion, devices } = problem(axis, size);
  const seconds: Record<Stage, number> = { lower: 0, record: 0, link: 0, rewrite: 0, verify: 0, simulate: 0 };
  const timed = <T>(stage: Stage, run: () => T): T => {
    const before = process.cpuUsage();
    const result = run();
    const { user, system } = process.cpuUsage(before);
    seconds[stage] = (user + system) / 1e6;
    return result;
  };
  const ranks = Array.from({ length: devices }, (_, rank) => rank);
  const hosts = timed("lower", (): readonly HostProgram[] =>
    ranks.map((rank) => lower(fusion, { rank, backend: "cuda" })),
  );
  const lists = timed("record", () => hosts.map((host, rank) => record(host, { rank, streams: 8 })));
  const program: Program = timed("link", () => link(lists));
  timed("rewrite", () => applySchedule(program, { inPlace: true, computeStreams: 1 }));
  timed("verify", () => verify(program, { notes: false }));
  const file = new URL("../profiles/4xH200.json", import.meta.url);
  const profile = parseProfile(readFileSync(file, "utf8"), file.pathname);
  timed("simulate", () => simulate(program, profile, { graph: true }));
  return { ...seconds, megabytes: process.resourceUsage().maxRSS / 1024 };
}

/** The slope of the logarithms over the larger half of the sizes, where fixed costs count little. */
function exponent(sizes: readonly number[], values: readonly number[]): number {
  const points = sizes.map((size, i) => [Math.log(size), Math.log(Math.max(values[i] ?? 0, 1e-6))] as const);
  const last = points.slice(Math.min(points.length - 2, Math.floor(points.length / 2)));
  const mean = (of: 0 | 1): number => last.reduce((sum, point) => sum + point[of], 0) / last.length;
  const [x, y] = [mean(0), mean(1)];
  const above = last.reduce((sum, point) => sum + (point[0] - x) * (point[1] - y), 0);
  return above / last.reduce((sum, point) => sum + (point[0] - x) ** 2, 0);
}

function main(most: number): void {
  const limits: Readonly<Record<Axis, number>> = {
    ops: most >= 4096 ? 100_000 : 100 * most,
    layers: most,
    ranks: most,
  };
  const self = fileURLToPath(import.meta.url);
  const curves = (["ops", "layers", "ranks"] as const).map((axis): Curve => {
    const sizes = axes[axis].filter((size) => size <= limits[axis]);
    const points = sizes.map((size): Point => {
      const output = execFileSync("npx", ["jiti", self, "--point", axis, String(size)], { encoding: "utf8" });
      const [low = 0, rec = 0, linked = 0, rewrite = 0, ver = 0, sim = 0, megabytes = 0] = output
        .split(" ")
        .map(Number);
      return { lower: low, record: rec, link: linked, rewrite, verify: ver, simulate: sim, megabytes };
    });
    return { axis, sizes, points };
  });
  for (const { axis, sizes, points } of curves) {
    const rows = sizes.map((size, i) => {
      const point = points[i];
      const cells = stages.map((stage) => (point?.[stage] ?? 0).toPrecision(2));
      return [String(size), ...cells, (point?.megabytes ?? 0).toFixed(0)];
    });
    const fitted =
      sizes.length < 2
        ? []
        : [...stages, "megabytes" as const].map((of) =>
            exponent(
              sizes,
              points.map((point) => point[of]),
            ).toFixed(2),
          );
    console.log(`\n| ${[axis, ...stages.map((stage) => `${stage}, s`), "MB"].join(" | ")} |`);
    console.log(`| ${Array.from({ length: stages.length + 2 }, () => "---").join(" | ")} |`);
    for (const row of [...rows, ["exponent", ...fitted]]) console.log(`| ${row.join(" | ")} |`);
  }
  writeFileSync(new URL("results/growth.svg", import.meta.url), plotGrowth(curves));
}

const [first, axis, size] = process.argv.slice(2);
if (first === "--point") {
  const found = (["ops", "layers", "ranks"] as const).find((each) => each === axis);
  if (found === undefined) throw new Error(`no axis ${axis}`);
  const point = measure(found, Number(size));
  console.log([...stages.map((stage) => point[stage]), point.megabytes].join(" "));
} else main(Number(first ?? 16));
