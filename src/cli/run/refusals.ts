/** Options that a run refuses, because the program or another option leaves them nothing to do. */
import { fail } from "../../diagnostics/diagnostic.ts";
import { isDumpFile } from "../program/dump-file.ts";
import type { RunFlags } from "./run-flags.ts";

/** Throws `option-value`. */
export function nothingToCheckWith(file: string): never {
  return fail({
    code: "option-value",
    message: "--check needs a reference, and this host program has none",
    place: { kind: "option", text: "--check" },
    found: isDumpFile(file) ? `the dump ${file}` : `${file}: program(defaults, build) that returns a HostProgram`,
    expected: isDumpFile(file)
      ? "--reference FILE, where FILE returns a Fusion of the same inputs and outputs"
      : "program(defaults, build, { reference }) with a function that returns a Fusion of the same inputs and outputs",
    help: isDumpFile(file)
      ? "name a program file with --reference, or leave --check out"
      : "leave --check out, or name a reference",
  });
}

/** Throws `option-value`. */
export function requireTimesToExplain({ explain, interleaving }: RunFlags): void {
  if (!explain || interleaving === undefined) return;
  fail({
    code: "option-value",
    message: "a run with an interleaving has no times to explain: its streams take turns on one thread",
    place: { kind: "option", text: "--print explain" },
    found: `--print explain with --interleaving ${interleaving}`,
    expected: "a run by the back end's own threads or GPUs",
    help: "remove --interleaving, or predict with braid explain",
  });
}

/** Throws `option-value`. */
export function requireExplainedReport({ explain, report }: RunFlags): void {
  if (explain || report === undefined) return;
  fail({
    code: "option-value",
    message: "the report of a run shows it explained, so it needs --print explain",
    place: { kind: "option", text: `--report ${report}` },
    found: "--report without --print explain",
    expected: "--print explain --report FILE",
    help: "add --print explain, or leave --report out",
  });
}
