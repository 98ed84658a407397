/**
 * The schema of options, one row each: kind of value, default, group, commands and help sentence. The flag follows from
 * the name, unless the row says another one. The types of the API, the flags and their help, the options of
 * `bench --impl`, what ranks compare and the tables in docs/command-line.md are made from these rows. A new option is a
 * row in the file of its group, and a field of the interface that the row satisfies.
 */
import { mostDevices } from "../host/program-file.ts";
import { keysOf } from "../support/invariant.ts";
import { fidelity } from "./options/as.ts";
import type { KindInfo, OptionKind } from "./options/kind.ts";
import {
  assignments,
  gradientsOf,
  halfOf,
  parameterValues,
  sizeValues,
  text,
  toggle,
  wholeNumber,
  wholeValues,
} from "./options/kinds.ts";
import { loweringRows, recordingRows } from "./options/lowering.ts";
import { type CommandName, onMachines, onPrograms, type OptionRow } from "./options/row.ts";
import { runRows } from "./options/run.ts";
import { choiceRows, scheduleRows } from "./options/schedule.ts";

// Program options: devices, parameters, sizes, and what to read of a file.

const program = { group: "program", commands: onPrograms } as const;

const programRows = {
  devices: {
    ...program,
    commands: [...onPrograms, ...onMachines],
    kind: wholeNumber(1, 8, "n", mostDevices),
    default: 8,
    defaultOf: { bench: 4, calibrate: 4 },
    help: "number of devices",
  },
  set: {
    ...program,
    kind: assignments(parameterValues, "M=32"),
    default: new Map(),
    help: "replace a parameter of the program by another number or dtype; may be repeated",
  },
  sizes: {
    ...program,
    kind: assignments(sizeValues, "i0=8"),
    default: new Map(),
    help: "size of a symbolic extent, by its printed name; may be repeated",
  },
  scalar: {
    ...program,
    kind: assignments(wholeValues, "flag=1"),
    default: new Map(),
    help: "value of a scalar that a host program leaves open, such as a predicate (1: true); may be repeated",
  },
  reference: {
    ...program,
    commands: ["run", "verify"],
    kind: text("file", "reference.ts"),
    help: "for a dump: a program file whose Fusion braid run --check compares with; --set is for its parameters",
  },
  entry: {
    ...program,
    kind: text("function", "main"),
    otherwise: "main, or the only one",
    help: "the function to read of a model file, or the container of a dump that all ranks run, counted from 0",
  },
  plan: {
    ...program,
    kind: text("file|auto", "plan.json"),
    help: "for a model file without shardings (.pt2): how its modules lie on devices; auto: the plan of its family",
  },
  gradients: {
    ...program,
    kind: gradientsOf,
    help: "for a .pt2 model: add the gradients of its parameters, or of these parameters and arguments; the cotangent of its outputs is an input of this name",
  },
  half: {
    ...program,
    kind: halfOf,
    otherwise: "both",
    help: "with --gradients: only this pass; what the backward pass reads is an output of the forward pass: all of it, results of matmuls (minimal), or what is best in N bytes of whole tensors",
  },
  as: {
    ...program,
    kind: fidelity,
    otherwise: "nvfuser for a dump, else braid",
    help: "nvfuser or braid: whose host programs these are, and with :2025-05 in whose spelling; nvfuser's have its limits, free no buffers and run on PyTorch's allocator (docs/nvfuser.md)",
  },
  rank: {
    ...program,
    commands: ["lower"],
    kind: wholeNumber(0, 1),
    default: 0,
    help: "the rank to lower for",
  },
} as const satisfies Readonly<Record<string, OptionRow>>;

// Output options: what is printed, and which files are written.

const output = { group: "output", commands: ["run"] } as const;

/** Words of --print. */
const printed = { group: "output", within: "print", kind: toggle, default: false } as const;

const outputRows = {
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
    help: "every finding, also those with the cause of another",
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

export { type CommandName, type OptionGroup, optionGroups, type OptionRow } from "./options/row.ts";

export const options = {
  ...programRows,
  ...loweringRows,
  ...recordingRows,
  ...scheduleRows,
  ...choiceRows,
  ...runRows,
  ...outputRows,
} as const;

export type OptionName = keyof typeof options;
export type RecordingName = keyof typeof recordingRows;
export type LoweringName = keyof typeof loweringRows;
export type ScheduleName = keyof typeof scheduleRows;

export const optionNames: readonly OptionName[] = keysOf(options);
export const recordingNames: readonly RecordingName[] = keysOf(recordingRows);
export const loweringNames: readonly LoweringName[] = keysOf(loweringRows);
export const scheduleNames: readonly ScheduleName[] = keysOf(scheduleRows);

/** The type of a kind's values. */
type ValueOf<Kind extends KindInfo> = Kind extends OptionKind<infer Value> ? Value : never;

export type OptionValue<K extends OptionName> = ValueOf<(typeof options)[K]["kind"]>;

/** Options of the API, all optional. */
export type GivenOptions<K extends OptionName> = {
  readonly [P in K]?: OptionValue<P>;
};

/** The values of rows outside the schema, which only one command takes. */
export type ValuesOf<Rows extends Readonly<Record<string, { readonly kind: KindInfo }>>> = {
  readonly [K in keyof Rows]?: ValueOf<Rows[K]["kind"]>;
};

type WithDefault = {
  [K in OptionName]: (typeof options)[K] extends { default: unknown } | { required: true } ? K : never;
}[OptionName];

/** The options that a command takes. */
export type NamesOf<C extends CommandName> = {
  [K in OptionName]: C extends (typeof options)[K]["commands"][number] ? K : never;
}[OptionName];

export function namesOf<C extends CommandName>(command: C): readonly NamesOf<C>[] {
  return optionNames.filter((name): name is NamesOf<C> => optionRow(name).commands.includes(command));
}

export function optionRow(name: OptionName): OptionRow {
  return options[name];
}

/** Options with defaults filled in. */
export type Options<K extends OptionName> = {
  readonly [P in K & WithDefault]: OptionValue<P>;
} & {
  readonly [P in Exclude<K, WithDefault>]?: OptionValue<P>;
};

/** `--devices-per-host`, and `--schedule inPlace` for an option that another flag assigns. */
export function flagOf(name: OptionName): string {
  return flagOfRow(name, options[name]);
}

/** The flag of a row, which may be outside the schema. */
export function flagOfRow(name: string, row: OptionRow): string {
  const word = wordOf(name, row);
  if (row.within !== undefined) return `--${row.within} ${word}`;
  return word.length === 1 ? `-${word}` : `--${word.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

/** What the command line calls an option. */
export function wordOf(name: string, { flag }: OptionRow): string {
  return flag ?? name;
}
