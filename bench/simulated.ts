/**
 * Compares predicted with measured times of Braid's implementations in results of `braid bench`, on the machine of a
 * profile. It shows errors of the model that `--schedule auto` uses. It is not part of `npm run bench`.
 *
 *     npx jiti bench/simulated.ts profiles/4xH200.json bench/results/tp-rowwise-4xH200.csv ...
 */
import { readFileSync } from "node:fs";
import { planBlock } from "./compare/block/plan-block.ts";
import { planOwn } from "./compare/braid/plan-own.ts";
import type { Program } from "../src/commands/program.ts";
import { parseProfile } from "../src/simulate/parse-profile.ts";
import { simulate } from "../src/simulate/simulate.ts";
import { invariant } from "../src/support/invariant.ts";
import { measuredBlocks, measuredRows, sizeText } from "./measured-rows.ts";

const [profileFile, ...files] = process.argv.slice(2);
invariant(profileFile !== undefined && files.length > 0, "usage: jiti bench/simulated.ts PROFILE RESULTS.csv ...");
const profile = parseProfile(readFileSync(profileFile, "utf8"), profileFile);

for (const file of files) {
  console.log(`\n${file}`);
  const ratios: number[] = [];
  let last = "";
  for (const { where, program, graph, text, measured } of plannedRows(file)) {
    if (where !== last) console.log(`  ${where}`);
    last = where;
    const { milliseconds } = simulate(program, profile, { graph });
    ratios.push(milliseconds / measured);
    const figures = [measured, milliseconds].map((each) => each.toPrecision(4).padStart(7)).join(" ");
    console.log(`    ${figures} ${percent(milliseconds / measured)}  ${text}`);
  }
  const errors = ratios.map((ratio) => Math.abs(Math.log(ratio))).sort((a, b) => a - b);
  const mean = errors.reduce((sum, each) => sum + each, 0) / errors.length;
  console.log(`  mean error ${(100 * mean).toFixed(1)} %, the largest ${(100 * (errors.at(-1) ?? 0)).toFixed(1)} %`);
}

interface PlannedRow {
  readonly where: string;
  readonly program: Program;
  readonly graph: boolean;
  readonly text: string;
  /** Milliseconds. */
  readonly measured: number;
}

/** Without those whose schedule was chosen: another version may choose another. */
function* plannedRows(file: string): Generator<PlannedRow> {
  const setting = { on: "cuda", profile } as const;
  for (const { problem, implementation, text, milliseconds: measured } of measuredRows(file)) {
    if (implementation.options.scheduleChoice === "auto") continue;
    const { program } = planOwn(implementation, problem, setting);
    yield { where: sizeText(problem), program, graph: implementation.options.graph !== "off", text, measured };
  }
  for (const { problem, implementation, text, milliseconds: measured } of measuredBlocks(file)) {
    if (implementation.options.scheduleChoice === "auto") continue;
    const { program } = planBlock(implementation, problem, setting).compilation;
    const where = `${problem.model} ${problem.cut} ${problem.pass}`;
    yield { where, program, graph: implementation.options.graph !== "off", text, measured };
  }
}

function percent(ratio: number): string {
  return `${(100 * (ratio - 1)).toFixed(1)} %`.padStart(8);
}
