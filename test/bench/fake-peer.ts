/**
 * A stand-in for Python with PyTorch: answers like bench/peers/torch_peer.py, with times that identify the
 * implementation. FAKE_PEER selects how it misbehaves: absent (ends at once, like Python without PyTorch), refusing
 * (has no async-tp), silent (never answers a run), odd (answers a run with something else).
 */
import { createInterface } from "node:readline";
import process from "node:process";

interface Request {
  readonly do: "setup" | "run" | "row" | "validate" | "kernels" | "exit";
  readonly impl: "compute-only" | "nccl" | "async-tp" | "xla";
  readonly runs: number;
}

// oxlint-disable-next-line node/no-process-env -- how a test speaks to this process
const { FAKE_PEER: manner = "well", RANK: rank = "0" } = process.env;
const times = { "compute-only": 1, nccl: 3, "async-tp": 2, xla: 4 } as const;

function timeOf(impl: Request["impl"]): number {
  return times[impl] * (1 + Number(rank) / 10);
}

function answer(value: object): void {
  process.stdout.write(`${JSON.stringify(value)}\n`);
}

function run({ impl, runs }: Request): void {
  if (manner === "odd") return answer({ ms: "soon" });
  if (manner === "refusing" && impl === "async-tp") return answer({ failed: "RuntimeError: no symmetric memory" });
  if (manner === "silent") return;
  const time = timeOf(impl);
  const all = Array.from({ length: runs }, () => time);
  answer({ ms: all, host_us: all.map((each) => 10 * each) });
}

/** One among runs in a row costs so much less than one by itself as there are of them. */
function row({ impl, runs }: Request): void {
  answer({ host_us: manner === "odd" ? "soon" : (10 * timeOf(impl)) / runs });
}

async function main(): Promise<void> {
  if (manner === "absent") {
    process.stderr.write("ModuleNotFoundError: No module named 'torch'\n");
    process.exit(1);
  }
  answer({ ready: Number(rank), torch: "fake" });
  for await (const line of createInterface({ input: process.stdin })) {
    const request = JSON.parse(line) as Request;
    if (request.do === "exit") break;
    if (request.do === "setup") answer({ impls: Object.keys(times), kernels: true });
    else if (request.do === "row") row(request);
    else if (request.do === "kernels") answer({ kernels: [1, 0.5, 0.25] });
    else if (request.do === "validate") answer({ error: 0.5, bound: 2 });
    else run(request);
  }
}

void main();
