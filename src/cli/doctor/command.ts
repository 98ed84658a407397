/** `braid doctor`: reports what this machine has that Braid can use, and what is missing. */
import Table from "cli-table3";
import { Command } from "commander";
import type { Finding } from "./finding.ts";
import { machineFindings } from "./machine.ts";
import { mpiFinding } from "./mpi.ts";
import { nativeFindings } from "./native.ts";
import { processEnvironment } from "../ranks/where-to-run.ts";
import { type ExitStatus, exitStatus } from "../exit-status.ts";
import { plainBorders, trimmedLines } from "../terminal/table-style.ts";
import type { Colors, Terminal } from "../terminal/terminal.ts";

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

function render(findings: readonly Finding[], colors: Colors): string {
  const marks: { readonly [S in Finding["status"]]: string } = {
    ok: colors.green("ok"),
    missing: colors.yellow("missing"),
    "too-old": colors.red("too old"),
  };
  const table = new Table({ ...plainBorders, head: ["", "", "found", "gives"] });
  for (const { name, status, detail, gives } of findings) table.push([marks[status], name, detail, gives]);
  return [...trimmedLines(table.toString()), "", ...searches(findings), ""].join("\n");
}

/** The places searched for missing things: one line for all that have the same places. */
function searches(findings: readonly Finding[]): readonly string[] {
  const names = new Map<string, string[]>();
  for (const { name, lookedIn } of findings) {
    if (lookedIn.length === 0) continue;
    const places = lookedIn.join(", ");
    names.set(places, [...(names.get(places) ?? []), name]);
  }
  return [...names].map(([places, found]) => `${found.join(", ")}: looked in ${places}`);
}
