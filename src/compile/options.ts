/**
 * The schema of options, one row each: kind of value, default, group, commands and help sentence. The flag follows from the name. The types
 * of the API, the flags and their help, the options of `bench --impl`, what ranks compare and the tables in docs/command-line.md are made
 * from these rows. A new option is a row here, and a field of the interface that its group satisfies.
 */
import { defaultDumpStyle, dumpStyles } from "../ir/print-style.ts";
import type { LoweringOptions } from "../passes/options.ts";
import type { ScheduleOptions } from "../schedule/schedule.ts";
import { keysOf } from "../support/keys-of.ts";
import type { KindInfo, OptionKind } from "./options/kind.ts";
import {
  anyNumbers,
  groupSizes,
  listOf,
  namedNumbers,
  oneOf,
  seconds,
  sizeValues,
  text,
  toggle,
  wholeNumber,
} from "./options/kinds.ts";
import { longFlag } from "./options/renamed.ts";

/** Headings of the help, in order. */
export const optionGroups = {
  program: "Program",
  lowering: "Lowering options",
  schedule: "Schedule options",
  run: "Run options",
  output: "Output",
} as const;

export type OptionGroup = keyof typeof optionGroups;

export type CommandName = "lower" | "run" | "verify" | "bench" | "calibrate";

/** A row without the type of its value. */
export interface OptionRow {
  readonly kind: KindInfo;
  /** The value if none is given. */
  readonly default?: unknown;
  /** The defaults of single commands. */
  readonly defaultOf?: { readonly [C in CommandName]?: unknown };
  /** The command cannot run without it. */
  readonly required?: true;
  /** What holds if none is given, where that is no one value. */
  readonly otherwise?: string;
  /** What the flag does: for a switch that is on by default, what `--no-...` does. */
  readonly help: string;
  readonly group: OptionGroup;
  readonly commands: readonly CommandName[];
}

/** A row for each field of the interface that a layer takes, of the same type. */
type RowsFor<Options> = {
  readonly [K in keyof Options]-?: OptionRow & { readonly kind: OptionKind<NonNullable<Options[K]>> };
};

const onPrograms = ["lower", "run", "verify"] as const;
const onMachines = ["bench", "calibrate"] as const;

const program = { group: "program", commands: onPrograms } as const;
const lowering = { group: "lowering", commands: onPrograms } as const;
const schedule = { group: "schedule", commands: onPrograms } as const;
const run = { group: "run", commands: ["run"] } as const;
const output = { group: "output", commands: ["run"] } as const;

const programRows = {
  devices: {
    ...program,
    commands: [...onPrograms, ...onMachines],
    kind: wholeNumber(1, 8),
    default: 8,
    defaultOf: { bench: 4, calibrate: 4 },
    help: "number of devices",
  },
  set: {
    ...program,
    kind: namedNumbers(anyNumbers, "M=32"),
    default: new Map(),
    help: "replace a parameter of the program; may be repeated",
  },
  sizes: {
    ...program,
    kind: namedNumbers(sizeValues, "i0=8"),
    default: new Map(),
    help: "size of a symbolic extent, by its printed name; may be repeated",
  },
  container: {
    ...program,
    kind: wholeNumber(0, 0),
    help: "for a dump: the container that all ranks run, counted from 0",
  },
  roots: {
    ...program,
    kind: oneOf(["era", "devices", "positions"]),
    default: "era",
    help: "for a dump: whether constant roots are device ids or positions in the team; era: as the dump's era has them",
  },
  rank: {
    ...program,
    commands: ["lower"],
    kind: wholeNumber(0, 1),
    default: 0,
    help: "the rank to lower for",
  },
} as const satisfies Readonly<Record<string, OptionRow>>;

const loweringRows = {
  backend: {
    ...lowering,
    kind: oneOf(["nccl", "cuda", "ucc"]),
    default: "nccl",
    help: "communication backend that is lowered to; --on says where the program runs",
  },
  p2p: {
    ...lowering,
    kind: oneOf(["linear", "rotated", "broadcast"]),
    default: "rotated",
    help: "how a DID axis that becomes a Stream axis is lowered: linear for nccl, rotated for nccl and cuda, broadcast for all",
  },
  protocol: {
    ...lowering,
    kind: oneOf(["get", "put"]),
    default: "get",
    help: "who copies in one-sided point-to-point: the receiver (get) or the sender (put); with --backend cuda only",
  },
  overlap: {
    ...lowering,
    kind: toggle,
    default: true,
    help: "ignore Stream axes: run communication and computation serially",
  },
  interStreamSync: {
    ...lowering,
    kind: toggle,
    default: false,
    help: "make stream i+1 wait for the point-to-point communication of stream i, in the first round over the streams",
  },
  insertReshardingAfter: {
    ...lowering,
    kind: toggle,
    default: false,
    help: "insert reshardings after the op instead of before it",
  },
  accumulate: {
    ...lowering,
    kind: toggle,
    default: false,
    help: "allow Stream on a contracted axis: a loop adds the matmuls of the chunks to the output one after the other",
  },
  deallocate: { ...lowering, kind: toggle, default: true, help: "leave out Deallocate statements" },
  shrink: { ...lowering, kind: toggle, default: true, help: "keep loop-local buffers at full extent" },
  disablePass: {
    ...lowering,
    kind: listOf(text("name", "deallocate"), "name"),
    default: [],
    help: "leave out a pass, by name; may be repeated",
  },
} as const satisfies RowsFor<LoweringOptions>;

const recordingRows = {
  streams: {
    ...lowering,
    kind: wholeNumber(1, 4),
    default: 4,
    help: "worker streams that a Stream loop alternates over",
  },
} as const satisfies Readonly<Record<string, OptionRow>>;

const scheduleRows = {
  copyStream: {
    ...schedule,
    kind: oneOf(["dedicated", "inline"]),
    otherwise: "dedicated with --on cuda, else inline",
    help: "run copies between devices on a copy stream of each device, or where the host program issues them",
  },
  inPlace: {
    ...schedule,
    kind: toggle,
    default: false,
    help: "leave out local copies whose source, or destination, can be used instead",
  },
  ownLast: {
    ...schedule,
    kind: toggle,
    default: false,
    help: "compute the chunks that no other device waits for last",
  },
  splitChunks: {
    ...schedule,
    kind: wholeNumber(1, 2),
    help: "cut each copy between devices, and the GEMM that uses its chunk, into n parts",
  },
  mergeGemms: {
    ...schedule,
    kind: groupSizes("1-3-4"),
    help: "merge the GEMMs of several chunks into one: sizes of the groups in order of arrival, such as 1-3-4",
  },
  computeStreams: {
    ...schedule,
    kind: wholeNumber(1, 1),
    help: "run GEMMs on n compute streams in turn, and copies between devices on a copy stream",
  },
  earlySums: {
    ...schedule,
    kind: groupSizes("4"),
    help: "add partial results as they arrive: sizes of the groups, such as 4; may change the last bits",
  },
  kernelCopies: {
    ...schedule,
    kind: wholeNumber(1, 16_000_000, "bytes"),
    help: "copy at most this many bytes between devices by a small kernel instead of the copy engines (--on cuda)",
  },
  batchSignals: {
    ...schedule,
    kind: toggle,
    default: false,
    help: "wait for all peers before the first copy, signal all peers after the last",
  },
  smMargin: {
    ...schedule,
    kind: wholeNumber(1, 8),
    help: "SMs that GEMMs leave free for kernels that access peers' memory at the same time (--on cuda)",
  },
} as const satisfies RowsFor<ScheduleOptions>;

const choiceRows = {
  scheduleChoice: {
    ...schedule,
    kind: oneOf(["given", "auto"]),
    default: "given",
    help: "use the schedule options as they are given, or choose the fastest schedule by simulation with --profile",
  },
  profile: {
    ...schedule,
    commands: [...onPrograms, "bench"],
    kind: text("file", "4xH200"),
    help: "machine profile to choose with: a file that braid calibrate wrote, or the name of a shipped profile",
  },
} as const satisfies Readonly<Record<string, OptionRow>>;

const runRows = {
  on: {
    ...run,
    commands: [...onPrograms, ...onMachines],
    kind: oneOf(["cpu", "cuda"]),
    default: "cpu",
    help: "where the program runs",
  },
  seed: {
    ...run,
    commands: ["run", "bench"],
    kind: wholeNumber(0, 1, "s"),
    default: 0,
    help: "seed of the random inputs",
  },
  repeat: { ...run, kind: wholeNumber(1, 10), default: 1, help: "run n times" },
  check: {
    ...run,
    kind: toggle,
    default: false,
    help: "compare each output with the oracle and print the largest error",
  },
  interleaving: {
    ...run,
    kind: text("order", "seed:1"),
    help: "order in which streams take turns on one thread: seed:S, hold:RANK:COMMAND, or a file of RANK:STREAM lines",
  },
  verify: {
    ...run,
    kind: oneOf(["on", "off"]),
    otherwise: "on, but off with --interleaving",
    help: "refuse a program in which the verifier finds something",
  },
  blas: {
    ...run,
    kind: oneOf(["auto", "off"]),
    default: "auto",
    help: "run float and double GEMMs by a BLAS of the system if there is one (auto), or get the same bits on every machine (off)",
  },
  graph: {
    ...run,
    kind: oneOf(["auto", "on", "off"]),
    default: "auto",
    help: "replay runs as CUDA graphs (--on cuda)",
  },
  timeout: {
    ...run,
    commands: ["run", "bench"],
    kind: seconds,
    default: 30,
    defaultOf: { bench: 60 },
    help: "end a run that takes longer than this many seconds",
  },
} as const satisfies Readonly<Record<string, OptionRow>>;

const outputRows = {
  printHost: { ...output, kind: toggle, default: false, help: "print the host program of rank 0 first" },
  timeline: {
    ...output,
    kind: toggle,
    default: false,
    help: "draw the streams of rank 0 over the last run, and print how much communication they hid",
  },
  trace: { ...output, kind: text("file", "trace.json"), help: "write the last run as a trace for ui.perfetto.dev" },
  style: {
    ...output,
    commands: ["lower"],
    kind: oneOf(dumpStyles),
    default: defaultDumpStyle,
    help: "era of nvFuser's dump format to print in",
  },
  printAfter: {
    ...output,
    commands: ["lower"],
    kind: text("all|pass", "all"),
    help: "print the program after each pass, or after the one that is named, instead of the host program",
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
    commands: ["verify"],
    kind: text("file", "report.html"),
    help: "write the findings as one HTML page",
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
export type LoweringName = keyof typeof loweringRows;
export type ScheduleName = keyof typeof scheduleRows;

export const optionNames: readonly OptionName[] = keysOf(options);
export const loweringNames: readonly LoweringName[] = keysOf(loweringRows);
export const scheduleNames: readonly ScheduleName[] = keysOf(scheduleRows);

/** The type of a kind's values. */
type ValueOf<Kind extends KindInfo> = Kind extends OptionKind<infer Value> ? Value : never;

export type OptionValue<K extends OptionName> = ValueOf<(typeof options)[K]["kind"]>;

/** Options as the API takes them, each of which may be left out. */
export type GivenOptions<K extends OptionName> = {
  readonly [P in K]?: OptionValue<P>;
};

/** The values of rows that are not in the schema, since only one command takes them. */
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
  return optionNames.filter((name): name is NamesOf<C> => rowOf(name).commands.includes(command));
}

export function rowOf(name: OptionName): OptionRow {
  return options[name];
}

/** The same with defaults filled in. */
export type Options<K extends OptionName> = {
  readonly [P in K & WithDefault]: OptionValue<P>;
} & {
  readonly [P in Exclude<K, WithDefault>]?: OptionValue<P>;
};

/** `-m`, `--in-place`, and `--no-overlap` for a switch that is on by default. */
export function flagOf(name: OptionName): string {
  return flagOfRow(name, options[name]);
}

/** The same of a row that is not in the schema, since only one command takes it. */
export function flagOfRow(name: string, row: OptionRow): string {
  if (name.length === 1) return `-${name}`;
  return row.kind.argument === null && row.default === true ? longFlag(`no-${name}`) : longFlag(name);
}
