/**
 * Turns a conflict of two accesses into a finding. The program determines the intended order: the earlier run comes
 * first, then the earlier statement and iteration. The kinds of the two commands determine the mistake. With an alloc
 * or free it is a lifetime error. With a library's transfer on the same rank that no other stream waits for, it is a
 * missing Wait. Anything else is a race.
 */
import type { DiagnosticCode } from "../../diagnostics/codes.ts";
import type { Region } from "../../commands/region.ts";
import { at } from "../../support/invariant.ts";
import type { RawFinding } from "./to-findings.ts";
import type { CommandPlace, SharedMemory } from "../finding.ts";
import type { Graph } from "../order/graph.ts";
import { type Extent, sharedBytes } from "../check/shared-bytes.ts";
import { placeOf, placeText, programOrder, statementText } from "./places.ts";
import type { RegionTable } from "../check/region-table.ts";
import type { MemoryAccess, Conflict } from "../check/races.ts";
import { sliceText } from "./slice-text.ts";
import type { Command, Origin, SlotId } from "../../commands/command.ts";
import type { Program } from "../../commands/program.ts";

interface Side {
  readonly access: MemoryAccess;
  readonly place: CommandPlace;
}

/** Ordered by the program of the rank that owns the memory. */
function inOrder(graph: Graph, table: RegionTable, conflict: Conflict): readonly [Side, Side] {
  const { program } = graph;
  const { rank } = at(program.buffers, at(table.buffer, conflict.second.region));
  const one = { access: conflict.first, place: placeOf(graph, conflict.first.visit) };
  const other = { access: conflict.second, place: placeOf(graph, conflict.second.visit) };
  const [a, b] = [placeOnRank(program, one.place, rank), placeOnRank(program, other.place, rank)];
  return programOrder(a, b) <= 0 ? [one, other] : [other, one];
}

export function conflictFinding(graph: Graph, table: RegionTable, conflict: Conflict): RawFinding {
  const [first, second] = inOrder(graph, table, conflict);
  const memory = sharedMemory(graph, table, first.access.region, second.access.region);
  const before = second.place.kind === "alloc" ? first : second;
  const tenant = at(graph.program.buffers, at(table.buffer, before.access.region)).name;
  const waiter = waiterOf(graph, first.place, second.place);
  const apart = table.buffer[first.access.region] !== table.buffer[second.access.region];
  const { code, message } = apart ? movedIn(before, memory, tenant) : mistakeOf(first, second, memory, waiter);
  return {
    code,
    severity: "error",
    message,
    visits: [first.access.visit, second.access.visit],
    memory,
    found: `${accessText(first)} ${memory.slice}, and nothing orders it before ${accessText(second)} the same`,
    expected: `the first before the second${second.place.run > first.place.run ? ", also from one run to the next" : ""}`,
    help: fixOf(first.place, second.place, waiter),
    notes: [
      `first: ${placeText(first.place)}${runText(first.place, second.place)}`,
      `second: ${placeText(second.place)}${runText(second.place, first.place)}`,
    ],
    edge: [first.access.visit, second.access.visit],
  };
}

/** The bytes that two regions share, in one buffer or in buffers at the same addresses. */
function sharedMemory({ program }: Graph, table: RegionTable, a: number, b: number): SharedMemory {
  const [first, second] = [at(table.regions, a), at(table.regions, b)];
  const placed = (region: Region): Extent => ({
    ...region,
    start: at(program.buffers, region.buffer).offset + region.offset,
  });
  const bytes = sharedBytes(placed(first), placed(second));
  const { rank, name } = at(program.buffers, second.buffer);
  return { rank, tensor: name, slice: sliceText(program, second, first), bytes };
}

interface Mistake {
  readonly code: DiagnosticCode;
  readonly message: string;
}

/** An alloc of bytes that another buffer, the tenant, may still be using. */
function movedIn(first: Side, { tensor, rank }: SharedMemory, tenant: string): Mistake {
  const still = first.place.kind === "free" ? "freed" : verbOf(first);
  const until = first.place.kind === "free" ? "before" : "while";
  return {
    code: "memory-shared",
    message: `${tensor} on rank ${rank} may be allocated ${until} ${tenant}, which lay there, is ${until === "before" ? "" : "still "}${still}`,
  };
}

/**
 * A stream, other than the second command's, that waits for the transfer. Null if `first` is not a transfer, or no
 * other stream waits for it.
 */
function waiterOf({ program }: Graph, first: CommandPlace, second: CommandPlace): string | null {
  if (first.kind !== "transfer" || first.command === null) return null;
  const { commands, streams } = at(program.ranks, first.rank);
  for (const command of commands.slice(first.command + 1)) {
    if (command.kind !== "recordEvent" || command.stream !== first.stream) continue;
    const waits = commands.filter((other) => other.kind === "waitEvent" && other.event === command.event);
    const waiting = waits.find(({ stream }) => stream !== second.stream) ?? null;
    const isLate = waits.some(({ stream }) => stream === second.stream);
    return waiting === null || isLate ? null : (streams.find(({ id }) => id === waiting.stream)?.name ?? null);
  }
  return null;
}

function mistakeOf(first: Side, second: Side, { tensor, rank }: SharedMemory, waiter: string | null): Mistake {
  const what = `${tensor} on rank ${rank}`;
  const [a, b] = [first.place, second.place];
  const allocator = b.run > a.run ? "the next run" : "it";
  if (a.kind === "free" && b.kind === "free") {
    return { code: "freed-twice", message: `${what} is freed by two commands in no fixed order` };
  }
  if (a.kind === "alloc") {
    return { code: "used-before-alloc", message: `${what} may be used before it is allocated` };
  }
  if (a.kind === "free") {
    return b.kind === "alloc"
      ? { code: "freed-in-use", message: `${what} may be allocated by ${allocator} before it is freed` }
      : { code: "used-after-free", message: `${what} may be used after it has been freed` };
  }
  if (b.kind === "free") {
    return { code: "freed-in-use", message: `${what} may be freed while it is still ${verbOf(first)}` };
  }
  if (b.kind === "alloc") {
    return {
      code: "freed-in-use",
      message: `${what} may be allocated by ${allocator} while it is still ${verbOf(first)}`,
    };
  }
  if (a.kind === "transfer" && a.rank === b.rank && waiter === null) {
    return {
      code: "transfer-not-waited",
      message: `${what} is ${verbOf(second)} without a Wait for the transfer that ${first.access.writes ? "writes" : "reads"} it`,
    };
  }
  const words =
    first.access.writes === second.access.writes
      ? "two writes"
      : first.access.writes
        ? "a write and a read"
        : "a read and a write";
  return {
    code: "data-race",
    message: `${words} of ${what} have no order${b.run > a.run ? " from one run to the next" : ""}`,
  };
}

function verbOf({ access }: Side): string {
  return access.writes ? "written" : "read";
}

function accessText({ access, place }: Side): string {
  const who = place.command === null ? `the caller of rank ${place.rank}` : `rank ${place.rank}, ${place.streamName}`;
  return `${who} ${place.kind === "alloc" ? "allocates" : place.kind === "free" ? "frees" : access.writes ? "writes" : "reads"}`;
}

function runText(place: CommandPlace, other: CommandPlace): string {
  return place.run === other.run ? "" : ` (run ${place.run})`;
}

/** The statement that would order the two. */
function fixOf(first: CommandPlace, second: CommandPlace, waiter: string | null): string {
  const target = second.command === null ? null : statementText(second);
  // The caller's use of a run comes after all that its program waits for: only the next run can wait for it.
  const isForNext = second.run > first.run && first.command !== null;
  if (first.rank !== second.rank) {
    const when = isForNext ? "before it ends its run" : target === null ? "before its run ends" : `before ${target}`;
    return `let rank ${second.rank} wait, ${when}, for a signal or transfer that rank ${first.rank} sends after ${statementText(first)}`;
  }
  const waits =
    first.kind === "transfer" && waiter === null
      ? `Wait for ${statementText(first)}`
      : `Synchronize ${waiter ?? first.streamName}`;
  if (isForNext || target === null) {
    return first.kind === "transfer" && waiter === null
      ? `${waits} before the program ends`
      : `${waits} with ${second.streamName} before the program ends`;
  }
  return `${waits} on ${second.streamName} before ${target}`;
}

/**
 * The place of the peer's half on `rank`, in the run of `place`; `place` itself if it is on `rank`, or no slot leads
 * there.
 */
function placeOnRank({ ranks, slots }: Program, place: CommandPlace, rank: number): CommandPlace {
  if (place.rank === rank || place.command === null) return place;
  const own = at(ranks, place.rank);
  const origin = at(own.origins, place.command);
  const shared = new Set<SlotId>();
  for (const [index, command] of own.commands.entries()) {
    const slot = slotOf(command);
    if (slot === null || !isSame(at(own.origins, index), origin)) continue;
    const { signaller, waiter } = at(slots, slot);
    if (signaller === rank || waiter === rank) shared.add(slot);
  }
  const peer = at(ranks, rank);
  const half = peer.commands.findIndex((command) => {
    const slot = slotOf(command);
    return slot !== null && shared.has(slot);
  });
  if (half < 0) return place;
  const { path, iteration } = at(peer.origins, half);
  return { ...place, rank, command: half, path, iteration };
}

function slotOf(command: Command): SlotId | null {
  return command.kind === "signal" || command.kind === "waitSignal" ? command.slot : null;
}

function isSame(a: Origin, b: Origin): boolean {
  return a.path.join() === b.path.join() && a.iteration.join() === b.iteration.join();
}
