/**
 * Writes everything that a refactoring must not change as text files: `jiti scripts/snapshot.ts FOLDER [--full]
 * [PART...]`, after `npm run build`. Compare the outputs of two commits with `diff -r`. Without --full, long texts are
 * cut to their first lines and a hash. PART is one of the names below, default all. Several processes may write parts
 * at the same time.
 */
import { dumpPages, helpPages, listPages, lowerPages, messagePages, runPages } from "./snapshot/command-lines.ts";
import { benchPages, choicePages, examplePages, kernelPages } from "./snapshot/kernels.ts";
import { startPages } from "./snapshot/page.ts";
import { programPages } from "./snapshot/programs.ts";

const [folder, ...rest] = process.argv.slice(2);
if (folder === undefined) throw new Error("usage: jiti scripts/snapshot.ts FOLDER [--full] [PART...]");
startPages(folder, rest.includes("--full"));
const parts = {
  helpPages,
  messagePages,
  lowerPages,
  listPages,
  runPages,
  dumpPages,
  programPages,
  kernelPages,
  examplePages,
  choicePages,
  benchPages,
};
const asked = rest.filter((word) => word in parts);
for (const [name, write] of Object.entries(parts)) {
  if (asked.length > 0 && !asked.includes(name)) continue;
  const start = process.cpuUsage();
  await write();
  const { user, system } = process.cpuUsage(start);
  console.error(`${name}: ${((user + system) / 1e6).toFixed(1)} s of a processor`);
}
process.exit();
