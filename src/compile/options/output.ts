/** Output options: what is printed, and which files are written. */
import { text, toggle } from "./kinds.ts";
import { onPrograms, type OptionRow } from "./row.ts";

const output = { group: "output", commands: ["run"] } as const;

/** Words of --print. */
const printed = { group: "output", within: "print", kind: toggle, default: false } as const;

export const outputRows = {
  printHost: { ...printed, commands: ["run"], flag: "host", help: "the host program of rank 0, first" },
  timeline: {
    ...printed,
    commands: ["run", "explain"],
    help: "the streams of a rank over the last run, or the explained one, and how much communication they hid",
  },
  explain: {
    ...printed,
    commands: ["run"],
    help: "what is exposed in the last run and why, beside the prediction if there is a --profile",
  },
  printAfter: {
    ...output,
    commands: ["lower"],
    within: "print",
    flag: "passes",
    kind: { ...text("pass", "deallocate"), alone: "all" },
    help: "the program after each pass, or after the named one, instead of the host program",
  },
  printReshardings: {
    ...printed,
    commands: ["lower"],
    flag: "reshardings",
    help: "what moves between devices, in bytes, and why, instead of the host program",
  },
  printLists: {
    ...printed,
    commands: ["lower"],
    flag: "lists",
    help: "the rank's command list as it runs, under the schedule, instead of the host program",
  },
  all: {
    ...printed,
    commands: ["explain"],
    help: "every candidate schedule, and predictions with other options and numbers of chunks",
  },
  verbose: {
    ...printed,
    commands: ["verify"],
    flag: "all",
    help: "every finding, also those with the cause of another, and the repair in commands",
  },
  trace: { ...output, kind: text("file", "trace.json"), help: "write the last run as a trace for ui.perfetto.dev" },
  report: {
    ...output,
    commands: ["run", "verify", "explain"],
    kind: text("file", "report.html"),
    help: "write one HTML page: the timeline of every stream, and why time is exposed or what was found",
  },
  outputDir: {
    ...output,
    flag: "out",
    short: "o",
    kind: text("folder", "out/"),
    help: "write the whole outputs of the last run: a .npy file each to this folder, or all to one .safetensors file",
  },
  out: {
    ...output,
    short: "o",
    commands: ["calibrate"],
    required: true,
    kind: text("file", "machine.json"),
    help: "write the profile to this file, as JSON",
  },
  flightDir: {
    ...output,
    flag: "flight",
    kind: text("folder", "flight"),
    otherwise: "a temporary folder, which the message names",
    help: "write the flight record of a run that fails, hangs or gets SIGUSR1 to this folder",
  },
  flight: {
    ...output,
    commands: ["verify"],
    kind: text("folder", "flight"),
    help: "compare the flight records of all ranks in this folder, instead of verifying FILE",
  },
  counterexample: {
    ...output,
    commands: ["verify"],
    flag: "interleaving",
    kind: text("file", "order.txt"),
    help: "write the interleaving of the first finding that has one, for braid run --check --interleaving",
  },
  repair: {
    ...output,
    commands: ["verify"],
    kind: text("file", "repaired.hir"),
    help: "write the host programs with the statements that they lack, as a dump that verifies",
  },
  json: {
    ...output,
    commands: [...onPrograms, "bench"],
    kind: toggle,
    default: false,
    help: "print one JSON document instead of text",
  },
} as const satisfies Readonly<Record<string, OptionRow>>;
