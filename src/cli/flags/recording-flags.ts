/** The flags of what is recorded, beside the program and its lowering: streams, sizes, where copies run, and the schedule. */
import { type Command, Option } from "commander";
import { type CopyLane, copyLanes } from "../../schedule/rewrites/copy-stream.ts";
import type { ScheduleOptions } from "../../schedule/schedule.ts";
import { assignment, choice, groupSizes, sizes, wholeNumber } from "./option-values.ts";

export interface RecordingFlags extends ScheduleOptions {
  readonly streams: number;
  readonly size: ReadonlyMap<string, number>;
  readonly copyLane?: CopyLane;
}

export function addRecordingFlags(command: Command): Command {
  return command
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
      new Option(
        `--copy-lane <${copyLanes.join("|")}>`,
        "copies from and to peers on a stream of their own per device, or where the host program has them (default: dedicated with --on cuda)",
      ).argParser(choice("--copy-lane", copyLanes)),
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
        "--merge-products <sizes>",
        "make one product of several chunks': sizes of groups in order of arrival, such as 1-3-4",
      ).argParser(groupSizes("--merge-products")),
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
export function scheduleOf(flags: RecordingFlags): ScheduleOptions {
  const { inPlace, ownLast, splitChunks, mergeProducts, computeStreams } = flags;
  const { earlySums, kernelCopies, batchSignals, smMargin } = flags;
  return {
    ...(inPlace === undefined ? {} : { inPlace }),
    ...(ownLast === undefined ? {} : { ownLast }),
    ...(splitChunks === undefined ? {} : { splitChunks }),
    ...(mergeProducts === undefined ? {} : { mergeProducts }),
    ...(computeStreams === undefined ? {} : { computeStreams }),
    ...(earlySums === undefined ? {} : { earlySums }),
    ...(kernelCopies === undefined ? {} : { kernelCopies }),
    ...(batchSignals === undefined ? {} : { batchSignals }),
    ...(smMargin === undefined ? {} : { smMargin }),
  };
}

/** The same as flags, and what was said with each. */
export function scheduleFlagsOf(flags: RecordingFlags): readonly (readonly [string, string])[] {
  const kebab = (name: string): string => name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  return Object.entries(scheduleOf(flags)).map(([name, value]) => [`--${kebab(name)}`, JSON.stringify(value)]);
}
