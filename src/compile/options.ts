/**
 * The schema of options, one row each: kind of value, default, group, commands and help sentence. The flag follows from
 * the name, unless the row says another one. The types of the API, the flags and their help, the options of `bench --impl`, what ranks compare and the
 * tables in docs/command-line.md are made from these rows. A new option is a row in the file of its group, and a field
 * of the interface that the row satisfies.
 */
import { keysOf } from "../support/keys-of.ts";
import type { KindInfo, OptionKind } from "./options/kind.ts";
import { loweringRows, recordingRows } from "./options/lowering.ts";
import { outputRows } from "./options/output.ts";
import { programRows } from "./options/program.ts";
import type { CommandName, OptionRow } from "./options/row.ts";
import { runRows } from "./options/run.ts";
import { choiceRows, scheduleRows } from "./options/schedule.ts";

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
  return optionNames.filter((name): name is NamesOf<C> => rowOf(name).commands.includes(command));
}

export function rowOf(name: OptionName): OptionRow {
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
