/** Makes flags from the schema of options: their parsing and their help. */
import { Command, Option } from "commander";
import {
  type CommandName,
  flagOfRow,
  type GivenOptions,
  namesOf,
  optionGroups,
  type OptionName,
  type OptionRow,
  options,
  optionRow,
  wordOf,
} from "../../compile/options.ts";
import { optionsOf } from "../../compile/options/as.ts";
import { type CompileGiven, compileNames } from "../../compile/options/flags-text.ts";
import type { KindInfo, OptionKind } from "../../compile/options/kind.ts";
import { requireOptions } from "../../compile/options/resolve.ts";
import { type Schedule, scheduleRows, scheduleWords } from "../../compile/options/schedule.ts";
import { fail } from "../../diagnostics/diagnostic.ts";
import { isOneOf, keysOf } from "../../support/invariant.ts";
import { suggestion } from "../../support/wording.ts";
import { isDumpFile } from "../program/dump-file.ts";

/** A command on a program file or a dump, with its flags. `argument`: `[file]` if it can do without. */
export function programCommand(name: CommandName, argument = "<file>", meaning = fileArgument): Command {
  return addFlags(new Command(name).argument(argument, meaning), name);
}

export const fileArgument =
  "program file (.ts, .js, .mjs), model (.mlir, .pt2, .fx, .py, .fusion) or dump (.hir, .txt, .log, .out)";

/**
 * Adds the flags of the options that the command `name` takes, and of `own` rows that are not in the schema, by group.
 */
export function addFlags(command: Command, name: CommandName, own: Readonly<Record<string, OptionRow>> = {}): Command {
  const rows: NamedRows = [...Object.entries(own), ...namesOf(name).map((each) => [each, optionRow(each)] as const)];
  const assigning = assigningFlags(rows);
  for (const group of keysOf(optionGroups)) {
    for (const [flag, each] of assigning) {
      if (each.row.group === group) command.addOption(assigningOption(command, flag, each));
    }
    for (const [each, row] of rows.filter(([, of]) => of.group === group)) {
      const usual = row.defaultOf?.[name] ?? row.default;
      // A default of the flag itself would add "(default: false)" to the help.
      if (usual === false || (row.within !== undefined && usual !== undefined))
        command.setOptionValueWithSource(each, usual, "default");
      if (row.within !== undefined || each === "schedule") continue;
      command.addOption(flagOption(each, row, usual, row.otherwiseOf?.[name] ?? defaultText(usual)));
    }
  }
  return command;
}

/** Its values become those of the options that it assigns. */
function assigningOption(command: Command, name: string, flag: AssigningFlag): Option {
  const { argument, help, otherwise, group } = flag.row;
  const read = assignedBy(name, flag);
  return new Option(`--${name} <${argument}>`, otherwise === undefined ? help : `${help} (default: ${otherwise})`)
    .helpGroup(`${optionGroups[group]}:`)
    .argParser((text) => {
      const { own, options } = read(text);
      for (const [each, value] of options) command.setOptionValueWithSource(each, value, "cli");
      return own;
    });
}

/** The options among `names` that the command line gives, without defaults. */
export function givenOptions<K extends OptionName>(command: Command, names: readonly K[]): GivenOptions<K> {
  const given = Object.fromEntries(
    names
      .filter((name) => command.getOptionValueSource(name) === "cli")
      .map((name): [string, unknown] => [name, command.getOptionValue(name)]),
  );
  requireOptions(names, given);
  return given;
}

/** The options that make the Program of `file`, of which `--as` gives several. */
export function compileGiven(command: Command, file: string): CompileGiven {
  return { ...optionsOf(givenOptions(command, ["as"]).as, isDumpFile(file)), ...givenOptions(command, compileNames) };
}

function flagOption(name: string, row: OptionRow, usual: unknown, usualText: string): Option {
  const { kind, group, otherwise } = row;
  const flag = flagOfRow(name, row);
  const help = otherwise === undefined ? row.help : `${row.help} (default: ${otherwise})`;
  const { argument, alone } = kind;
  const value = argument === null ? "" : alone === undefined ? ` <${argument}>` : ` [${argument}]`;
  const option = new Option(`${row.short === undefined ? "" : `-${row.short}, `}${flag}${value}`, help)
    .makeOptionMandatory(row.required ?? false)
    .helpGroup(`${optionGroups[group]}:`);
  // A flag may have another name than its option.
  option.attributeName = () => name;
  if (argument === null) return option;
  option.argParser(parserOf(flag, kind));
  if (alone !== undefined) option.preset(alone);
  return usual === undefined ? option : option.default(usual, usualText);
}

function defaultText(value: unknown): string {
  if (value instanceof Map || Array.isArray(value)) return "none";
  return String(value);
}

// Flags that assign several options: `--schedule auto,p2p=linear`, `--print host,timeline`, `--gpu capability=90`. A
// name alone turns a switch on. The rewrites that --schedule names become one object, the option `schedule`.

type NamedRows = readonly (readonly [name: string, row: OptionRow])[];

interface AssigningFlag {
  /** What the help says of the flag. */
  readonly row: Pick<OptionRow, "group" | "help" | "otherwise"> & { readonly argument: string };
  /** The rows of a command that it assigns, by the words that name them. */
  readonly members: ReadonlyMap<string, readonly [name: string, row: OptionRow]>;
}

/** What the help says of each. */
export const flags = {
  schedule: { ...options.schedule, argument: options.schedule.kind.argument ?? "" },
  print: { group: "output", argument: "what,..", help: "print" },
  set: { group: "program", argument: "name=values,..", help: "what is timed; several values are alternatives" },
  gpu: { group: "output", argument: "name=value,..", help: "the least GPU that the plan is for" },
} as const;

type Name = keyof typeof flags;

const names = keysOf(flags);

/** The assigning flags of a command with these rows. */
export function assigningFlags(rows: NamedRows): ReadonlyMap<Name, AssigningFlag> {
  const found = names.map((flag): readonly [Name, AssigningFlag] => {
    const own = [...rows, ...(flag === "schedule" ? Object.entries(scheduleRows) : [])];
    const members = new Map(
      own
        .filter(([, { within }]) => within === flag)
        .map(([name, row]) => [wordOf(name, row), [name, row] as const] as const),
    );
    const { help, ...row } = flags[flag];
    return [flag, { row: { ...row, help: `${help}${membersText(flag, members)}` }, members }];
  });
  return new Map(found.filter(([flag, { members }]) => members.size > 0 && (flag !== "schedule" || hasSchedule(rows))));
}

function hasSchedule(rows: NamedRows): boolean {
  return rows.some(([name]) => name === "schedule");
}

/** What a word means is one sentence, and a value of --schedule has a row in docs/schedules.md. */
function membersText(flag: Name, members: AssigningFlag["members"]): string {
  if (flag === "schedule") return `; names: ${[...members.keys()].join(", ")}`;
  const meanings = [...members].map(([word, [, { help, default: usual, otherwise }]]) => {
    const said = typeof usual === "number" ? String(usual) : otherwise;
    return said === undefined ? `${word} (${help})` : `${word} (${help}; default: ${said})`;
  });
  return `: ${meanings.join("; ")}`;
}

interface Assigned {
  /** Undefined for a flag that is no option itself. */
  readonly own: Schedule | undefined;
  readonly options: ReadonlyMap<string, unknown>;
}

/** Reads the texts of a flag. One that is repeated adds values, and replaces earlier ones. Throws `option-value`. */
function assignedBy(flag: string, { members }: AssigningFlag): (text: string) => Assigned {
  const assigned = new Map<string, unknown>();
  const rewrites = new Map<string, unknown>();
  let word: string | undefined;
  return (text) => {
    const here = new Set<string>();
    for (const part of partsOf(flag, text)) {
      if (flag === "schedule" && isOneOf(scheduleWords, part)) {
        if (word !== undefined) twice(`--${flag}`, part, [word]);
        word = part;
        continue;
      }
      const [name, value] = read(flag, part, members);
      const into = flag === "schedule" && name in scheduleRows ? rewrites : assigned;
      if (here.has(name)) twice(`--${flag}`, part, [text]);
      here.add(name);
      into.set(name, value);
    }
    if (word === "auto" && rewrites.size > 0) rewritesOfAuto(text, [...rewrites.keys()]);
    return { own: flag === "schedule" ? scheduleOf(word, rewrites) : undefined, options: assigned };
  };
}

/** Values of --set are lists themselves: `m=64,128,dtype=half` has two parts. */
function partsOf(flag: string, text: string): readonly string[] {
  const parts = flag === "set" ? text.split(/,(?=[^,=]*=)/u) : text.split(",");
  return parts.map((each) => each.trim());
}

/** A schedule that says something is taken as it is, unless it says `auto`. */
function scheduleOf(word: string | undefined, rewrites: ReadonlyMap<string, unknown>): Schedule {
  if (word === "auto") return "auto";
  return rewrites.size === 0 ? "as-written" : Object.fromEntries(rewrites);
}

function read(flag: string, part: string, members: AssigningFlag["members"]): readonly [name: string, value: unknown] {
  const [, word = "", value] = /^([^=]*)(?:=(.*))?$/su.exec(part) ?? [];
  const [name, row] = members.get(word) ?? unknownWord(flag, part, word, [...members.keys()]);
  const { kind } = row;
  const text = value ?? kind.alone ?? (kind.argument === null ? "true" : "");
  const found = kind.read(text);
  if (found !== undefined) return [name, found];
  const usage = `${word}=${kind.argument === null ? "false" : (kind.corrected?.(text) ?? kind.example)}`;
  return badValue(
    `--${flag}`,
    part,
    `${word}=VALUE, where VALUE is ${kind.expected}`,
    `write it like --${flag} ${usage}`,
  );
}

function unknownWord(flag: string, part: string, word: string, known: readonly string[]): never {
  const all = flag === "schedule" ? [...scheduleWords, ...known] : known;
  const example =
    flag === "schedule" ? "inPlace,computeStreams=2" : flag === "print" ? known.join(",") : `${known[0]}=...`;
  const help = suggestion(word === "" ? "-" : word, all, `write it like --${flag} ${example}`);
  return badValue(`--${flag}`, part, `some of ${all.join(", ")}, with commas between them`, help);
}

function rewritesOfAuto(text: string, rewrites: readonly string[]): never {
  return badValue(
    "--schedule",
    text,
    "auto alone or with options of lowering: it chooses the rewrites",
    `leave out auto, or ${rewrites.join(" and ")}`,
  );
}

// Reads the values of flags from text.

/** Of a flag that may be repeated, if its kind says so. Throws `option-value`. */
function parserOf(flag: string, kind: KindInfo): (text: string) => unknown {
  const earlier: string[] = [];
  return (text) => {
    const value = readValue(flag, kind, text);
    if (kind.separator === null) return value;
    const all = kind.read([...earlier, text].join(kind.separator));
    if (all === undefined) twice(flag, text, earlier);
    earlier.push(text);
    return all;
  };
}

function twice(flag: string, text: string, earlier: readonly string[]): never {
  const expected = `each name at most once; ${earlier.join(" and ")} came before`;
  return badValue(flag, text, expected, `remove one of the two ${flag}`);
}

/** Parses a flag's text. Throws `option-value`. */
export function readValue<T>(flag: string, kind: ReadKind<T>, text: string): T {
  const part = badPart(kind, text);
  const written = kind.corrected?.(part) ?? kind.example;
  const between = kind.alone === undefined ? " " : "=";
  const help = `write it like ${flag.startsWith("--") ? `${flag}${between}` : ""}${written}`;
  return kind.read(text) ?? badValue(flag, part, kind.expected, help);
}

type ReadKind<T> = Pick<OptionKind<T>, "read" | "expected" | "example" | "corrected" | "separator" | "alone">;

/** The first bad value of a list. */
function badPart({ read, separator }: ReadKind<unknown>, text: string): string {
  const parts = separator === null ? [] : text.split(separator);
  return parts.find((part) => read(part) === undefined) ?? text;
}

function badValue(flag: string, text: string, expected: string, help: string): never {
  return fail("option-value", `option ${flag} has a bad value`, {
    place: { kind: "option", text: flag },
    found: text === "" ? "nothing" : text,
    expected,
    help,
  });
}
