/**
 * Logs what a killed and a stopped rank do to a run: starts `braid run` on several GPUs and sends SIGKILL or SIGSTOP to
 * one rank during its runs. Each log holds the command's output, the time from the signal to its end, and what was left
 * behind. Needs Linux, for /proc.
 *
 *     sh braid-offline/braid --script scripts/gpu/failures.ts 4 bench/results/gpu-failures-4xH200 [cuda|nccl|allreduce ...]
 *     ... failures.ts 4 FOLDER --hosts 2    as ranks of two emulated hosts, under the variables of torchrun
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

const failures = [
  { name: "killed", signal: "SIGKILL", known: 0 },
  // Other ranks notice a stopped rank only at the timeout.
  { name: "stopped", signal: "SIGSTOP", known: timeout },
] as const;

/** Programs by name: their streams wait by memory operations, in the library, and in kernels. */
const programs: Readonly<Record<string, readonly string[]>> = {
  cuda: ["examples/ring-allgather-matmul.ts", "--backend", "cuda"],
  nccl: ["examples/ring-allgather-matmul.ts", "--backend", "nccl"],
  allreduce: ["examples/matmul-allreduce.ts", "--backend", "cuda", "--schedule", "computeStreams=1"],
};

async function main(values: readonly string[]): Promise<number> {
  const hostsAt = values.indexOf("--hosts");
  const hosts = hostsAt < 0 ? 1 : Number(values[hostsAt + 1]);
  const [devices = "4", folder = "gpu-failures", ...wanted] = hostsAt < 0 ? values : values.toSpliced(hostsAt, 2);
  mkdirSync(folder, { recursive: true });
  let failed = 0;
  for (const { name, signal, known } of failures) {
    for (const [program, command] of Object.entries(programs)) {
      if (wanted.length > 0 && !wanted.includes(program)) continue;
      const { log, problems } = await provoke({ devices: Number(devices), hosts }, command, signal, known + allowed);
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

interface Launch {
  readonly devices: number;
  readonly hosts: number;
}

/** `limit`: seconds allowed from the signal to the end of the last process that was not stopped. */
async function provoke(
  launch: Launch,
  command: readonly string[],
  signal: "SIGKILL" | "SIGSTOP",
  limit: number,
): Promise<Provoked> {
  const { devices, hosts } = launch;
  const args = ["run", ...command, "--on", "cuda", "--devices", String(devices)];
  const more = ["--repeat", "1000000", "--timeout", String(timeout)];
  const commands = hosts === 1 ? [start([...args, ...more], {})] : ranksOf(launch, [...args, ...more]);
  const failing = hosts === 1 ? 1 : devices - 1;
  await Promise.race([sleep(1000 * underWay), ...commands.map(({ ended }) => ended)]);
  const ranks = hosts === 1 ? commands.flatMap(({ pid }) => childrenOf(pid)) : commands.map(({ pid }) => pid);
  const victim = ranks.find((pid) => environmentOf(pid).includes(`RANK=${failing}`));
  const begin = performance.now();
  if (victim !== undefined) process.kill(victim, signal);
  const others = await Promise.all(commands.filter(({ pid }) => pid !== victim).map(({ ended }) => ended));
  const milliseconds = performance.now() - begin;
  // A launcher kills what is left on its host.
  if (hosts > 1 && victim !== undefined && isAlive(victim)) process.kill(victim, "SIGKILL");
  await Promise.all(commands.map(({ ended }) => ended));
  const left = ranks.filter(isAlive).length;
  const onGpus = computeProcesses();
  const wrong = others.filter((status) => status !== 3);
  const problems = [
    ...(victim === undefined
      ? [`there was no rank ${failing} within ${underWay} s, or the command ended by itself`]
      : []),
    ...(wrong.length === 0 ? [] : [`status ${wrong.join(", ")} instead of 3`]),
    ...(milliseconds <= 1000 * limit ? [] : [`it took longer than ${limit} s`]),
    ...(left === 0 && (onGpus ?? 0) === 0 ? [] : ["something is left"]),
  ];
  const where = hosts === 1 ? "one rank" : `rank ${failing}, by every rank of ${hosts} hosts`;
  const line = `$ braid ${[...args, ...more].join(" ")}    # then kill -${signal.slice(3)} of ${where}\n`;
  const gpus = onGpus === null ? "" : `; ${onGpus} processes on the GPUs`;
  const last = `# ended ${milliseconds.toFixed(0)} ms after the signal with status ${[...new Set(others)].join(", ")}; ${left} processes left${gpus}\n`;
  const written = commands.map(({ written: texts }) => texts.join(""));
  return { log: line + written.join("") + last, problems };
}

interface Started {
  readonly pid: number;
  readonly written: readonly string[];
  readonly ended: Promise<number | null>;
}

function start(args: readonly string[], variables: Readonly<Record<string, string>>): Started {
  const env = { ...process.env, ...variables };
  const child = spawn(process.execPath, [path.join(root, "dist/cli/main.js"), ...args], { cwd: root, env });
  const written: string[] = [];
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => void written.push(text));
  const ended = new Promise<number | null>((resolve) => {
    child.once("close", resolve);
  });
  return { pid: child.pid ?? 0, written, ended };
}

/** Every rank as a process. Hosts have GPUs of their own where there are enough. */
function ranksOf({ devices, hosts }: Launch, args: readonly string[]): readonly Started[] {
  const perHost = devices / hosts;
  const enough = gpuCount() >= devices;
  return Array.from({ length: devices }, (_, own) => {
    const host = Math.floor(own / perHost);
    const gpus = Array.from({ length: perHost }, (_gpu, local) => host * perHost + local);
    return start(args, {
      NCCL_HOSTID: `host${host}`,
      BRAID_TOKEN: `failures-${process.pid}`,
      RANK: String(own),
      WORLD_SIZE: String(devices),
      LOCAL_RANK: String(own % perHost),
      LOCAL_WORLD_SIZE: String(perHost),
      MASTER_ADDR: "127.0.0.1",
      MASTER_PORT: String(20_000 + (process.pid % 20_000)),
      ...(enough ? { CUDA_VISIBLE_DEVICES: gpus.join(",") } : {}),
    });
  });
}

function gpuCount(): number {
  try {
    return execFileSync("nvidia-smi", ["-L"], { encoding: "utf8" }).trim().split("\n").length;
  } catch {
    return 0;
  }
}

function childrenOf(pid: number): readonly number[] {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ").filter(Boolean).map(Number);
  } catch {
    return [];
  }
}

function environmentOf(pid: number): readonly string[] {
  try {
    return readFileSync(`/proc/${pid}/environ`, "utf8").split("\0");
  } catch {
    return [];
  }
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
