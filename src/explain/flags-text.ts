/** Options as flags of the command line. */
import {
  flagOf,
  loweringNames,
  type OptionName,
  type OptionValue,
  recordingNames,
  rowOf,
  scheduleNames,
} from "../compile/options.ts";
import { printOption } from "../compile/options/resolve.ts";
import { candidateStreams, type ScheduleCandidate } from "../tune/choose/candidates.ts";
import type { ChangedOptions } from "./alternatives.ts";

/** The command line of a candidate. */
export function candidateFlags({ lowering, schedule }: ScheduleCandidate): string {
  return flagsText({ ...lowering, ...schedule, streams: candidateStreams });
}

export function changeFlags(changed: ChangedOptions): string {
  return flagsText(changed);
}

const names = [...loweringNames, ...recordingNames, ...scheduleNames] as const;

function flagsText(changed: { readonly [N in (typeof names)[number]]?: OptionValue<N> }): string {
  return names.flatMap((name) => flagText(name, changed[name])).join(" ");
}

/** `--no-overlap`, `--in-place`, `--merge-gemms 1-2`; nothing for a value that is not given or the default. */
function flagText<K extends OptionName>(name: K, value: OptionValue<K> | undefined): readonly string[] {
  const row = rowOf(name);
  if (value === undefined || value === row.default) return [];
  return [row.kind.argument === null ? flagOf(name) : `${flagOf(name)} ${printOption(name, value)}`];
}
