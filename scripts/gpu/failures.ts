/**
 * Logs what a killed and a stopped rank do to a run: starts `braid run` on several GPUs and sends SIGKILL or SIGSTOP to
 * one rank during its runs. Each log holds the command's output, the time from the signal to its end, and what was left
 * behind. Needs Linux, for /proc.
 *
 *     sh braid-offline/braid --script scripts/gpu/failures.ts 4 bench/results/gpu-failures-4xH200 [cuda|nccl|allreduce ...]
 */
import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { setTimeout as sleep } from "node:timers/promises";

const root = path.dirname(path.dirname(path.dirname(fileURLToPath(import.meta.url))));
const timeout = 8;
/** Seconds until every rank has compiled and is running. */
const underWay = 15;
/** Seconds that all ranks may take to end after one has failed. */
const allowed = 5;
const failing = 1;

const failures = [
  { name: "killed", signal: "SIGKILL", known: 0 },
  // Other ranks notice a stopped rank only at the timeout.
  { name: "stopped", signal: "SIGSTOP", known: timeout },
] as const;

/** Programs by name: their streams wait by memory operations, in the library, and in kernels. */
const programs: Readonly<Record<string, readonly string[]>> = {
  cuda: ["examples/ring-allgather-matmul.ts", "--backend", "cuda"],
  nccl: ["examples/ring-allgather-matmul.ts", "--backend", "nccl"],
  allreduce: ["examples/matmul-allreduce.ts", "--backend", "cuda", "--compute-streams", "1"],
};

async function main([devices = "4", folder = "gpu-failures", ...wanted]: readonly string[]): Promise<number> {
  mkdirSync(folder, { recursive: true });
  let failed = 0;
  for (const { name, signal, known } of failures) {
    for (const [program, command] of Object.entries(programs)) {
      if (wanted.length > 0 && !wanted.includes(program)) continue;
      const { log, problems } = await provoke(devices, command, signal, known + allowed);
      writeFileSync(path.join(folder, `${name}-${program}.txt`), log);
      failed += problems.length;
      console.log(`${problems.length === 0 ? "ok  " : "FAIL"} ${name}, ${program}: ${log.trim().split("\n").at(-1)}`);
      for (const problem of problems) console.log(`       ${problem}`);
    }
  }
  return failed === 0 ? 0 : 1;
}

interface Provoked {
  readonly log: string;
  readonly problems: readonly string[];
}

/** `limit`: seconds allowed from the signal to the end of the last process. */
async function provoke(
  devices: string,
  command: readonly string[],
  signal: "SIGKILL" | "SIGSTOP",
  limit: number,
): Promise<Provoked> {
  const args = ["run", ...command, "--on", "cuda", "--devices", devices];
  const more = ["--repeat", "1000000", "--timeout", String(timeout)];
  const child = spawn(process.execPath, [path.join(root, "dist/cli/main.js"), ...args, ...more], { cwd: root });
  const written: string[] = [];
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => void written.push(text));
  const ended = new Promise<number | null>((resolve) => {
    child.once("close", resolve);
  });
  await Promise.race([sleep(1000 * underWay), ended]);
  const ranks = childrenOf(child.pid ?? 0);
  const victim = ranks.find((pid) => environmentOf(pid).includes(`RANK=${failing}`));
  const start = performance.now();
  if (victim !== undefined) process.kill(victim, signal);
  const status = await ended;
  const milliseconds = performance.now() - start;
  const left = ranks.filter(isAlive).length;
  const onGpus = computeProcesses();
  const problems = [
    ...(victim === undefined
      ? [`there was no rank ${failing} within ${underWay} s, or the command ended by itself`]
      : []),
    ...(status === 3 ? [] : [`status ${status} instead of 3`]),
    ...(milliseconds <= 1000 * limit ? [] : [`it took longer than ${limit} s`]),
    ...(left === 0 && (onGpus ?? 0) === 0 ? [] : ["something is left"]),
  ];
  const line = `$ braid ${[...args, ...more].join(" ")}    # then kill -${signal.slice(3)} of one rank\n`;
  const gpus = onGpus === null ? "" : `; ${onGpus} processes on the GPUs`;
  const last = `# ended ${milliseconds.toFixed(0)} ms after the signal with status ${status}; ${left} processes left${gpus}\n`;
  return { log: line + written.join("") + last, problems };
}

function childrenOf(pid: number): readonly number[] {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ").filter(Boolean).map(Number);
  } catch {
    return [];
  }
}

function environmentOf(pid: number): readonly string[] {
  return readFileSync(`/proc/${pid}/environ`, "utf8").split("\0");
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** Null without nvidia-smi. */
function computeProcesses(): number | null {
  try {
    const query = ["--query-compute-apps=pid", "--format=csv,noheader"];
    const text = execFileSync("nvidia-smi", query, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
    return text.split("\n").filter((each) => /^\d+/.test(each)).length;
  } catch {
    return null;
  }
}

process.exitCode = await main(process.argv.slice(2));
