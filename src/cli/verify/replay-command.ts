/** The `braid run` that follows an interleaving through the Program that a report is about. */
import type { AnyCompilation } from "../../compile/compile.ts";
import {
  flagOf,
  type GivenOptions,
  loweringNames,
  type OptionName,
  type Options,
  type OptionValue,
  recordingNames,
  rowOf,
} from "../../compile/options.ts";
import { pickOptions, printOption } from "../../compile/options/resolve.ts";
import { isDumpFile, memoryModelOf } from "../program/dump-file.ts";

const programNames = ["set", "sizes", "scalar", "reference", "container", "roots"] as const;

export interface Replayed {
  readonly file: string;
  readonly flags: Options<"devices" | (typeof programNames)[number]>;
  /** After `verified`. */
  readonly compilation: AnyCompilation;
  /** Whether there is a reference, which `--check` compares with. */
  readonly hasReference: boolean;
}

/**
 * `order` is the file of the interleaving. Interleavings run on the CPU, so what `--on cuda` implies becomes a flag.
 */
export function replayCommand({ file, flags, compilation, hasReference }: Replayed, order: string): string {
  const { options, recorded, program, reported } = compilation;
  // A schedule moves commands, so what was found in the recorded list happens without it.
  const isRecorded = reported === recorded && program !== recorded;
  const { copyStream = "inline", ...schedule } = isRecorded ? {} : (options.schedule ?? {});
  return [
    "braid run",
    quoted(file),
    // Without the flag, a dump runs on the devices that it names.
    ...(isDumpFile(file) ? [flagOf("devices"), String(flags.devices)] : flagTexts(["devices"], flags)),
    ...flagTexts(programNames, flags),
    ...flagTexts([...loweringNames, ...recordingNames], options, memoryModelOf(file)),
    ...flagTexts(["schedule"], { schedule: copyStream === "inline" ? schedule : { ...schedule, copyStream } }),
    ...flagTexts(["check", "interleaving"], { ...(hasReference ? { check: "rows" } : {}), interleaving: order }),
  ].join(" ");
}

/** Without those that are the default, which `model` may set. */
function flagTexts<K extends OptionName>(
  names: readonly K[],
  given: GivenOptions<K>,
  model: { readonly [P in OptionName]?: unknown } = {},
): readonly string[] {
  const picked = pickOptions(names, given);
  return names.flatMap((name) => flagText(name, picked[name], model[name] ?? rowOf(name).default));
}

function flagText<K extends OptionName>(name: K, value: OptionValue<K> | undefined, usual: unknown): readonly string[] {
  const { kind } = rowOf(name);
  const text = value === undefined ? "" : printOption(name, value);
  if (text === "" || text === String(usual)) return [];
  if (kind.alone !== undefined) return [text === kind.alone ? flagOf(name) : `${flagOf(name)}=${quoted(text)}`];
  return kind.argument === null ? [flagOf(name)] : [flagOf(name), quoted(text)];
}

/** As a shell takes it. */
function quoted(text: string): string {
  return /^[\w./:=,@+-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
