/** Reads plans with the Python package. */
import { spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { expect } from "vitest";
import type { PlanFiles } from "../../src/plan/make-plan.ts";

/** By the name of the plan: what it holds, or why it is refused. */
export type Accounts = Readonly<Record<string, { readonly refused?: readonly string[]; readonly fix?: string }>>;

/** `scratch`: an empty folder. */
export function readInPython(scratch: string, plans: ReadonlyMap<string, PlanFiles>): Accounts {
  for (const [name, files] of plans) {
    mkdirSync(path.join(scratch, name, "kernels"), { recursive: true });
    for (const [file, text] of files) writeFileSync(path.join(scratch, name, file), text);
  }
  const script = path.join(import.meta.dirname, "read-plans.py");
  const { status, stdout, stderr } = spawnSync("python3", ["-B", script, scratch], {
    encoding: "utf8",
    timeout: 240_000,
    maxBuffer: 2 ** 28,
  });
  expect(stderr).toBe("");
  expect(status).toBe(0);
  return JSON.parse(stdout) as Accounts;
}
