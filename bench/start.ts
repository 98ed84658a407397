/**
 * Times the start of the built command line: `npx jiti bench/start.ts [BASELINE]`, where BASELINE is another checkout,
 * built. The processes take turns, so that other load on the machine affects all of them equally. CPU time is user and
 * system time.
 */
import { spawnSync } from "node:child_process";
import path from "node:path";
import process from "node:process";
import { wholeMedian } from "./harness/figures.ts";

const root = path.dirname(import.meta.dirname);
const rounds = 15;
const example = path.join(root, "examples/allgather-matmul.ts");
const commands = {
  "braid --version": ["--version"],
  "braid lower": ["lower", example, "--devices", "2"],
  "braid verify": ["verify", example, "--devices", "2"],
};

/**
 * Preloaded into the measured process. At exit it writes the process's CPU time in microseconds to its fourth stream.
 */
const meter = `data:text/javascript,${encodeURIComponent(`
  import { writeSync } from "node:fs";
  process.on("exit", () => {
    const { user, system } = process.cpuUsage();
    writeSync(3, String(user + system));
  });
`)}`;

interface Sample {
  /** Both in milliseconds. */
  readonly cpu: number;
  readonly wall: number;
}

function start(args: readonly string[]): Sample {
  const begin = performance.now();
  const { status, output } = spawnSync(process.execPath, ["--import", meter, ...args], {
    stdio: ["ignore", "ignore", "inherit", "pipe"],
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`${args.join(" ")} ended with status ${status}`);
  return { cpu: Number(output[3]) / 1e3, wall: performance.now() - begin };
}

const folders = [root, ...process.argv.slice(2)];
const contenders = [
  { name: "node alone", args: ["--eval", ""] },
  ...Object.entries(commands).flatMap(([name, args]) =>
    folders.map((folder) => ({
      name: folder === root ? name : `${name} (${folder})`,
      args: [path.join(folder, "dist/cli/main.js"), ...args],
    })),
  ),
];
const samples = Array.from({ length: rounds }, () => contenders.map(({ args }) => start(args)));
console.table(
  contenders.map(({ name }, contender) => ({
    process: name,
    "median CPU ms": wholeMedian(samples.map((round) => round[contender]?.cpu ?? 0)),
    "median wall ms": wholeMedian(samples.map((round) => round[contender]?.wall ?? 0)),
  })),
);
