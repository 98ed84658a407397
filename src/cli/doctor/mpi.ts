/** The finding about MPI: each library that loads, with its version, ABI and thread level, asked in its own process. */
import { execFile } from "node:child_process";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import * as v from "valibot";
import { type MpiAbi, mpiAbis } from "../../backends/mpi/abi.ts";
import { mpiFolders } from "../../backends/mpi/mpi-library.ts";
import { packageFile } from "../../backends/package-file.ts";
import type { Environment } from "../../support/environment.ts";
import type { Finding } from "./finding.ts";

/** Milliseconds for entering and leaving MPI, most of them the library's. */
const patience = 10_000;

const answer = v.object({ version: v.string(), file: v.string(), threads: v.string() });

export async function mpiFinding(environment: Environment): Promise<Finding> {
  const row = { name: "MPI", gives: "runs on the CPUs of several processes and hosts (--on mpi)" };
  const found = (await Promise.all(mpiAbis.map((abi, number) => describe(abi, number, environment)))).flat();
  if (found.length > 0) return { ...row, status: "ok", detail: found.join("\n"), lookedIn: [] };
  const detail = `no ${mpiAbis.flatMap(({ files }) => files).join(", ")} that starts`;
  return { ...row, status: "missing", detail, lookedIn: ["the loader's path", ...mpiFolders()] };
}

/** One line for the library of that ABI; none if there is none or it does not start. */
async function describe({ name }: MpiAbi, number: number, environment: Environment): Promise<readonly string[]> {
  const script = fileURLToPath(packageFile("dist/backends/mpi/probe-process.js"));
  try {
    const { stdout } = await promisify(execFile)(process.execPath, [script, String(number)], {
      env: withoutLauncher(environment),
      killSignal: "SIGKILL",
      timeout: patience,
    });
    if (stdout === "") return [];
    const { version, file, threads } = v.parse(answer, JSON.parse(stdout));
    return [`${version}, ${file}, ABI of ${name}, threads: ${threads}`];
  } catch {
    return [];
  }
}

/** Under mpirun, the process would otherwise enter the launcher's world in the place of its parent. */
function withoutLauncher(environment: Environment): Environment {
  return Object.fromEntries(
    Object.entries(environment).filter(
      ([name]) => !/^(OMPI_|ORTE_|PRTE_|PMIX_|PMI_|MPI_LOCAL|HYDI_|SLURM_)/.test(name),
    ),
  );
}
