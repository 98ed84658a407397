/** A bug that a real project had, rebuilt as a small Program that has it, beside the same Program without it. */
import { type CommandPlace, type Finding, type HostProgram, link, type Program, record } from "@braid-compiler/braid";

export interface HistoricalBug {
  /** Where it happened, and what it was. */
  readonly name: string;
  readonly wrong: Program;
  readonly right: Program;
  /** The finding that the verifier must report in `wrong`, possibly with its consequences. */
  readonly finding: BugFinding;
}

export interface BugFinding {
  readonly code: Finding["code"];
  /** The places that it names, in order. */
  readonly places: readonly BugPlace[];
}

/** A place as a finding has it; `statement` is the beginning of the statement's text. */
export type BugPlace = Pick<CommandPlace, "rank" | "streamName" | "kind" | "statement" | "run">;

/** Records a host program for ranks 0 .. world-1, and links. */
export function programOf(world: number, hostOf: (rank: number) => HostProgram, streams = 2): Program {
  return link(Array.from({ length: world }, (_, rank) => record(hostOf(rank), { rank, streams })));
}
