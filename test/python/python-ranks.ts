/** Runs a script of this folder in a Python process per rank, on fake GPUs. */
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import process from "node:process";
import type { PlanFiles } from "../../src/plan/make-plan.ts";

export interface Ended {
  readonly status: number | null;
  readonly out: string;
  readonly err: string;
  /** Files of its fake GPUs in the machine's memory that it has not freed. They are removed. */
  readonly left: readonly string[];
}

const memory = "/dev/shm";

function removeLeft(pid: number): readonly string[] {
  if (!existsSync(memory)) return [];
  const left = readdirSync(memory).filter((name) => name.startsWith(`braid-fake-${pid}-`));
  // Its peers may remove some at the same time.
  for (const name of left) rmSync(path.join(memory, name), { force: true });
  return left;
}

export function ended(command: readonly string[], variables: Readonly<Record<string, string>>): Promise<Ended> {
  return new Promise((resolve) => {
    const [file = "", ...args] = command;
    // oxlint-disable-next-line node/no-process-env -- what the command inherits
    const child = spawn(file, args, { env: { ...process.env, ...variables }, timeout: 200_000 });
    const said = { out: "", err: "" };
    child.stdout.on("data", (text) => void (said.out += String(text)));
    child.stderr.on("data", (text) => void (said.err += String(text)));
    child.on("close", (status) => {
      resolve({ status, ...said, left: removeLeft(child.pid ?? 0) });
    });
  });
}

export function pythonRanks(
  world: number,
  script: string,
  args: readonly string[],
  variables: Readonly<Record<string, string>>,
): Promise<readonly Ended[]> {
  const ranks = Array.from({ length: world }, (_, rank) =>
    ended(["python3", "-B", path.join(import.meta.dirname, script), ...args], {
      ...variables,
      RANK: String(rank),
      WORLD_SIZE: String(world),
    }),
  );
  return Promise.all(ranks);
}

export function writePlan(folder: string, files: PlanFiles): void {
  mkdirSync(path.join(folder, "kernels"), { recursive: true });
  for (const [file, text] of files) writeFileSync(path.join(folder, file), text);
}
