/** The `braid run` that follows an interleaving through the Program that a report is about. */
import type { AnyCompilation } from "../../compile/compile.ts";
import { flagOf, type GivenOptions, loweringNames, type Options, recordingNames } from "../../compile/options.ts";
import { flagTexts, quoted } from "../../compile/options/flags-text.ts";
import { pickOptions } from "../../compile/options/resolve.ts";
import { isDumpFile, memoryModelOf } from "../program/dump-file.ts";

const programNames = ["set", "sizes", "scalar", "reference", "entry", "as"] as const;

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
  const names = [...programNames, ...loweringNames, ...recordingNames, "schedule", "check", "interleaving"] as const;
  const given: GivenOptions<(typeof names)[number]> = {
    ...pickOptions(programNames, flags),
    ...pickOptions([...loweringNames, ...recordingNames], options),
    schedule: copyStream === "inline" ? schedule : { ...schedule, copyStream },
    ...(hasReference ? { check: "rows" } : {}),
    interleaving: order,
  };
  const texts = flagTexts(names, given, memoryModelOf(file));
  // Without the flag, a dump runs on the devices that it names.
  const devices = isDumpFile(file) ? [`${flagOf("devices")} ${flags.devices}`] : flagTexts(["devices"], flags).values();
  return ["braid run", quoted(file), ...devices, ...texts.values()].join(" ");
}
