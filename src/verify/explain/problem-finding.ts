/** Turns problems into findings, one row per kind: the code, what was found, what was expected and how to fix it. */
import { at, dispatch, type RuleTable } from "../../support/invariant.ts";
import { counted } from "../../support/wording.ts";
import { conflictFinding } from "./conflict-finding.ts";
import type { RawFinding } from "./to-findings.ts";
import type { QueueWait } from "../check/deadlock.ts";
import type { SharedMemory } from "../finding.ts";
import { type Graph, nodeOf } from "../order/graph.ts";
import { placeOf, placeText, statementText } from "./places.ts";
import type { Problem } from "../check/find-problems.ts";
import type { RegionTable } from "../check/region-table.ts";
import { rangeText, sliceText } from "./slice-text.ts";

export function problemFinding(graph: Graph, table: RegionTable, problem: Problem): RawFinding {
  return dispatch<Problem, RawFinding, [Graph, RegionTable]>(rows, problem, graph, table);
}

const rows: RuleTable<Problem, RawFinding, [Graph, RegionTable]> = {
  conflict: (conflict, graph, table) => conflictFinding(graph, table, conflict),
  slotMisuse: ({ slot, nextIs, next, before }, graph) => {
    const [later, earlier] = [placeOf(graph, next), placeOf(graph, before)];
    const run = earlier.run === later.run ? "" : " of the previous run";
    return {
      ...error("slot-overrun", [before, next]),
      message:
        nextIs === "signal"
          ? `rank ${later.rank} may signal slot ${slot} again before its last signal was waited for`
          : `two waits of rank ${later.rank} may take each other's signal on slot ${slot}`,
      found: `${placeText(later)} does not come after ${placeText(earlier)}${run}`,
      expected: `every ${nextIs} on a slot after the previous wait`,
      help: `let ${statementText(later)} wait for ${statementText(earlier)}, or give them separate slots`,
      edge: [before, next],
    };
  },
  deadlock: ({ cycle }, graph) => ({
    ...error(
      "deadlock",
      cycle.map(({ node }) => node),
    ),
    ...cycleFinding(graph, cycle),
    message: `${counted(cycle.length, "stream")} wait${cycle.length === 1 ? "s for itself" : " for each other"}`,
    expected: "waits that form no cycle",
    help: "order sends, receives and collectives the same way on all ranks, coalesce exchanges, and post before waiting",
  }),
  needsConcurrency: ({ cycle, ofPairs }, graph) => ({
    ...error(
      "needs-concurrency",
      cycle.map(({ node }) => node),
    ),
    ...(ofPairs ? { severity: "warning" } : {}),
    ...cycleFinding(graph, cycle),
    message: "the program ends only if a device runs several of its streams at once",
    expected:
      "a program that also ends if each rank runs its list as one queue: hardware has fewer queues than streams",
    help: ofPairs
      ? "coalesce these sends and receives, or keep CUDA_DEVICE_MAX_CONNECTIONS above the number of streams"
      : "issue each command before the commands that wait for it, in list order",
  }),
  unwritten: ({ node, buffer, region, gap }, graph, table) => {
    const { program } = graph;
    const place = placeOf(graph, node);
    const { name, rank, id } = at(program.buffers, buffer);
    const whole = gap.missing === gap.size;
    const read = at(table.regions, region);
    const slice = whole ? sliceText(program, read, read) : rangeText(program, id, gap.start, gap.end);
    const lack = whole
      ? "none of it has"
      : `${counted(gap.missing, "byte")} of ${gap.size}, from ${slice} on, have not`;
    return {
      ...error("unwritten-read", [node]),
      message: `${name} on rank ${rank} is read without being written first`,
      memory: { rank, tensor: name, slice, bytes: gap.missing },
      found: `${placeText(place)} reads ${sliceText(program, read, read)}; ${lack} been written in this run`,
      expected: place.command === null ? "outputs that the program writes entirely" : "a write before the read",
      help:
        place.command === null
          ? `write all of ${name}, or remove it from the outputs`
          : `write ${slice} first, or read less`,
    };
  },
  notAllocated: ({ node, buffer, region }, graph, table) => {
    const alloc = allocOf(graph, buffer);
    return {
      ...error("used-before-alloc", [alloc, node]),
      ...usedMemory(graph, table, buffer, region),
      message: `${tensorText(graph, buffer)} is used before it is allocated`,
      found: `${placeText(placeOf(graph, node))} comes before ${placeText(placeOf(graph, alloc))}`,
      expected: "an Allocate before the first use",
      help: "move the Allocate to before the use",
    };
  },
  freed: ({ node, buffer, region, other }, graph, table) => ({
    ...error("used-after-free", [other, node]),
    ...usedMemory(graph, table, buffer, region),
    message: `${tensorText(graph, buffer)} is used after it has been freed`,
    found: `${placeText(placeOf(graph, node))} comes after ${placeText(placeOf(graph, other))}`,
    expected: "the Deallocate after the last use",
    help: "move the Deallocate to after the use",
  }),
  freedTwice: ({ node, buffer, other }, graph) => ({
    ...error("freed-twice", other === null ? [node] : [other, node]),
    message: `${tensorText(graph, buffer)} is freed ${other === null ? "though it is not allocated" : "twice"}`,
    found: placeText(placeOf(graph, node)) + (other === null ? "" : ` after ${placeText(placeOf(graph, other))}`),
    expected: "one Deallocate for each Allocate",
    help: "remove the second Deallocate",
  }),
  allocatedTwice: ({ node, buffer, other }, graph) => ({
    ...error("allocated-twice", [other, node]),
    message: `${tensorText(graph, buffer)} is allocated again without a Deallocate in between`,
    found: `${placeText(placeOf(graph, node))} after ${placeText(placeOf(graph, other))}`,
    expected: "one Deallocate for each Allocate",
    help: "free the buffer before it is allocated again, or remove the second Allocate",
  }),
  bytesInUse: ({ node, buffer, sibling, other }, graph) => {
    const { name } = at(graph.program.buffers, sibling);
    const alloc = other === null ? "" : `, which ${placeText(placeOf(graph, other))} allocates`;
    return {
      ...error("memory-shared", other === null ? [node] : [other, node]),
      message: `${tensorText(graph, buffer)} is allocated in the live memory of ${name}`,
      found: `${placeText(placeOf(graph, node))}, with no free of ${name} before it${alloc}`,
      expected: "shared bytes only where the free of one buffer comes before the alloc of the other",
      help: "give the buffers separate places",
    };
  },
  eventNotRecorded: ({ node, record }, graph) => ({
    ...error("event-not-recorded", record === null ? [node] : [record, node]),
    message:
      record === null
        ? "a command waits for an event that nothing records"
        : "an event is waited for before it is recorded",
    found:
      placeText(placeOf(graph, node)) +
      (record === null ? "" : `, which comes before ${placeText(placeOf(graph, record))}`),
    expected: "a recordEvent earlier in the same list",
    help: "record the event before it is waited for",
  }),
  eventRecordedTwice: ({ node, record }, graph) => ({
    ...error("event-recorded-twice", [record, node]),
    message: "an event is recorded by two commands",
    found: `${placeText(placeOf(graph, record))} and ${placeText(placeOf(graph, node))}`,
    expected: "a separate event for each recordEvent",
    help: "number the events of a list without gaps or repetitions",
  }),
  unbalancedSlot: ({ node, slot, signals, waits }, graph) => {
    const { signaller, waiter } = at(graph.program.slots, slot);
    const counts = `${counted(signals, "signal")} and ${counted(waits, "wait")}`;
    return {
      ...error("signal-unbalanced", [node]),
      message:
        signals > waits
          ? `rank ${waiter} does not wait for a signal of rank ${signaller}`
          : `rank ${waiter} waits for a signal that rank ${signaller} does not send`,
      found: `${counts} on slot ${slot}; one of them is ${placeText(placeOf(graph, node))}`,
      expected: "equal numbers of signals and waits in every run",
      help:
        signals > waits
          ? `Wait on rank ${waiter} for the signal of ${statementText(placeOf(graph, node))}`
          : `post the other half on rank ${signaller}, or remove ${statementText(placeOf(graph, node))}`,
    };
  },
  outsideBuffer: ({ node, region }, graph, table) => {
    const { buffer } = at(table.regions, region);
    const { name, bytes } = at(graph.program.buffers, buffer);
    const reached = sliceText(graph.program, at(table.regions, region), at(table.regions, region));
    return {
      ...error("outside-buffer", [node]),
      message: `a command reaches beyond the end of ${name}`,
      found: `${placeText(placeOf(graph, node))}: ${reached}`,
      expected: `bytes 0 to ${bytes - 1}`,
      help: "correct the offset, shape or strides of the view",
    };
  },
  overlappingOperands: ({ node, written, other, rule }, graph) => {
    const { name } = at(graph.program.buffers, written.buffer);
    const [target, overlapped] = [written, other ?? written].map((each) => sliceText(graph.program, each, each));
    const writes = `${placeText(placeOf(graph, node))} writes ${target}`;
    if (other === null) {
      return {
        ...error("operands-overlap", [node]),
        message: `an output of a command overlaps itself in ${name}`,
        found: `${writes}, where several elements have the same bytes`,
        expected: rule,
        help: "write to a tensor that has all elements, or write one of them and expand the result",
      };
    }
    return {
      ...error("operands-overlap", [node]),
      message: `operands of one command overlap in ${name}`,
      found: `${writes}; another operand is ${overlapped}`,
      expected: rule,
      help: "write to another tensor, or use the command's form in place",
    };
  },
};

function error(
  code: RawFinding["code"],
  visits: readonly number[],
): Pick<RawFinding, "code" | "severity" | "visits" | "memory" | "notes" | "edge"> {
  return { code, severity: "error", visits, memory: null, notes: [], edge: null };
}

function cycleFinding(graph: Graph, cycle: readonly QueueWait[]): Pick<RawFinding, "found" | "notes"> {
  const [first] = cycle;
  const steps = cycle.map(
    ({ node, awaits }) => `${placeText(placeOf(graph, node))} waits for ${placeText(placeOf(graph, awaits))}`,
  );
  return { found: first === undefined ? "" : at(steps, 0), notes: steps.slice(1) };
}

/** The first alloc of a buffer that is not always alive. */
function allocOf(graph: Graph, buffer: number): number {
  const { rank } = at(graph.program.buffers, buffer);
  const { commands } = at(graph.program.ranks, rank);
  return nodeOf(
    graph,
    rank,
    commands.findIndex((command) => command.kind === "alloc" && command.buffer === buffer),
  );
}

function tensorText({ program }: Graph, buffer: number): string {
  const { name, rank } = at(program.buffers, buffer);
  return `${name} on rank ${rank}`;
}

function usedMemory(
  { program }: Graph,
  { regions, sizes }: RegionTable,
  buffer: number,
  region: number,
): { readonly memory: SharedMemory } {
  const { name, rank } = at(program.buffers, buffer);
  const used = at(regions, region);
  return { memory: { rank, tensor: name, slice: sliceText(program, used, used), bytes: at(sizes, region) } };
}
