/** The flags of what is recorded, beside the program and its lowering: streams, sizes, where copies run, and the schedule. */
import { type Command, Option } from "commander";
import type { Target } from "../../compile/compile.ts";
import { options } from "../../compile/options.ts";
import { copyStreams } from "../../schedule/rewrites/copy-stream.ts";
import type { ScheduleOptions } from "../../schedule/schedule.ts";
import { assignment, choice, groupSizes, sizes, wholeNumber } from "./option-values.ts";

export interface RecordingFlags extends ScheduleOptions {
  readonly streams: number;
  readonly size: ReadonlyMap<string, number>;
  readonly on: Target;
}

export function addRecordingFlags(command: Command): Command {
  return command
    .addOption(
      new Option(`--on <${["cpu", "cuda"].join("|")}>`, "back end")
        .argParser(choice("--on", ["cpu", "cuda"]))
        .default("cpu"),
    )
    .addOption(
      new Option("--streams <n>", "streams that a Stream loop alternates over")
        .argParser(wholeNumber("--streams", 1))
        .default(4),
    )
    .addOption(
      new Option("--size <name=value>", "size of a symbolic extent, by its printed name; may be repeated")
        .argParser(assignment("--size", "i0=8", sizes))
        .default(new Map(), "none"),
    )
    .addOption(
      new Option(`--copy-stream <${copyStreams.join("|")}>`, options.copyStream.help).argParser(
        choice("--copy-stream", copyStreams),
      ),
    )
    .addOption(
      new Option("--in-place", "leave out local copies where the original, or the copy's place, can be used instead"),
    )
    .addOption(new Option("--own-last", "compute what no other device waits for last"))
    .addOption(
      new Option("--split-chunks <n>", "cut each copy over a link, and the product beside it, into n parts").argParser(
        wholeNumber("--split-chunks", 1),
      ),
    )
    .addOption(
      new Option(
        "--merge-gemms <sizes>",
        "make one product of several chunks': sizes of groups in order of arrival, such as 1-3-4",
      ).argParser(groupSizes("--merge-gemms")),
    )
    .addOption(
      new Option(
        "--compute-streams <n>",
        "products take turns on n streams, copies over links have one of their own",
      ).argParser(wholeNumber("--compute-streams", 1)),
    )
    .addOption(
      new Option(
        "--early-sums <sizes>",
        "add partial results as they arrive: sizes of groups, such as 4; may change the last bits",
      ).argParser(groupSizes("--early-sums")),
    )
    .addOption(
      new Option(
        "--kernel-copies <bytes>",
        "copies over links of at most so many bytes by a small kernel instead of the copy engines (--on cuda)",
      ).argParser(wholeNumber("--kernel-copies", 1)),
    )
    .addOption(new Option("--batch-signals", "wait for all peers before the first copy, tell all behind the last"))
    .addOption(
      new Option(
        "--sm-margin <n>",
        "products leave n multiprocessors free for kernels in peers' memory beside them (--on cuda)",
      ).argParser(wholeNumber("--sm-margin", 1)),
    );
}

/** The schedule that the flags ask for. */
export function scheduleOf(flags: ScheduleOptions): ScheduleOptions {
  const { inPlace, ownLast, splitChunks, mergeGemms, computeStreams } = flags;
  const { earlySums, kernelCopies, batchSignals, smMargin, copyStream } = flags;
  return {
    ...(inPlace === undefined ? {} : { inPlace }),
    ...(ownLast === undefined ? {} : { ownLast }),
    ...(splitChunks === undefined ? {} : { splitChunks }),
    ...(mergeGemms === undefined ? {} : { mergeGemms }),
    ...(computeStreams === undefined ? {} : { computeStreams }),
    ...(earlySums === undefined ? {} : { earlySums }),
    ...(kernelCopies === undefined ? {} : { kernelCopies }),
    ...(batchSignals === undefined ? {} : { batchSignals }),
    ...(smMargin === undefined ? {} : { smMargin }),
    ...(copyStream === undefined ? {} : { copyStream }),
  };
}

/** The same as flags, and what was said with each. */
export function scheduleFlagsOf(flags: ScheduleOptions): readonly (readonly [string, string])[] {
  const kebab = (name: string): string => name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  return Object.entries(scheduleOf(flags)).map(([name, value]) => [`--${kebab(name)}`, JSON.stringify(value)]);
}
