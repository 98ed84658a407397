/** Output options: what is printed, and which files are written. */
import { defaultDumpStyle, dumpStyles } from "../../ir/print-style.ts";
import { oneOf, text, toggle } from "./kinds.ts";
import { onPrograms, type OptionRow } from "./row.ts";

const output = { group: "output", commands: ["run"] } as const;

export const outputRows = {
  printHost: { ...output, kind: toggle, default: false, help: "print the host program of rank 0 first" },
  timeline: {
    ...output,
    commands: ["run", "explain"],
    kind: toggle,
    default: false,
    help: "draw the streams of a rank over the last run, or the explained one, and print how much communication they hid",
  },
  explain: {
    ...output,
    kind: toggle,
    default: false,
    help: "say what is exposed in the last run and why, beside the prediction if there is a --profile",
  },
  all: {
    ...output,
    commands: ["explain"],
    kind: toggle,
    default: false,
    help: "print every candidate schedule, and predict other options and numbers of chunks",
  },
  trace: { ...output, kind: text("file", "trace.json"), help: "write the last run as a trace for ui.perfetto.dev" },
  outputDir: {
    ...output,
    kind: text("folder", "out"),
    help: "write each whole output of the last run as a file to this folder, which is made if needed",
  },
  outputFormat: {
    ...output,
    kind: oneOf(["npy", "safetensors"]),
    otherwise: "npy",
    help: "with --output-dir: one .npy file per output, or one outputs.safetensors",
  },
  flightDir: {
    ...output,
    kind: text("folder", "flight"),
    otherwise: "a temporary folder, which the message names",
    help: "write the flight record of a run that fails, hangs or gets SIGUSR1 to this folder",
  },
  style: {
    ...output,
    commands: ["lower"],
    kind: oneOf(dumpStyles),
    default: defaultDumpStyle,
    help: "era of nvFuser's dump format whose spelling to print; the statements stay Braid's",
  },
  printAfter: {
    ...output,
    commands: ["lower"],
    kind: text("all|pass", "all"),
    help: "print the program after each pass, or after the named one, instead of the host program",
  },
  printReshardings: {
    ...output,
    commands: ["lower"],
    kind: toggle,
    default: false,
    help: "print what moves between devices, in bytes, and why, instead of the host program",
  },
  printLists: {
    ...output,
    commands: ["lower"],
    kind: toggle,
    default: false,
    help: "print the rank's command list as it runs, under the schedule, instead of the host program",
  },
  report: {
    ...output,
    commands: ["run", "verify", "explain"],
    kind: text("file", "report.html"),
    help: "write one HTML page: the timeline of every stream, and why time is exposed or what was found",
  },
  repair: {
    ...output,
    commands: ["verify"],
    kind: text("file", "repaired.hir"),
    help: "write the host programs with the statements that they lack, as a dump that verifies",
  },
  flight: {
    ...output,
    commands: ["verify"],
    kind: text("folder", "flight"),
    help: "compare the flight records of all ranks in this folder, instead of verifying FILE",
  },
  verbose: {
    ...output,
    commands: ["verify"],
    kind: toggle,
    default: false,
    help: "print every finding, also those with the cause of another, and the repair in commands",
  },
  counterexample: {
    ...output,
    commands: ["verify"],
    kind: text("file", "order.txt"),
    help: "write the interleaving of the first finding that has one, for braid run --check --interleaving",
  },
  out: {
    ...output,
    commands: ["calibrate"],
    required: true,
    kind: text("file", "machine.json"),
    help: "write the profile to this file, as JSON",
  },
  json: {
    ...output,
    commands: [...onPrograms, "bench"],
    kind: toggle,
    default: false,
    help: "print one JSON document instead of text",
  },
} as const satisfies Readonly<Record<string, OptionRow>>;
