/**
 * Describes what the streams of a hanging run are doing: for the timeout message, and for the notes of a run that the
 * end of another rank interrupted.
 */
import { DiagnosticError, fail } from "../../../../diagnostics/diagnostic.ts";
import { at } from "../../../../support/invariant.ts";
import type { Gpu } from "../../gpu.ts";
import { commandText, type ListNotes } from "../../ops/list-notes.ts";
import { type Hosts, rankName } from "../../world.ts";
import type { PreparedList } from "../prepared-list.ts";
import type { SlotReader } from "./slot-reader.ts";

export interface StuckRun {
  readonly gpu: { readonly raw: Pick<Gpu["raw"], "cuStreamQuery" | "cuEventQuery"> };
  readonly notes: ListNotes;
  readonly hosts: Hosts;
  readonly list: Pick<PreparedList, "streams" | "records" | "progress" | "waitRuns" | "slots">;
  /** Whether its commands were issued one by one, not as a graph. */
  readonly eager: boolean;
  /** How many runs were issued in a row. */
  readonly runs: number;
}

/** Throws `timed-out` with a line for every stream that has not finished. `timeout` is in milliseconds. */
export function failTimedOut(run: StuckRun, timeout: number): never {
  const { runs, hosts } = run;
  const { rank, world, commandCount } = run.notes;
  const notes = stuckStreams(run);
  const what = runs === 1 ? "run" : `${runs} runs`;
  return fail("timed-out", `${rankName(rank, hosts)} did not finish its ${what} within ${timeout} ms`, {
    place: { kind: "call", text: `rank ${rank} of ${world}, ${commandCount} commands` },
    found: notes[0] ?? "the GPU is busy, and no stream waits for a peer",
    expected: `an end within ${timeout} ms`,
    help: "check the rank that it waits for, allow more time (--timeout) or use smaller sizes",
    notes: notes.slice(1),
  });
}

/**
 * A line for every stream that has not finished: the command it reached and the peers it waits for. A graph does not
 * run on these streams; its lines are for streams that reached a wait for a peer and have not reported passing it.
 *
 * Words and events keep the state of the last run. With several runs in a row they may belong to the run before the one
 * that hangs, which the last line says. A "passed" word says nothing, because any run may have written it.
 */
export function stuckStreams(run: StuckRun): readonly string[] {
  const lines = streamLines(run, standingIn(run.list));
  return run.runs === 1 || lines.length === 0 ? lines : [...lines, `${run.runs} runs in a row: ${ofWhichRun}`];
}

const ofWhichRun = "a stream may have reached its command in the run before the one that hangs";

type StandingAt = (command: number) => Standing;

function streamLines({ gpu, notes, hosts, list, eager }: StuckRun, standingAt: StandingAt): readonly string[] {
  return list.streams.flatMap((stream, id) => {
    const line = (standing: Standing | null): string => stuckStream(notes, hosts, id, standing);
    const said = list.progress.last(id);
    if (!eager) return said === null || said.passed ? [] : [line(standingAt(said.command))];
    if (gpu.raw.cuStreamQuery(stream) === 0) return [];
    const reached = Math.max(said?.command ?? -1, lastEvent(gpu, list, id));
    if (reached < 0) return [line(null)];
    const isPast = said?.passed === true && said.command === reached;
    return [line(isPast ? { command: reached, missing: [], isKnown: true } : standingAt(reached))];
  });
}

/**
 * For a run of waits, identified by its first: the waits whose words are still 0, and the first of those. For any other
 * command, the command itself. The first request reads all words.
 */
function standingIn({ waitRuns, slots }: StuckRun["list"]): StandingAt {
  let reading: { readonly words: ReturnType<SlotReader["read"]> } | null = null;
  return (command) => {
    const run = waitRuns.get(command);
    if (run === undefined) return { command, missing: [command], isKnown: true };
    const { words } = (reading ??= { words: slots.read() });
    const late = words === null ? run : run.filter(({ word }) => words(word) === 0);
    const missing = late.map((wait) => wait.command);
    return { command: missing[0] ?? command, missing, isKnown: words !== null };
  };
}

/** Adds notes to the error's first diagnostic. */
export function withNotes(error: unknown, notes: readonly string[]): unknown {
  if (!(error instanceof DiagnosticError) || notes.length === 0) return error;
  const [first, ...others] = error.diagnostics;
  if (first === undefined) return error;
  return new DiagnosticError([{ ...first, notes: [...(first.notes ?? []), ...notes] }, ...others]);
}

/** The last recordEvent of the stream that has completed; -1 for none. */
function lastEvent({ raw }: StuckRun["gpu"], { records }: StuckRun["list"], stream: number): number {
  const last = records.findLast((record) => record.stream === stream && raw.cuEventQuery(record.event) === 0);
  return last?.command ?? -1;
}

// Where a stream of a hanging run stands, as one line.

/** The command that a stream has reached. */
interface Standing {
  /** Its position in the rank's list. */
  readonly command: number;
  /**
   * For a waitSignal: the commands of its run whose signals have not arrived. If `isKnown` is false, at least one of
   * them is missing.
   */
  readonly missing: readonly number[];
  readonly isKnown: boolean;
}

/** One line: what the stream is doing and which peers it waits for. `standing` is null if it has reported nothing. */
function stuckStream(notes: ListNotes, hosts: Hosts, stream: number, standing: Standing | null): string {
  const rank = rankName(notes.rank, hosts);
  const name = at(notes.flight().streams, stream);
  if (standing === null) return `${rank}, ${name}: has not reached a command that waits for a peer`;
  const { command } = standing;
  return `${rank}, ${name}: reached command ${command}, ${commandText(notes, command)}${waitsFor(notes, hosts, standing)} (${notes.statementOf(command)})`;
}

function waitsFor(notes: ListNotes, hosts: Hosts, standing: Standing): string {
  const kind = notes.kindOf(standing.command);
  if (kind === "waitSignal") return signallers(notes, hosts, standing);
  return kind === "transfer"
    ? `; it communicates with ranks ${numbered(peersOf(notes, [standing.command]), hosts).join(", ")}`
    : "";
}

function signallers(notes: ListNotes, hosts: Hosts, { missing, isKnown }: Standing): string {
  const each = peersOf(
    notes,
    missing.filter((command) => notes.kindOf(command) === "waitSignal"),
  );
  if (each.length === 0) return "";
  const names = numbered(each, hosts);
  const [others, last] = [names.slice(0, -1), at(names, names.length - 1)];
  if (others.length === 0) return `; it waits for rank ${last}`;
  return `; it waits for ${isKnown ? "" : "at least one of "}ranks ${others.join(", ")} and ${last}`;
}

/** After the word "ranks". */
function numbered(ranks: readonly number[], hosts: Hosts): readonly string[] {
  return ranks.map((rank) => rankName(rank, hosts).replace(/^rank /, ""));
}

/** The ranks that the commands need, in ascending order. */
function peersOf(notes: ListNotes, waiting: readonly number[]): readonly number[] {
  const { commands } = notes.flight();
  const ranks = waiting.flatMap((command) => (at(commands, command).needs ?? []).map(([rank]) => rank));
  return [...new Set(ranks)].toSorted((a, b) => a - b);
}
