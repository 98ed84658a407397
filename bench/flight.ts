/**
 * The cost of the flight recorder: `npx jiti bench/flight.ts BASELINE`, where BASELINE is another checkout, built,
 * without it. CPU time of many runs in a row on one worker, in processes that take turns, so that other load on the
 * machine affects both equally.
 */
import { spawnSync } from "node:child_process";
import path from "node:path";
import process from "node:process";
import { pathToFileURL } from "node:url";
import { median } from "./harness/figures.ts";

const root = path.dirname(import.meta.dirname);
const pairs = 9;

/** Ring allgather + matmul on 8 ranks: rows of A, k and n. */
const sizes = { "8 x 1 x 1, waits and tiny kernels": [8, 1, 1], "512 x 64 x 64": [512, 64, 64] } as const;

/** Prints the CPU microseconds of a run, the least of 5 calls. */
function meter(folder: string, [m, k, n]: readonly [number, number, number], runs: number): string {
  const file = (name: string): string => JSON.stringify(pathToFileURL(path.join(folder, name)).href);
  return `
    (async () => {
    const { compile, DeviceMesh, Fusion, matmul } = await import(${file("dist/index.js")});
    const { createCpuBackend } = await import(${file("dist/cpu.js")});
    const f = new Fusion();
    const a = f.input([8, ${m} / 8, ${k}], "float");
    const b = f.input([${k}, ${n}], "float");
    const c = matmul(a, b);
    f.output(c);
    for (const tensor of [a, b, c]) tensor.setDeviceMesh(DeviceMesh.range(8));
    a.axis(0).parallelize("DIDx");
    c.axis(0).parallelize("Stream");
    const { program } = compile(f, { devices: 8, backend: "cuda" });
    const group = await createCpuBackend({ workers: 1 }).open({ world: 8, localRanks: [...Array(8).keys()] });
    const prepared = await group.prepare(program);
    await prepared.execute({ runs: ${runs} });
    let least = Infinity;
    for (let call = 0; call < 5; call++) {
      const before = process.cpuUsage();
      await prepared.execute({ runs: ${runs} });
      const { user, system } = process.cpuUsage(before);
      least = Math.min(least, (user + system) / ${runs});
    }
    console.log(least);
    await group.close();
    })();
  `;
}

function measure(folder: string, size: readonly [number, number, number]): number {
  const runs = size[1] === 1 ? 500 : 150;
  const script = meter(folder, size, runs);
  const { status, stdout } = spawnSync(process.execPath, ["--eval", script], {
    stdio: ["ignore", "pipe", "inherit"],
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`${folder} ended with status ${status}`);
  return Number(stdout);
}

const [baseline] = process.argv.slice(2);
if (baseline === undefined) throw new Error("name a checkout without the flight recorder");
console.table(
  Object.entries(sizes).map(([name, size]) => {
    // The first of a pair alternates.
    const both = Array.from({ length: pairs }, (_, pair) => {
      const folders = pair % 2 === 0 ? [baseline, root] : [root, baseline];
      const times = folders.map((folder) => [folder, measure(path.resolve(folder), size)] as const);
      return new Map(times);
    });
    const of = (folder: string): number => median(both.map((times) => times.get(folder) ?? 0));
    const ratio = median(both.map((times) => (times.get(root) ?? 0) / (times.get(baseline) ?? 1)));
    return { run: name, "us without": of(baseline), "us with": of(root), ratio: ratio.toFixed(4) };
  }),
);
