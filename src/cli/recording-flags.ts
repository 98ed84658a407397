/** The flags of what is recorded, beside the program and its lowering: streams, sizes, and where copies run. */
import { type Command, Option } from "commander";
import { type CopyLane, copyLanes } from "../schedule/copy-lane.ts";
import { assignment, choice, sizes, wholeNumber } from "./option-values.ts";

export interface RecordingFlags {
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
    );
}
