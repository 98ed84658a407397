/** `braid doctor`: reports what this machine has that Braid can use, and what is missing. */
import Table from "cli-table3";
import { Command } from "commander";
import { execFile } from "node:child_process";
import os from "node:os";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import * as v from "valibot";
import { type MpiAbi, mpiAbis } from "../../backends/mpi/abi.ts";
import { mpiFolders } from "../../backends/mpi/mpi-library.ts";
import { packageFile } from "../../backends/package-file.ts";
import type { Environment } from "../../support/environment.ts";
import { type ExitStatus, exitStatus } from "../exit-status.ts";
import { processEnvironment } from "../ranks/where-to-run.ts";
import { plainBorders, trimmedLines } from "../terminal/table-style.ts";
import type { Colors, Terminal } from "../terminal/terminal.ts";
import { type DoctorFinding, nativeFindings } from "./native.ts";

// Findings about the machine and Node, which the CPU back end needs.

/** The oldest Node that package.json allows. */
const oldestNode = [20, 19] as const;

function machineFindings(): readonly DoctorFinding[] {
  const here = { lookedIn: [] } as const;
  const [cpu] = os.cpus();
  return [
    {
      name: "Node",
      status: isRecent(process.versions.node) ? "ok" : "too-old",
      detail: `${process.version} (needs ${oldestNode.join(".")} or newer)`,
      gives: "runs Braid",
      ...here,
    },
    {
      name: "platform",
      status: "ok",
      detail: `${process.platform} ${process.arch}, ${os.release()}`,
      gives: "",
      ...here,
    },
    {
      name: "cores",
      status: "ok",
      detail: `${os.availableParallelism()} (${cpu?.model.trim() ?? "unknown model"})`,
      gives: "",
      ...here,
    },
    {
      name: "memory",
      status: "ok",
      detail: `${gibibytes(os.totalmem())} GiB, ${gibibytes(os.freemem())} GiB free`,
      gives: "all ranks' tensors on the CPU",
      ...here,
    },
  ];
}

function isRecent(version: string): boolean {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return major > oldestNode[0] || (major === oldestNode[0] && minor >= oldestNode[1]);
}

function gibibytes(bytes: number): string {
  return (bytes / 2 ** 30).toFixed(1);
}

export function doctorCommand(terminal: Terminal, finish: (status: ExitStatus) => void): Command {
  return new Command("doctor")
    .description("Reports what this machine has (Node, FFI, BLAS, GPUs, CUDA, NCCL, MPI) and what is missing.")
    .option("--json", "print the findings as JSON")
    .action(async ({ json = false }: { readonly json?: boolean }) => {
      const findings = [...machineFindings(), ...nativeFindings(), await mpiFinding(processEnvironment)];
      terminal.out(json ? `${JSON.stringify({ findings }, undefined, 2)}\n` : render(findings, terminal.outColors));
      finish(exitStatus.ok);
    });
}

function render(findings: readonly DoctorFinding[], colors: Colors): string {
  const marks: { readonly [S in DoctorFinding["status"]]: string } = {
    ok: colors.green("ok"),
    missing: colors.yellow("missing"),
    "too-old": colors.red("too old"),
  };
  const table = new Table({ ...plainBorders, head: ["", "", "found", "gives"] });
  for (const { name, status, detail, gives } of findings) table.push([marks[status], name, detail, gives]);
  return [...trimmedLines(table.toString()), "", ...searches(findings), ""].join("\n");
}

/** The places searched for missing things: one line for all that have the same places. */
function searches(findings: readonly DoctorFinding[]): readonly string[] {
  const names = new Map<string, string[]>();
  for (const { name, lookedIn } of findings) {
    if (lookedIn.length === 0) continue;
    const places = lookedIn.join(", ");
    names.set(places, [...(names.get(places) ?? []), name]);
  }
  return [...names].map(([places, found]) => `${found.join(", ")}: looked in ${places}`);
}

// The finding about MPI: each library that loads, with its version, ABI and thread level, asked in its own process.

/** Milliseconds for entering and leaving MPI, most of them the library's. */
const patience = 10_000;

const answer = v.object({ version: v.string(), file: v.string(), threads: v.string() });

async function mpiFinding(environment: Environment): Promise<DoctorFinding> {
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
