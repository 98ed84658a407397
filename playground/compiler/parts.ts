/** The parts of a compiled program that the panes show: plain data. */
import type { Diagnostic } from "../../src/diagnostics/diagnostic.ts";
import type { Cause } from "../../src/explain/causes.ts";
import type { Resharding } from "../../src/passes/moves/list-reshardings.ts";
import type { TimelineData } from "../../src/report/data/timeline-data.ts";
import type { Finding } from "../../src/verify/finding.ts";
import type { ProgramSize } from "../../src/verify/verify.ts";

/** A line of a printed program, with the lines of the user's program from which its tensors come. From 1. */
export interface LinkedLine {
  readonly text: string;
  readonly sources: readonly number[];
}

export interface PassText {
  readonly name: string;
  readonly text: string;
  readonly changed: boolean;
  readonly milliseconds: number;
}

export interface HostText {
  readonly lines: readonly LinkedLine[];
  /** The ranks that run it, the first of which names it. */
  readonly ranks: readonly number[];
  /** What the user's edits were made from; the lines' own text without edits. */
  readonly printed: string;
}

export interface CommandRow {
  readonly stream: number;
  readonly kind: string;
  /** `Allgather`, `linear`. */
  readonly label: string;
  readonly text: string;
  /** The line of the rank's host program; 0 if unknown. */
  readonly line: number;
  readonly iteration: readonly number[];
}

/** A command that another command waits for, both by position in the rank's list. */
export interface StreamEdge {
  readonly from: number;
  readonly to: number;
}

export interface RankCommands {
  readonly streams: readonly string[];
  readonly rows: readonly CommandRow[];
  readonly edges: readonly StreamEdge[];
}

/** How an axis is cut: into chunks of a loop, over devices, or not. */
export interface AxisPicture {
  readonly name: string;
  readonly extent: number | null;
  readonly type: string;
}

/** A rectangle of the rows and columns that the picture shows, ends excluded, and who holds it. */
export interface ShardCell {
  readonly rows: readonly [number, number];
  readonly columns: readonly [number, number];
  readonly devices: readonly number[];
  /** The chunk of the Stream loop; null without one. */
  readonly chunk: number | null;
}

export interface TensorPicture {
  readonly id: number;
  /** `T3`, and the user's name. */
  readonly name: string;
  readonly dtype: string;
  readonly role: "input" | "output" | "temporary";
  readonly logical: readonly AxisPicture[];
  readonly loop: readonly AxisPicture[];
  readonly rows: number;
  readonly columns: number;
  readonly rowAxis: string;
  readonly columnAxis: string;
  readonly cells: readonly ShardCell[];
  readonly source: number;
  readonly text: string;
}

export interface LoweredPart {
  readonly devices: number;
  /** Whether there is a Fusion: passes and pictures. */
  readonly isFusion: boolean;
  readonly passes: readonly PassText[];
  readonly tensors: readonly TensorPicture[];
  readonly fusion: readonly LinkedLine[];
  readonly reshardings: readonly Resharding[];
  readonly warnings: readonly Diagnostic[];
  readonly hosts: readonly HostText[];
}

export interface FoundFinding {
  readonly finding: Finding;
  /** As printed. */
  readonly text: string;
  /** Of its commands, in the dump that the user opened; empty if there is none. */
  readonly openedLines: readonly number[];
}

export interface VerdictPart {
  readonly ok: boolean;
  readonly size: ProgramSize;
  readonly findings: readonly FoundFinding[];
  readonly milliseconds: number;
  /** By rank; empty if the ranks' lists do not link. */
  readonly commands: readonly RankCommands[];
}

export interface AddedLine {
  readonly ranks: readonly number[];
  readonly statement: string;
  /** The line that it goes after in the host program of the first of its ranks; null if unknown. */
  readonly after: number | null;
}

export interface RepairPart {
  /** The repaired host programs as texts, for each rank that names one; null if no few statements repair them. */
  readonly hosts: readonly { readonly rank: number; readonly text: string }[] | null;
  readonly added: readonly AddedLine[];
}

export interface PredictedPart {
  readonly machine: string;
  readonly milliseconds: number;
  readonly serial: number | null;
  readonly floor: { readonly milliseconds: number; readonly compute: number; readonly communication: number };
  readonly exposed: number;
  readonly hidden: number | null;
  readonly peakBytes: number;
  readonly causes: readonly {
    readonly cause: Cause;
    readonly label: string;
    readonly sentence: string;
    readonly milliseconds: number;
  }[];
  readonly timeline: TimelineData;
  readonly assumptions: readonly string[];
}

/** Options that make the program faster. */
export interface OtherOptions {
  /** As flags to add or to leave out. */
  readonly change: string;
  /** By name, as texts. */
  readonly options: Readonly<Record<string, string>>;
  /** Predicted. */
  readonly milliseconds: number;
  /** `31.1 % faster`. */
  readonly gain: string;
}

/** A slice of a tensor that a step reads, and whose command wrote it last. */
export interface ReplayRead {
  readonly slice: string;
  /** Whether the caller wrote it before the run. */
  readonly isInput: boolean;
  /** The steps that ended a write of some of its bytes, the latest last; empty if there are none in this run. */
  readonly writtenBy: readonly number[];
}

/** One command begins or ends, or the caller acts. */
export interface ReplayStep {
  readonly rank: number;
  readonly stream: number;
  readonly streamName: string;
  /** The position in the rank's list; null for the caller. */
  readonly command: number | null;
  readonly phase: "begins" | "ends" | "acts";
  readonly text: string;
  /** Of a command that begins. */
  readonly reads: readonly ReplayRead[];
  readonly writes: readonly string[];
  /** Whether the finding names the command; without a finding, whether a kernel, copy or transfer begins. */
  readonly isNamed: boolean;
  /** Whether the order that is missing would have forbidden it here. */
  readonly isWrong: boolean;
}

export interface OutputDifference {
  /** `T2 y`. */
  readonly name: string;
  readonly elements: number;
  /** Of the elements, those whose error exceeds the oracle's bound, as the first that does. */
  readonly firstWrong: string | null;
  readonly largestError: number;
}

export interface Replay {
  /** Null for a run that shows none. */
  readonly finding: number | null;
  readonly steps: readonly ReplayStep[];
  /** The message with which the run ended early; null if it ended. */
  readonly stopped: string | null;
  /** Each output, compared with the oracle. */
  readonly differences: readonly OutputDifference[];
  /** Why there are no values; null if there are. */
  readonly withoutValues: string | null;
  /** Whether smaller sizes would have values. */
  readonly isTooLarge: boolean;
}
