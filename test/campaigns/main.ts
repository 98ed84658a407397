/**
 * Runs campaigns and writes their results into results.md: `npm run test:campaign`, or `npm run test:campaign -- NAME
 * [COUNT]` for one. Ends with status 1 where something does not hold.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import process from "node:process";
import { format, resolveConfig } from "prettier";
import { keysOf } from "../../src/support/invariant.ts";
import { annotatedGraphs } from "./annotated-graphs.ts";
import { beside } from "./beside.ts";
import type { Campaign } from "./campaign.ts";
import { classes } from "./classes.ts";
import { closure } from "./closure.ts";
import { dumps } from "./dumps.ts";
import { fuzz } from "./fuzz.ts";
import { interleavings } from "./interleavings.ts";
import { kills } from "./kills.ts";
import { mutants } from "./mutants.ts";
import { programValues } from "./program-values.ts";
import { randomPrograms } from "./random-programs.ts";
import { replays } from "./replays.ts";
import { workerRuns } from "./worker-runs.ts";

const campaigns = {
  "annotated-graphs": annotatedGraphs,
  beside,
  classes,
  closure,
  dumps,
  fuzz,
  interleavings,
  kills,
  mutants,
  "program-values": programValues,
  "random-programs": randomPrograms,
  replays,
  "worker-runs": workerRuns,
} satisfies Readonly<Record<string, Campaign>>;

type Name = keyof typeof campaigns;

const file = new URL("results.md", import.meta.url);

/** The rows of the last runs, by name. */
function readRows(): Map<string, string> {
  const text = existsSync(file) ? readFileSync(file, "utf8") : "";
  const rows = text.split("\n").filter((line) => /^\| [a-z-]+ +\|/.test(line) && !line.startsWith("| campaign"));
  return new Map(rows.map((row) => [row.split("|")[1]?.trim() ?? "", row]));
}

async function writeRow(name: Name, cells: readonly string[]): Promise<void> {
  const rows = readRows().set(name, `| ${[name, ...cells].join(" | ")} |`);
  const text = `# Results of campaigns

\`npm run test:campaign\` runs all of them and writes this page; \`npm run test:campaign -- NAME [COUNT]\` runs one.

| campaign | what | count | result | day | minutes |
| --- | --- | --- | --- | --- | --- |
${keysOf(campaigns)
  .flatMap((each) => rows.get(each) ?? [])
  .join("\n")}
`;
  writeFileSync(file, await format(text, { ...(await resolveConfig(file.pathname)), parser: "markdown" }));
}

async function run(name: Name, given: number | undefined): Promise<void> {
  const { what, count: usual, run: start } = campaigns[name];
  const count = given ?? usual;
  const begin = performance.now();
  const { ok, text } = await start(count);
  const minutes = ((performance.now() - begin) / 60_000).toFixed(1);
  console.log(`${name}: ${ok ? "ok" : "FAILED"}, ${count}: ${text}`);
  const day = new Date().toISOString().slice(0, 10);
  await writeRow(name, [what, String(count), ok ? text : `FAILED: ${text}`, day, minutes]);
  if (!ok) process.exitCode = 1;
}

/** Loading a program file takes process.exit away. */
const exit = process.exit.bind(process);

const [asked, count] = process.argv.slice(2);
const names = keysOf(campaigns).filter((name) => asked === undefined || asked === name);
if (names.length === 0) {
  console.error(`${asked} is no campaign; one of ${Object.keys(campaigns).join(", ")}`);
  process.exitCode = 2;
}
for (const name of names) await run(name, count === undefined ? undefined : Number(count));
// Workers of a rejected run may still be there.
exit();
