/** Times reading dumps: many of nvFuser's in one text, and the dump of a lowered Fusion of a thousand ops. */
import { readdirSync, readFileSync } from "node:fs";
import { DeviceMesh, Fusion, lower, parse, print, relu, set, type TensorView } from "@braid-compiler/braid";
import { parseContainers } from "@braid-compiler/braid/internals";
import type { Suite } from "./harness/suite.ts";

const folder = new URL("../test/fixtures/dumps/", import.meta.url);

/** The dumps of nvFuser's pull requests, repeated up to about a megabyte. */
function manyDumps(): string {
  const texts = readdirSync(folder)
    .filter((name) => name.endsWith(".hir"))
    .map((name) => readFileSync(new URL(name, folder), "utf8"))
    .filter(isRead);
  const all = `${texts.join("\n")}\n`;
  return all.repeat(Math.ceil(1e6 / all.length));
}

/** Some are of an era whose dumps Braid refuses. */
function isRead(text: string): boolean {
  try {
    return parseContainers(text).length > 0;
  } catch {
    return false;
  }
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

export function parseSuite(): Suite {
  const texts = { "nvFuser's dumps": manyDumps(), "one long container": longProgram() };
  const tasks = Object.entries(texts).map(([name, text]) => {
    const containers = parseContainers(text).length;
    return {
      name: `${name}: ${containers} containers, ${(text.length / 1e6).toFixed(2)} MB`,
      run: () => void (containers === 1 ? parse(text) : parseContainers(text)),
      work: { amount: text.length, unit: "MB/s" } as const,
    };
  });
  return { name: "parse", options: { time: 1500, warmupTime: 500 }, tasks };
}
