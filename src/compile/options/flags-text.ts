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
  rowOf,
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

/** What to add to a command line, or to take from it, to get other options: `--backend cuda, without --devices 4`. */
export function changeText(now: CompileGiven, then: CompileGiven): string {
  const [before, after] = [flagTexts(compileNames, now), flagTexts(compileNames, then)];
  const added = [...after].flatMap(([flag, text]) => (before.get(flag) === text ? [] : [text]));
  const removed = [...before].flatMap(([flag, text]) => (after.has(flag) ? [] : [text]));
  return [added.join(" "), removed.length === 0 ? "" : `without ${removed.join(" ")}`].filter(Boolean).join(", ");
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
  const texts = new Map<string, string>();
  const assigned = new Map<string, string[]>();
  const picked: GivenOptions<OptionName> = pickOptions(names, given);
  const { nvfuserLimits = false } = picked;
  const expected: Readonly<Record<string, unknown>> = { ...usual, ...(nvfuserLimits ? nvfuserLowering : {}) };
  // The words of --schedule come first: they say what its values change.
  for (const name of names.toSorted((a, b) => Number(b === "schedule") - Number(a === "schedule"))) {
    const part = partOf(name, picked[name], expected[name] ?? rowOf(name).default);
    if (part === null) continue;
    const flag = name === "schedule" ? name : rowOf(name).within;
    if (flag === undefined) texts.set(flagOf(name), part);
    else assigned.set(flag, [...(assigned.get(flag) ?? []), part]);
  }
  if (nvfuserLimits && !texts.has("--as")) texts.set("--as", "--as nvfuser");
  for (const [flag, parts] of assigned)
    if (flag !== "as") texts.set(`--${flag}`, `--${flag} ${quoted(parts.join(","))}`);
  return texts;
}

/** A flag with its value, or the part of the flag that assigns it; null if it goes without saying. */
function partOf<K extends OptionName>(name: K, value: OptionValue<K> | undefined, usual: unknown): string | null {
  const row = rowOf(name);
  const { alone = row.kind.argument === null ? "true" : undefined } = row.kind;
  const text = value === undefined ? "" : printOption(name, value);
  if (text === "" || value === usual || text === String(usual)) return null;
  if (name === "schedule") return text;
  const word = row.within === undefined ? flagOf(name) : wordOf(name, row);
  if (text === alone) return word;
  return `${word}${row.within === undefined && alone === undefined ? " " : "="}${quoted(text)}`;
}

/** As a shell takes it. */
export function quoted(text: string): string {
  return /^[\w./:=,@+-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
