/** A row of the schema, and the groups and commands that rows name. */
import type { KindInfo, OptionKind } from "./kind.ts";

/** Headings of the help, in order. */
export const optionGroups = {
  program: "Program",
  lowering: "Lowering options",
  schedule: "Schedule options",
  run: "Run options",
  output: "Output",
} as const;

export type OptionGroup = keyof typeof optionGroups;

/** Flags that assign several options: `NAME=VALUE,...`, where a name alone turns a switch on. */
export type AssigningFlag = "schedule" | "as" | "print" | "gpu" | "set";

export type CommandName = "lower" | "run" | "verify" | "explain" | "compile" | "bench" | "calibrate";

/** A row without the type of its value. */
export interface OptionRow {
  readonly kind: KindInfo;
  /** The value if the option is omitted. */
  readonly default?: unknown;
  /** The defaults of single commands. */
  readonly defaultOf?: { readonly [C in CommandName]?: unknown };
  /** Describes what single commands take if the option is omitted, where that is not a value. */
  readonly otherwiseOf?: { readonly [C in CommandName]?: string };
  /** The command cannot run without it. */
  readonly required?: true;
  /** Describes the default if it is not a single value. */
  readonly otherwise?: string;
  readonly help: string;
  /** What the command line calls it, if not by the option's name: commands that read what others write share a flag. */
  readonly flag?: string;
  /** A letter that stands for the flag. */
  readonly short?: string;
  /** The flag that assigns it, instead of one of its own: `--schedule p2p=linear`, `--print host`. */
  readonly within?: AssigningFlag;
  readonly group: OptionGroup;
  readonly commands: readonly CommandName[];
}

/** A row for each field of a layer's options, of the same type. */
export type RowsFor<Options> = {
  readonly [K in keyof Options]-?: OptionRow & { readonly kind: OptionKind<NonNullable<Options[K]>> };
};

/** The commands that compile a program. */
export const onPrograms = ["lower", "run", "verify", "explain", "compile"] as const;
/** The commands that measure a machine. */
export const onMachines = ["bench", "calibrate"] as const;
