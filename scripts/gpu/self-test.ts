/**
 * The self-test of a GPU machine, as one short table: libraries, every kernel against the oracle, bandwidths, GEMMs,
 * and programs over all GPUs in each idiom, eager and as graphs. One process per GPU.
 *
 *     sh braid-offline/braid --script scripts/gpu/self-test.ts 4          all parts on 4 GPUs
 *     sh braid-offline/braid --script scripts/gpu/self-test.ts 2 world    one part: device, graphs, kernels, attention,
 *                                                                         speed, world, replays, reference,
 *                                                                         annotated, drawn, routes or large
 *     ... self-test.ts 1 attention:grouped                            its cases whose names match; of kernels and world, too
 *     ... self-test.ts 8 --out results.json                           all rows as JSON too
 */
import process from "node:process";
import { onGpus, type RankWork } from "../../bench/harness/on-gpus.ts";
import { messageOf, type PartContext, type Row, rowText } from "../../bench/harness/rows.ts";
import { attentionRows } from "./attention-rows.ts";
import { kernelRows, referenceRows, worldRows } from "./case-rows.ts";
import { deviceRows } from "./device-rows.ts";
import { drawnRows } from "./drawn-rows.ts";
import { graphRows } from "./graph-rows.ts";
import { largeRows } from "./large-rows.ts";
import { replayRows } from "./replay-rows.ts";
import { speedRows } from "./speed-rows.ts";

/** Rows of the reference cases that are parts of their own. */
const isOf =
  (file: string) =>
  (name: string): boolean =>
    name.startsWith(`${file}, `);
const [isAnnotated, isRoute] = [isOf("annotated"), isOf("routes")];

const parts: Readonly<Record<string, (context: PartContext) => AsyncGenerator<Row>>> = {
  device: deviceRows,
  graphs: graphRows,
  kernels: kernelRows,
  attention: attentionRows,
  speed: speedRows,
  world: worldRows,
  replays: replayRows,
  reference: (context) => referenceRows(context, { wanted: (name) => !isAnnotated(name) && !isRoute(name) }),
  annotated: (context) => referenceRows(context, { wanted: isAnnotated }),
  drawn: drawnRows,
  routes: (context) => referenceRows(context, { wanted: isRoute }),
  large: (context) => largeRows(context),
};

async function runParts({ world, names: wanted, write }: RankWork): Promise<number> {
  const results: Record<string, PartResult> = {};
  let failures = 0;
  for (const [name, rowsOf] of Object.entries(parts)) {
    const given = wanted.find((each) => each === name || each.startsWith(`${name}:`));
    if (wanted.length > 0 && given === undefined) continue;
    const context: PartContext = { world, only: new RegExp(given?.slice(name.length + 1) ?? "") };
    const start = performance.now();
    const rows: Row[] = [];
    try {
      if (world.rank === 0) console.log(`== ${name}`);
      for await (const row of rowsOf(context)) {
        rows.push(row);
        if (world.rank === 0) console.log(rowText(row));
      }
    } catch (error) {
      rows.push({ name: `${name} ended`, ok: false, text: messageOf(error) });
    }
    const result = await report(context, name, rows, (performance.now() - start) / 1000);
    results[name] = result;
    failures += result.failures;
  }
  write({ failures, results });
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

await onGpus({ url: import.meta.url, timeout: 60_000, rank: runParts });
process.exit();
