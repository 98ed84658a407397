/** What the report page shows, as plain data: `explain`, `verify` and `run --print explain` each build one. */
import type { CommandRef } from "../../commands/command.ts";
import type { TimelineData } from "./timeline-data.ts";

export interface ReportData {
  /** The program file. */
  readonly title: string;
  readonly verdict: Verdict;
  /** The figures under the verdict. */
  readonly facts: readonly Fact[];
  /** One of them is shown at a time. */
  readonly views: readonly ReportView[];
  readonly tables: readonly LinkedTable[];
  /** What the verifier says is wrong, or notes. */
  readonly findings: readonly FindingData[];
  /** The host programs' texts; ranks that run the same share one. */
  readonly hosts: readonly HostText[];
  /** One sentence each: assumptions, the reason for the schedule. */
  readonly notes: readonly string[];
}

export interface Verdict {
  readonly tone: "good" | "bad" | "plain";
  /** One line. */
  readonly text: string;
  /** Why it says little; absent if it does not. */
  readonly note?: string;
}

export interface Fact {
  readonly label: string;
  readonly value: string;
  /** What it is, in a sentence; empty if its label says it. */
  readonly note: string;
  /** Whether it is marked; false if absent. */
  readonly isBad?: boolean;
}

/** A timeline to look at. */
export interface ReportView {
  readonly name: string;
  readonly timeline: TimelineData;
  /** The commands that it is about. */
  readonly marked: readonly CommandRef[];
}

export interface LinkedTable {
  readonly title: string;
  /** Whether only its title and note are seen until it is opened; false if absent. */
  readonly isFolded?: boolean;
  /** Whether it needs the width of the page; false if absent. */
  readonly isWide?: boolean;
  /** Whether its note says enough without rows; otherwise a table without rows is left out. */
  readonly isAnswer?: boolean;
  /** One sentence: what its rows are. */
  readonly note: string;
  readonly columns: readonly Column[];
  readonly rows: readonly ReportRow[];
}

export interface Column {
  readonly label: string;
  /** False if absent. */
  readonly numeric?: boolean;
  /** Whether its cells are typed as they are, such as flags. */
  readonly isCode?: boolean;
}

export interface ReportRow {
  readonly cells: readonly string[];
  /** More about it, in a sentence; empty if there is nothing to say. */
  readonly note: string;
  /** What a click selects in the timeline. */
  readonly link: ReportLink;
}

/** What a row or line stands for in a timeline. */
export type ReportLink =
  | { readonly kind: "region"; readonly region: number }
  | { readonly kind: "cause"; readonly cause: string }
  | { readonly kind: "stream"; readonly rank: number; readonly stream: number }
  | { readonly kind: "commands"; readonly view: number; readonly commands: readonly CommandRef[] }
  | { readonly kind: "nothing" };

export interface FindingData {
  readonly severity: "error" | "warning" | "note";
  readonly code: string;
  readonly message: string;
  /** What mends it; null if that is not known. */
  readonly fix: string | null;
  /** The rest of the diagnostic, as the command line prints it. */
  readonly text: string;
  readonly link: ReportLink;
  /** The interleaving that shows it, and the command that replays it; null if one run cannot show it. */
  readonly replay: { readonly interleaving: string; readonly command: string } | null;
}

export interface HostText {
  readonly ranks: readonly number[];
  readonly lines: readonly string[];
}
