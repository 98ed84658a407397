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
} from "../options.ts";
import { printOption } from "./resolve.ts";

/** The options that make the Program of a file. */
export const compileNames: readonly CompileName[] = [...loweringNames, ...recordingNames, "schedule"];
type CompileName = LoweringName | RecordingName | "schedule";

/** Without defaults: those that are given. They restrict the choice of a schedule. */
export type CompileGiven = GivenOptions<CompileName>;

/** `--backend cuda --schedule inPlace`: nothing for an option that is not given or has its default. */
export function flagsText(given: CompileGiven): string {
  return compileNames.flatMap((name) => flagText(name, given[name])).join(" ");
}

/** What to add to a command line, or to take from it, to get other options: `--backend cuda, without --no-overlap`. */
export function changeText(now: CompileGiven, then: CompileGiven): string {
  const added: string[] = [];
  const removed: string[] = [];
  for (const name of compileNames) {
    const [before, after] = [flagText(name, now[name]), flagText(name, then[name])];
    if (before.join() === after.join()) continue;
    if (after.length === 0) removed.push(...before);
    else added.push(...after);
  }
  return [added.join(" "), removed.length === 0 ? "" : `without ${removed.join(" ")}`].filter(Boolean).join(", ");
}

/** `--no-overlap`, `--schedule inPlace,computeStreams=2`; nothing for no rewrites. */
function flagText<K extends OptionName>(name: K, value: OptionValue<K> | undefined): readonly string[] {
  const row = rowOf(name);
  if (value === undefined || value === row.default || printOption(name, value) === "") return [];
  return [row.kind.argument === null ? flagOf(name) : `${flagOf(name)} ${printOption(name, value)}`];
}
