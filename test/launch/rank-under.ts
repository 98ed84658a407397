/** A rank as a process under another launcher's variables. Rank 0 runs the hub. */
import { spawn } from "node:child_process";
import process from "node:process";
import { nodeScript } from "../support/node-script.ts";

export const rankProcess = await nodeScript("test/launch/rank-process.ts");

export interface Ended {
  readonly status: number | null;
  readonly out: string;
  readonly err: string;
}

/** `before`: the command that runs it, such as one that enters a namespace. */
export function rank(
  env: Record<string, string>,
  args: readonly string[],
  before: readonly string[] = [],
): Promise<Ended> {
  const [program = "", ...rest] = [...before, process.execPath, rankProcess, ...args];
  return new Promise((resolve) => {
    const child = spawn(program, rest, { env: { PATH: process.env.PATH, ...env } });
    let out = "";
    let err = "";
    child.stdout.on("data", (data: Buffer) => {
      out += data.toString();
    });
    child.stderr.on("data", (data: Buffer) => {
      err += data.toString();
    });
    child.on("close", (status) => resolve({ status, out, err }));
  });
}

export const mpirun = (job: string, own: number, size: number): Record<string, string> => ({
  OMPI_COMM_WORLD_RANK: String(own),
  OMPI_COMM_WORLD_SIZE: String(size),
  OMPI_COMM_WORLD_LOCAL_RANK: String(own),
  OMPI_COMM_WORLD_LOCAL_SIZE: String(size),
  PMIX_NAMESPACE: job,
});

/** As torchrun sets them on hosts of `perHost` ranks each: its own store listens at MASTER_PORT. */
export const torchrun = (job: string, own: number, size: number, perHost = size): Record<string, string> => ({
  RANK: String(own),
  WORLD_SIZE: String(size),
  LOCAL_RANK: String(own % perHost),
  LOCAL_WORLD_SIZE: String(perHost),
  GROUP_RANK: String(Math.floor(own / perHost)),
  MASTER_ADDR: "127.0.0.1",
  MASTER_PORT: String(20_000 + (process.pid % 20_000)),
  TORCHELASTIC_RUN_ID: job,
});

export function jobName(name: string): string {
  return `test-${process.pid}-${name}`;
}
