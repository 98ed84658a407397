/**
 * Simulated beside measured times: of every implementation of Braid's in results of `braid bench`, on the machine of a profile. It shows where the model that
 * `--schedule-choice auto` chooses by is wrong; it is not part of `npm run bench`.
 *
 *     npx jiti bench/simulated.ts profiles/4xH200.json bench/results/tp-rowwise-4xH200.csv ...
 */
import { readFileSync } from "node:fs";
import { parseImplementations } from "../src/cli/bench/implementation.ts";
import { planOwn } from "../src/cli/bench/plan-own.ts";
import { primitives, type Problem } from "../src/cli/bench/primitives.ts";
import { type DType, dtypes } from "../src/numerics/dtype.ts";
import { parseProfile } from "../src/simulate/parse-profile.ts";
import { simulate } from "../src/simulate/simulate.ts";
import { invariant } from "../src/support/invariant.ts";
import { isOneOf } from "../src/support/is-one-of.ts";
import { keysOf } from "../src/support/keys-of.ts";

const [profileFile, ...files] = process.argv.slice(2);
invariant(profileFile !== undefined && files.length > 0, "usage: jiti bench/simulated.ts PROFILE RESULTS.csv ...");
const profile = parseProfile(readFileSync(profileFile, "utf8"), profileFile);

for (const file of files) {
  console.log(`\n${file}`);
  const ratios: number[] = [];
  let last = "";
  for (const row of rowsOf(readFileSync(file, "utf8"))) {
    const problem = problemOf(row);
    const option = row.get("option") ?? "";
    const measured = Number(row.get("median_time (ms)"));
    if (problem === null || option.includes("choice=auto") || !(measured > 0)) continue;
    const name = row.get("implementation")?.split(" ", 1).join("") ?? "";
    const text = [name, ...option.split(", ").filter((part) => part !== "")].join(";");
    const [implementation] = parseImplementations(text, file);
    if (implementation?.kind !== "braid") continue;
    const size = `m ${problem.m} n ${problem.n} k ${problem.k}`;
    if (size !== last) console.log(`  ${size}`);
    last = size;
    const { program } = planOwn(implementation, problem, { on: "cuda", profile });
    const { milliseconds } = simulate(program, profile, { graph: implementation.options.graph !== "off" });
    ratios.push(milliseconds / measured);
    const figures = [measured, milliseconds].map((each) => each.toPrecision(4).padStart(7)).join(" ");
    console.log(`    ${figures} ${percent(milliseconds / measured)}  ${text}`);
  }
  const errors = ratios.map((ratio) => Math.abs(Math.log(ratio))).sort((a, b) => a - b);
  const mean = errors.reduce((sum, each) => sum + each, 0) / errors.length;
  console.log(`  mean error ${(100 * mean).toFixed(1)} %, the largest ${(100 * (errors.at(-1) ?? 0)).toFixed(1)} %`);
}

function percent(ratio: number): string {
  return `${(100 * (ratio - 1)).toFixed(1)} %`.padStart(8);
}

/** Null for rows of other machines than the profile's, and for what is not a measurement of Braid. */
function problemOf(row: ReadonlyMap<string, string>): Problem | null {
  const [primitive, dtype] = [row.get("primitive") ?? "", row.get("dtype") ?? ""];
  const isOwn =
    row.get("source") === "measured" && /^(?:braid|serial|compute-only)\b/.test(row.get("implementation") ?? "");
  if (!isOwn || !isOneOf(primitives, primitive) || !isOneOf<DType>(keysOf(dtypes), dtype)) return null;
  const number = (column: string): number => Number(row.get(column));
  return { primitive, dtype, m: number("m"), n: number("n"), k: number("k"), devices: number("world_size") };
}

function rowsOf(text: string): readonly ReadonlyMap<string, string>[] {
  const [head = [], ...rows] = text.trim().split("\n").map(fieldsOf);
  return rows.map((fields) => new Map(head.map((name, i) => [name, fields[i] ?? ""])));
}

/** A field may stand in quotation marks, and then have commas. */
function fieldsOf(line: string): readonly string[] {
  return [...line.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^,]*))/g)].map(
    ([, quoted, plain = ""]) => quoted?.replaceAll('""', '"') ?? plain,
  );
}
