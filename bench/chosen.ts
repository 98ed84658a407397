/**
 * Shows what `scheduleChoice=auto` chooses now with a profile, for every problem in results of `braid bench`, and how
 * far that is from the fastest measured row. A row counts if its program is the same, command for command. Without such
 * a row, it shows what `scheduleChoice=auto` took in that run if the choice had the same name.
 *
 *     npx jiti bench/chosen.ts profiles/4xH200.json bench/results/tp-rowwise-4xH200.csv ...
 */
import { readFileSync } from "node:fs";
import { parseImplementations } from "./compare/implementation.ts";
import { planOwn, type Planned } from "./compare/braid/plan-own.ts";
import { printProgram } from "../src/commands/print-program.ts";
import { parseProfile } from "../src/simulate/parse-profile.ts";
import { invariant } from "../src/support/invariant.ts";
import { type MeasuredRow, measuredRows, sizeText } from "./measured-rows.ts";

const [profileFile, ...files] = process.argv.slice(2);
invariant(profileFile !== undefined && files.length > 0, "usage: jiti bench/chosen.ts PROFILE RESULTS.csv ...");
const profile = parseProfile(readFileSync(profileFile, "utf8"), profileFile);
const [auto] = parseImplementations("braid;scheduleChoice=auto", "scheduleChoice");
invariant(auto?.kind === "braid", "scheduleChoice=auto is an implementation of Braid's");

for (const file of files) {
  console.log(`\n${file}`);
  for (const rows of bySize(measuredRows(file))) {
    const [first] = rows;
    if (first === undefined) continue;
    const timed = rows.filter(({ implementation }) => implementation.name !== "compute-only");
    const least = Math.min(...timed.map(({ milliseconds }) => milliseconds));
    const now = planned({ ...first, implementation: auto });
    const name = nameOf(now.reason ?? "");
    console.log(`  ${sizeText(first.problem)}: ${name}`);
    const isAuto = ({ implementation }: MeasuredRow): boolean => implementation.options.scheduleChoice === "auto";
    const text = printProgram(now.program);
    const same = timed.filter((row) => !isAuto(row) && printProgram(planned(row).program) === text);
    const then = timed.filter((row) => isAuto(row) && nameOf(row.note) === name);
    for (const { milliseconds, text: options } of same.length > 0 ? same : then) {
      console.log(`    ${(100 * (milliseconds / least - 1)).toFixed(1).padStart(5)} %  ${options}`);
    }
  }
}

function bySize(rows: readonly MeasuredRow[]): Iterable<readonly MeasuredRow[]> {
  const sizes = new Map<string, MeasuredRow[]>();
  for (const row of rows) {
    const size = sizeText(row.problem);
    sizes.set(size, [...(sizes.get(size) ?? []), row]);
  }
  return sizes.values();
}

function planned({ implementation, problem }: Pick<MeasuredRow, "implementation" | "problem">): Planned {
  return planOwn(implementation, problem, { on: "cuda", profile });
}

/** The schedule's name at the start of a reason. Committed results say "products" for GEMMs. */
function nameOf(reason: string): string {
  return reason
    .split(":", 1)
    .join("")
    .replace("one product", "one GEMM")
    .replace(/\bproducts (?=\d|all)/, "GEMMs ");
}
