/**
 * Flags that assign several options: `--schedule auto,p2p=linear`, `--print host,timeline`, `--gpu capability=90`. A
 * name alone turns a switch on. The rewrites that --schedule names become one object, the option `schedule`.
 */
import { wordOf, type OptionRow, options } from "../../compile/options.ts";
import { type Schedule, scheduleRows, scheduleWords } from "../../compile/options/schedule.ts";
import { isOneOf } from "../../support/is-one-of.ts";
import { keysOf } from "../../support/keys-of.ts";
import { suggestion } from "../../support/nearest.ts";
import { badValue, twice } from "./read-value.ts";

/** Rows by the names of their options. */
export type NamedRows = readonly (readonly [name: string, row: OptionRow])[];

export interface AssigningFlag {
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

export interface Assigned {
  /** Undefined for a flag that is no option itself. */
  readonly own: Schedule | undefined;
  readonly options: ReadonlyMap<string, unknown>;
}

/** Reads the texts of a flag. One that is repeated adds values, and replaces earlier ones. Throws `option-value`. */
export function assignedBy(flag: string, { members }: AssigningFlag): (text: string) => Assigned {
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
