/** Options as flags of the command line. */
import {
  flagOf,
  type GivenOptions,
  type LoweringName,
  loweringNames,
  type OptionName,
  type OptionValue,
  type RecordingName,
  recordingNames,
  optionRow,
  wordOf,
} from "../options.ts";
import { nvfuserLowering } from "./as.ts";
import { pickOptions, printOption } from "./resolve.ts";

/** The options that make the Program of a file. */
export const compileNames: readonly CompileName[] = [...loweringNames, ...recordingNames, "schedule"];
type CompileName = LoweringName | RecordingName | "schedule";

/** Without defaults: those that are given. They restrict the choice of a schedule. */
export type CompileGiven = GivenOptions<CompileName>;

/** `--backend cuda --schedule inPlace`: nothing for an option that is not given or has its default. */
export function flagsText(given: CompileGiven): string {
  return [...flagTexts(compileNames, given).values()].join(" ");
}

/**
 * What to add to a command line, or to take from it, to get other options: `--schedule p2p=linear, without --backend
 * cuda`. A value of --schedule that is added takes the place of an earlier one.
 */
export function flagChangeText(now: CompileGiven, then: CompileGiven): string {
  const [before, after] = [flagParts(compileNames, now), flagParts(compileNames, then)];
  const added = difference(after, before, (part, others) => others.includes(part));
  const removed = difference(before, after, (part, others) => others.some((each) => wordIn(each) === wordIn(part)));
  return [added.join(" "), removed.length === 0 ? "" : `without ${removed.join(" ")}`].filter(Boolean).join(", ");
}

type Parts = ReadonlyMap<string, readonly string[]>;

/** The flags of `from` with the parts that `others` do not have. */
function difference(
  from: Parts,
  others: Parts,
  has: (part: string, of: readonly string[]) => boolean,
): readonly string[] {
  return [...from].flatMap(([flag, parts]) => {
    const left = parts.filter((part) => !has(part, others.get(flag) ?? []));
    return left.length === 0 ? [] : [textOf(flag, left)];
  });
}

/** `p2p` of `p2p=linear`; a flag of its own is one part, whatever its value. */
function wordIn(part: string): string {
  return part.startsWith("-") ? "" : part.replace(/=.*$/su, "");
}

/**
 * What a shell takes, by flag: `--rank 1`, `--check`, `--schedule inPlace,p2p=linear`. Nothing for an option that is not
 * given or as usual: `usual`, or else its default.
 */
export function flagTexts<K extends OptionName>(
  names: readonly K[],
  given: GivenOptions<K>,
  usual: { readonly [P in OptionName]?: unknown } = {},
): ReadonlyMap<string, string> {
  return new Map([...flagParts(names, given, usual)].map(([flag, parts]) => [flag, textOf(flag, parts)]));
}

/** Of a flag that assigns options, the values; else the flag with its value. */
function flagParts<K extends OptionName>(
  names: readonly K[],
  given: GivenOptions<K>,
  usual: { readonly [P in OptionName]?: unknown } = {},
): Parts {
  const own = new Map<string, readonly string[]>();
  const assigned = new Map<string, readonly string[]>();
  const picked: GivenOptions<OptionName> = pickOptions(names, given);
  const { nvfuserLimits = false } = picked;
  const expected: Readonly<Record<string, unknown>> = { ...usual, ...(nvfuserLimits ? nvfuserLowering : {}) };
  // The words of --schedule come first: they say what its values change.
  for (const name of names.toSorted((a, b) => Number(b === "schedule") - Number(a === "schedule"))) {
    const part = partOf(name, picked[name], expected[name] ?? optionRow(name).default);
    if (part === null) continue;
    const flag = name === "schedule" ? name : optionRow(name).within;
    if (flag === undefined) own.set(flagOf(name), [part]);
    else if (flag !== "as") {
      const parts = name === "schedule" ? part.split(",") : [part];
      assigned.set(`--${flag}`, [...(assigned.get(`--${flag}`) ?? []), ...parts]);
    }
  }
  if (nvfuserLimits && !own.has("--as")) own.set("--as", ["--as nvfuser"]);
  return new Map([...own, ...assigned]);
}

function textOf(flag: string, parts: readonly string[]): string {
  return parts[0]?.startsWith("-") === true ? parts.join(" ") : `${flag} ${shellQuoted(parts.join(","))}`;
}

/** A flag with its value, or the part of the flag that assigns it; null if it goes without saying. */
function partOf<K extends OptionName>(name: K, value: OptionValue<K> | undefined, usual: unknown): string | null {
  const row = optionRow(name);
  const { alone = row.kind.argument === null ? "true" : undefined } = row.kind;
  const text = value === undefined ? "" : printOption(name, value);
  if (text === "" || value === usual || text === String(usual)) return null;
  if (name === "schedule") return text;
  const word = row.within === undefined ? flagOf(name) : wordOf(name, row);
  if (text === alone) return word;
  return `${word}${row.within === undefined && alone === undefined ? " " : "="}${shellQuoted(text)}`;
}

/** As a shell takes it. */
export function shellQuoted(text: string): string {
  return /^[\w./:=,@+-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
