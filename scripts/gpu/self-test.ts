/**
 * The self-test of a GPU machine, as one short table: libraries, every kernel against the oracle, bandwidths, GEMMs,
 * and programs over all GPUs in each idiom, eager and as graphs. One process per GPU.
 *
 *     sh braid-offline/braid --script scripts/gpu/self-test.ts 4          all parts on 4 GPUs
 *     sh braid-offline/braid --script scripts/gpu/self-test.ts 2 world    one part: device, graphs, kernels, attention,
 *                                                                         speed, world, replays, reference, annotated,
 *                                                                         routes or large
 *     ... self-test.ts 1 attention:grouped                            its cases whose names match, with attention
 *     ... self-test.ts 8 --out results.json                           all rows as JSON too
 */
import { writeFileSync } from "node:fs";
import process from "node:process";
import type { World } from "../../src/launch/join-world.ts";
import { attentionRows } from "./attention-rows.ts";
import { asRanks } from "./as-ranks.ts";
import { deviceRows } from "./device-rows.ts";
import { graphRows } from "./graph-rows.ts";
import { kernelRows } from "./kernel-rows.ts";
import { largeRows } from "./large-rows.ts";
import type { PartContext, Row } from "./rows.ts";
import { referenceRows } from "./reference-rows.ts";
import { replayRows } from "./replay-rows.ts";
import { speedRows } from "./speed-rows.ts";
import { versions } from "./versions.ts";
import { worldRows } from "./world-rows.ts";

/** Rows of the reference cases that are parts of their own. */
const isOf =
  (file: string) =>
  (name: string): boolean =>
    name.startsWith(`${file}, `);
const [isAnnotated, isRoute] = [isOf("annotated"), isOf("routes")];

const parts = {
  device: deviceRows,
  graphs: graphRows,
  kernels: kernelRows,
  attention: attentionRows,
  speed: speedRows,
  world: worldRows,
  replays: replayRows,
  reference: (context: PartContext) =>
    referenceRows(context, { wanted: (name) => !isAnnotated(name) && !isRoute(name) }),
  annotated: (context: PartContext) => referenceRows(context, { wanted: isAnnotated }),
  routes: (context: PartContext) => referenceRows(context, { wanted: isRoute }),
  large: (context: PartContext) => largeRows(context),
} as const;
type PartName = keyof typeof parts;

async function runRank(world: World, names: readonly string[]): Promise<number> {
  const outAt = names.indexOf("--out");
  const outFile = outAt < 0 ? null : (names[outAt + 1] ?? null);
  const wanted = outAt < 0 ? names : names.toSpliced(outAt, 2);
  const results: Record<string, PartResult> = {};
  let failures = 0;
  for (const name of Object.keys(parts) as PartName[]) {
    const given = wanted.find((each) => each === name || each.startsWith(`${name}:`));
    if (wanted.length > 0 && given === undefined) continue;
    const context: PartContext = { world, only: new RegExp(given?.slice(name.length + 1) ?? "") };
    const start = performance.now();
    const rows: Row[] = [];
    try {
      if (world.rank === 0) console.log(`== ${name}`);
      for await (const row of parts[name](context)) {
        rows.push(row);
        if (world.rank === 0) console.log(rowText(row));
      }
    } catch (error) {
      rows.push({ name: `${name} ended`, ok: false, text: error instanceof Error ? error.message : String(error) });
    }
    const result = await report(context, name, rows, (performance.now() - start) / 1000);
    results[name] = result;
    failures += result.failures;
  }
  if (world.rank === 0 && outFile !== null) {
    const document = {
      date: new Date().toISOString().slice(0, 10),
      devices: world.worldSize,
      ...versions(world.rank, world.localRank),
      command: ["scripts/gpu/self-test.ts", world.worldSize, ...wanted].join(" "),
      failures,
      results,
    };
    writeFileSync(outFile, `${JSON.stringify(document, undefined, 2)}\n`);
  }
  return failures === 0 ? 0 : 1;
}

interface PartResult {
  readonly cases: number;
  readonly failures: number;
  readonly seconds: number;
  readonly rank0: readonly Row[];
  readonly otherRanksFailed: readonly Row[];
}

/** Prints failures of other ranks that rank 0 does not have, whose rows are printed already, and the part's totals. */
async function report(
  { world }: PartContext,
  part: string,
  rows: readonly Row[],
  seconds: number,
): Promise<PartResult> {
  const bytes = new TextEncoder().encode(JSON.stringify(rows));
  const all = (await world.allGather(bytes)).map((each) => JSON.parse(new TextDecoder().decode(each)) as Row[]);
  const [rank0 = [], ...others] = all;
  const failures = all.flat().filter(({ ok }) => !ok).length;
  const cases = rank0.reduce((sum, row) => sum + (row.cases ?? 1), 0);
  if (world.rank === 0) {
    for (const [i, own] of others.entries()) {
      for (const row of own) {
        const known = row.ok || rank0.some(({ name, ok }) => name === row.name && !ok);
        if (!known || row.name.startsWith("kernels against")) console.log(`rank ${i + 1}: ${rowText(row)}`);
      }
    }
    console.log(`   ${part}: ${cases} cases, ${failures} failed, ${seconds.toFixed(1)} s`);
  }
  const otherRanksFailed = others.flat().filter(({ ok }) => !ok);
  return { cases, failures, seconds: Number(seconds.toFixed(1)), rank0, otherRanksFailed };
}

function rowText({ name, ok, text }: Row): string {
  return `${ok ? "ok  " : "FAIL"} ${name}: ${text.split("\n").slice(0, 10).join("\n       ").slice(0, 1200)}`;
}

process.exitCode = await asRanks(import.meta.url, 60_000, runRank);
process.exit();
