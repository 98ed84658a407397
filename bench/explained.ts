/**
 * Compares predicted with measured exposed time, for Braid's implementations in results of `braid bench`: the run's time
 * minus the time of its GEMM alone (compute-only, measured in the same run). It is not part of `npm run bench`.
 *
 *     npx jiti bench/explained.ts profiles/4xH200.json bench/results/tp-rowwise-4xH200.csv ...
 */
import { readFileSync } from "node:fs";
import { planOwn } from "./compare/braid/plan-own.ts";
import { causes } from "../src/explain/causes.ts";
import { explainRun } from "../src/explain/explain-run.ts";
import { parseProfile } from "../src/simulate/parse-profile.ts";
import { simulate } from "../src/simulate/simulate.ts";
import { invariant } from "../src/support/invariant.ts";
import { type MeasuredRow, measuredRows, sizeText } from "./measured-rows.ts";

const [profileFile, ...files] = process.argv.slice(2);
invariant(profileFile !== undefined && files.length > 0, "usage: jiti bench/explained.ts PROFILE RESULTS.csv ...");
const profile = parseProfile(readFileSync(profileFile, "utf8"), profileFile);

interface Compared {
  readonly text: string;
  readonly measured: number;
  readonly predicted: number;
  /** Of the measured run. */
  readonly error: number;
  /** The cause that is named first. */
  readonly cause: string;
}

const compared = files.flatMap((file) => comparedRows(measuredRows(file)));
const errors = compared.map(({ error }) => error);
// The geometric mean of ratios, because an error of 0 would make that of errors 0.
const mean = Math.exp(errors.reduce((sum, error) => sum + Math.log(1 + error), 0) / errors.length) - 1;
console.log(`${compared.length} rows; mean error ${percent(mean)} of the run; within 5 %: ${share(0.05)}`);
console.log("\nlargest errors (exposed ms measured, predicted; error of the run; cause named first)");
for (const { text, measured, predicted, error, cause } of compared.toSorted((a, b) => b.error - a.error).slice(0, 10)) {
  console.log(`  ${measured.toFixed(3)} ${predicted.toFixed(3)} ${percent(error)}  ${cause}  ${text}`);
}

function comparedRows(rows: readonly MeasuredRow[]): readonly Compared[] {
  return rows.flatMap((row): readonly Compared[] => {
    const alone = rows.find(
      ({ problem, text }) => sizeText(problem) === sizeText(row.problem) && text.startsWith("compute-only"),
    );
    const { options } = row.implementation;
    if (alone === undefined || row === alone || options.scheduleChoice === "auto") return [];
    const plan = ({ implementation, problem }: MeasuredRow) =>
      planOwn(implementation, problem, { on: "cuda", profile });
    const { program } = plan(row);
    const graph = options.graph !== "off";
    const run = { program, ...simulate(program, profile, { graph }) };
    // The serial form's GEMM is the one of compute-only.
    const explained = explainRun(run, profile, { serial: plan(alone).program, graph });
    const measured = row.milliseconds - alone.milliseconds;
    const [first] = explained.causes;
    return [
      {
        text: `${row.problem.primitive} ${sizeText(row.problem)} ${row.text}`,
        measured,
        predicted: explained.exposed,
        error: Math.abs(explained.exposed - measured) / row.milliseconds,
        cause: first === undefined ? "none" : causes[first.cause].label,
      },
    ];
  });
}

function share(limit: number): string {
  return percent(errors.filter((error) => error <= limit).length / errors.length);
}

function percent(part: number): string {
  return `${(100 * part).toFixed(1)} %`;
}
