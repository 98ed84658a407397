/** Runs the built command under mpirun. */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import path from "node:path";
import process from "node:process";
import { promisify } from "node:util";
import { cli } from "../cli/captured-cli.ts";

const root = path.resolve(import.meta.dirname, "../..");

export interface Launcher {
  readonly abi: string;
  readonly file: string;
  readonly flags: readonly string[];
  /** For the name of a test that is skipped; empty if it is there. */
  readonly obstacle: string;
}

/** Debian's names, under which both libraries can be installed. */
export const launchers: readonly Launcher[] = [
  { abi: "Open MPI", file: "/usr/bin/mpirun.openmpi", flags: ["--oversubscribe", "--bind-to", "none"] },
  { abi: "MPICH", file: "/usr/bin/mpirun.mpich", flags: [] },
].map((each) => ({ ...each, obstacle: existsSync(each.file) ? "" : `, skipped because there is no ${each.file}` }));

/** Open MPI starts as root only with them. */
export const rootVariables = { OMPI_ALLOW_RUN_AS_ROOT: "1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM: "1" };

export interface Ended {
  readonly status: number;
  readonly out: string;
  readonly err: string;
}

/** How a program ended. Throws if a signal ended it, as after `timeout` milliseconds. */
export async function endOf(
  file: string,
  args: readonly string[],
  {
    variables = {},
    timeout = 60_000,
  }: { readonly variables?: Readonly<Record<string, string>>; timeout?: number } = {},
): Promise<Ended> {
  try {
    const { stdout, stderr } = await promisify(execFile)(file, args, {
      cwd: root,
      // oxlint-disable-next-line node/no-process-env -- what the command inherits
      env: { ...process.env, ...rootVariables, ...variables },
      killSignal: "SIGKILL",
      timeout,
    });
    return { status: 0, out: stdout, err: stderr };
  } catch (error) {
    if (!(error instanceof Error) || !("code" in error) || typeof error.code !== "number") throw error;
    const text = (name: "stdout" | "stderr"): string => (name in error ? String(Reflect.get(error, name)) : "");
    return { status: error.code, out: text("stdout"), err: text("stderr") };
  }
}

/** `braid run` with each list of arguments in `processes` processes. */
export function underMpi(
  { file, flags }: Launcher,
  processes: number,
  ...lists: readonly (readonly string[])[]
): Promise<Ended> {
  const main = path.join(root, "dist/cli/main.js");
  const parts = lists.map((list) => ["-np", String(processes), process.execPath, main, "run", ...list]);
  return endOf(file, [...flags, ...parts.flatMap((part, i) => (i === 0 ? part : [":", ...part]))]);
}

/** The fingerprints of all outputs in a JSON document; `out` null: of a run on the CPU in this process. */
export async function fingerprintOf(out: string | null, args: readonly string[] = []): Promise<readonly string[]> {
  const text = out ?? (await cli("run", ...args, "--on", "cpu")).out;
  const { outputs } = JSON.parse(text) as { readonly outputs: readonly { readonly fingerprint: string }[] };
  return outputs.map(({ fingerprint }) => fingerprint);
}
