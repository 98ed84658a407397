/** Times reading dumps: many of nvFuser's in one text, and the dump of a lowered Fusion of a thousand ops. */
import { readdirSync, readFileSync } from "node:fs";
import { DeviceMesh, Fusion, lower, parse, parseContainers, print, relu, set, type TensorView } from "braid";
import { Bench } from "tinybench";

const folder = new URL("../test/fixtures/dumps/", import.meta.url);

/** The dumps of nvFuser's pull requests, repeated up to about a megabyte. */
function manyDumps(): string {
  const texts = readdirSync(folder)
    .filter((name) => name.endsWith(".hir"))
    .map((name) => readFileSync(new URL(name, folder), "utf8"));
  const all = `${texts.join("\n")}\n`;
  return all.repeat(Math.ceil(1e6 / all.length));
}

/** One container: 500 statements, and 500 host units that are posted between them. */
function longProgram(): string {
  const f = new Fusion();
  const mesh = DeviceMesh.range(8);
  let x: TensorView = f.input([8, 64]);
  x.setDeviceMesh(mesh);
  for (let i = 0; i < 1000; i++) {
    x = i % 2 === 0 ? relu(x) : set(x);
    x.setDeviceMesh(mesh);
  }
  f.output(x);
  return print(lower(f, { rank: 0 }));
}

export function megabytesPerSecond(bench: Bench, task: string): number | undefined {
  const bytes = sizes.get(task);
  const result = bench.tasks.find(({ name }) => name === task)?.result;
  if (bytes === undefined || result?.state !== "completed") return undefined;
  return bytes / 1e3 / result.latency.p50;
}

const sizes = new Map<string, number>();

export async function benchParse(): Promise<Bench> {
  const bench = new Bench({ name: "parse", time: 1500, warmupTime: 500 });
  const texts = { "nvFuser's dumps": manyDumps(), "one long container": longProgram() };
  for (const [name, text] of Object.entries(texts)) {
    const containers = parseContainers(text).length;
    const task = `${name}: ${containers} containers, ${(text.length / 1e6).toFixed(2)} MB`;
    sizes.set(task, text.length);
    bench.add(task, () => {
      if (containers === 1) parse(text);
      else parseContainers(text);
    });
  }
  await bench.run();
  return bench;
}
