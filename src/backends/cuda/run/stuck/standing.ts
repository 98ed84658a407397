/** Where a stream of a hanging run stands, as one line. */
import { at } from "../../../../support/invariant.ts";
import { type Hosts, rankName } from "../../world.ts";
import { commandText, type ListNotes } from "../../ops/list-notes.ts";

/** The command that a stream has reached. */
export interface Standing {
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
export function stuckStream(notes: ListNotes, hosts: Hosts, stream: number, standing: Standing | null): string {
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
