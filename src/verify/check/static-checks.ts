/**
 * Mistakes in lists that do not depend on order: events that no earlier command records, slots with more signals than
 * waits or the reverse, and operands that reach outside their buffer or share bytes that the command's table does not
 * allow.
 */
import { isWork } from "../../commands/command.ts";
import { at } from "../../support/invariant.ts";
import { type Graph, nodeKinds, nodeOf } from "../order/graph.ts";
import { type IllegalOverlap, illegalOverlap, repeatedOutput } from "./in-place.ts";
import { spanOf } from "./shared-bytes.ts";
import type { RegionTable } from "./region-table.ts";

export type StaticProblem =
  /** `record` is null if no command records the event. */
  | { readonly kind: "eventNotRecorded"; readonly node: number; readonly record: number | null }
  | { readonly kind: "eventRecordedTwice"; readonly node: number; readonly record: number }
  /** `node`: the first signal or wait in excess. */
  | {
      readonly kind: "unbalancedSlot";
      readonly node: number;
      readonly slot: number;
      readonly signals: number;
      readonly waits: number;
    }
  | { readonly kind: "outsideBuffer"; readonly node: number; readonly region: number }
  | ({ readonly kind: "overlappingOperands"; readonly node: number } & IllegalOverlap);

export function staticProblems(graph: Graph, table: RegionTable): readonly StaticProblem[] {
  return [...eventProblems(graph), ...slotProblems(graph), ...operandProblems(graph, table)];
}

function eventProblems({ kind, argument, eventWaits, nodeCount }: Graph): readonly StaticProblem[] {
  const record = new Int32Array(eventWaits.length).fill(-1);
  const problems: StaticProblem[] = [];
  for (let node = 0; node < nodeCount; node++) {
    if (kind[node] !== nodeKinds.record) continue;
    const event = at(argument, node);
    const earlier = at(record, event);
    if (earlier >= 0) problems.push({ kind: "eventRecordedTwice", node, record: earlier });
    else record[event] = node;
  }
  for (let node = 0; node < nodeCount; node++) {
    if (kind[node] !== nodeKinds.wait) continue;
    const recorded = at(record, at(argument, node));
    if (recorded < 0) problems.push({ kind: "eventNotRecorded", node, record: null });
    else if (recorded > node) problems.push({ kind: "eventNotRecorded", node, record: recorded });
  }
  return problems;
}

function slotProblems({ kind, argument, nodeCount, program }: Graph): readonly StaticProblem[] {
  const signals: number[][] = program.slots.map(() => []);
  const waits: number[][] = program.slots.map(() => []);
  for (let node = 0; node < nodeCount; node++) {
    if (kind[node] === nodeKinds.signal) at(signals, at(argument, node)).push(node);
    if (kind[node] === nodeKinds.take) at(waits, at(argument, node)).push(node);
  }
  return signals.flatMap((signalling, slot): readonly StaticProblem[] => {
    const waiting = at(waits, slot);
    if (signalling.length === waiting.length) return [];
    const [more, fewer] = signalling.length > waiting.length ? [signalling, waiting] : [waiting, signalling];
    const node = at(more, fewer.length);
    return [{ kind: "unbalancedSlot", node, slot, signals: signalling.length, waits: waiting.length }];
  });
}

function operandProblems(graph: Graph, table: RegionTable): readonly StaticProblem[] {
  const { program } = graph;
  const problems: StaticProblem[] = [];
  const outside = table.regions.map(
    ({ buffer, offset, dims, bytes }) =>
      offset < 0 || offset + spanOf({ dims, bytes }) > at(program.buffers, buffer).bytes,
  );
  for (const [rank, { commands }] of program.ranks.entries()) {
    for (const [index, command] of commands.entries()) {
      if (!isWork(command.kind)) continue;
      const node = nodeOf(graph, rank, index);
      const touched = touchedBy(table, node);
      const beyond = touched.find((region) => outside[region]);
      if (beyond !== undefined) problems.push({ kind: "outsideBuffer", node, region: beyond });
      const illegal =
        repeatedOutput(program, command) ??
        (sharesBuffer(table, touched) ? illegalOverlap(program, rank, index) : null);
      if (illegal !== null) problems.push({ kind: "overlappingOperands", node, ...illegal });
    }
  }
  return problems;
}

function touchedBy({ reads, writes }: RegionTable, node: number): readonly number[] {
  return [reads, writes].flatMap(({ start, values }) => [...values.subarray(at(start, node), at(start, node + 1))]);
}

/** Most commands have each operand in its own buffer. */
function sharesBuffer({ buffer }: RegionTable, touched: readonly number[]): boolean {
  return new Set(touched.map((region) => buffer[region])).size < touched.length;
}
