/**
 * Mistakes in lists that do not depend on order: events that no earlier command records, slots with more signals than
 * waits or the reverse, and operands that reach outside their buffer or share bytes that the command's table does not
 * allow.
 */
import { type Collective, type Command, isWork } from "../../commands/command.ts";
import { type CollectiveRow, collectives } from "../../commands/collectives.ts";
import type { InPlace, Kernel, UnitKernel } from "../../commands/kernel.ts";
import { linkedCommandAt, type LinkedTransfer, type Program } from "../../commands/program.ts";
import { accessedViews, boundViews, type Region, regionOf } from "../../commands/region.ts";
import { alignViews, partOf, repeatsElements, sameView, type View } from "../../commands/view.ts";
import { dtypes } from "../../numerics/dtype.ts";
import { dispatch, type RuleTable, at } from "../../support/invariant.ts";
import { type Graph, nodeKinds, nodeOf } from "../order/graph.ts";
import { overlapsOf, type RegionTable } from "./region-table.ts";
import { sharedBytes, spanOf } from "./shared-bytes.ts";

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

// Which operands of one command may share bytes. A pointwise kernel may write the elements it reads, a combination may
// write one of its inputs, and a collective may share bytes as the table of collectives says. All other outputs must
// overlap neither inputs nor each other. No output may have one byte at two elements: which of them is written last is
// not determined.

interface IllegalOverlap {
  /** The written operand that overlaps another one, or, for null, itself. */
  readonly written: Region;
  readonly other: Region | null;
  /** The overlap that the command allows. */
  readonly rule: string;
}

const apart = "outputs that overlap neither inputs nor each other";

const elementwise = "an output that is an input, element by element, or does not overlap it";

/** A command and the participants of its transfer, if it is one. */
type Rest = [Program, LinkedTransfer | null, number];

const rules: RuleTable<Command, IllegalOverlap | null, Rest> = {
  launch: ({ kernel: id, inputs, outputs }, { kernels }) => {
    const kernel = at(kernels, id);
    const allowed = mayWriteInPlace[kernel.kind];
    const [read, written] = [boundViews(inputs, kernel.inputs), boundViews(outputs, kernel.outputs)];
    const pairs = kernel.kind === "unit" ? (kernel.inPlace ?? []) : [];
    const isPair = (input: View, output: View): boolean =>
      pairs.some((pair) => read[pair.input] === input && written[pair.output] === output);
    const wrong = kernel.kind === "unit" ? pairs.find((pair) => !canWriteOver(kernel, pair, read, written)) : undefined;
    if (wrong !== undefined) {
      return { written: regionOf(at(written, wrong.output)), other: regionOf(at(read, wrong.input)), rule: overInput };
    }
    return firstOverlap(
      read,
      written,
      (input, output) => (allowed || isPair(input, output)) && sameElements(input, output),
      allowed ? elementwise : apart,
    );
  },
  copy: ({ source, destination }) => firstOverlap([source], [destination], () => false, apart),
  transfer: (command, { kernels }, transfer, rank) => {
    if (command.operation.kind === "collective") return collectiveOverlap(command.operation, transfer, rank);
    const { reads, writes } = accessedViews(command, kernels);
    return firstOverlap(reads, writes, () => false, apartInGroups);
  },
  recordEvent: () => null,
  waitEvent: () => null,
  signal: () => null,
  waitSignal: () => null,
  alloc: () => null,
  free: () => null,
};

const overInput =
  "an output in place of an input that its step alone reads, element by element or as what it scatters to";

/** Whether the unit's output may be, and is, in the memory of the input. */
function canWriteOver(
  { steps, results }: UnitKernel,
  { input, output }: InPlace,
  read: readonly View[],
  written: readonly View[],
): boolean {
  if (!sameElements(at(read, input), at(written, output))) return false;
  const readers = steps.flatMap((step) => step.inputs.flatMap((value, i) => (value === input ? [{ step, i }] : [])));
  const [first, ...others] = readers;
  if (first?.step.kind === "ScatterAdd" && first.i === 0 && others.length === 0) {
    return first.step.output === results[output];
  }
  return results.length === 1 && steps.every(({ kind }) => perElement.has(kind));
}

const perElement: ReadonlySet<string> = new Set(["Unary", "Cast", "Binary", "Ternary"]);

const apartInGroups = "receives that overlap neither sends nor each other: a group has no order";

/** Kernels that read an element before they write it, and no other element afterwards. */
const mayWriteInPlace: { readonly [K in Kernel["kind"]]: boolean } = {
  unary: true,
  cast: true,
  binary: true,
  combine: true,
  reduction: false,
  matmul: false,
  linear: false,
  fill: false,
  iota: false,
  sdpa: false,
  sdpaBackward: false,
  unit: false,
  opaque: false,
};

/** Null if the command at `index` of the rank's list allows all overlaps of its operands. */
export function illegalOverlap(
  program: Program,
  rank: number,
  index: number,
  command = linkedCommandAt(at(program.ranks, rank), index),
): IllegalOverlap | null {
  const id = at(program.ranks, rank).transferOf[index] ?? null;
  const transfer = id === null ? null : at(program.transfers, id);
  return dispatch<Command, IllegalOverlap | null, Rest>(rules, command, program, transfer, rank);
}

/** The first output whose elements share bytes. Null if the command has none. */
export function repeatedOutput({ kernels }: Pick<Program, "kernels">, command: Command): IllegalOverlap | null {
  const written = accessedViews(command, kernels).writes.find(repeatsElements);
  return written === undefined ? null : { written: regionOf(written), other: null, rule: apartInItself };
}

const apartInItself = "an output whose elements share no bytes";

function firstOverlap(
  read: readonly View[],
  written: readonly View[],
  isAllowed: (input: View, output: View) => boolean,
  rule: string,
): IllegalOverlap | null {
  const buffers = new Set(written.map(({ buffer }) => buffer));
  // A rank may send one view to all others.
  const views = [...written, ...new Set(read.filter(({ buffer }) => buffers.has(buffer)))];
  if (views.length === buffers.size) return null;
  const regions = views.map(regionOf);
  const { start, values } = overlapsOf(regions).overlaps;
  for (const [i, output] of written.entries()) {
    const others = values.subarray(at(start, i), at(start, i + 1)).toSorted();
    const other =
      others.find((each) => each >= written.length && !isAllowed(at(views, each), output)) ??
      others.find((each) => each > i && each < written.length);
    if (other !== undefined) return { written: at(regions, i), other: at(regions, other), rule };
  }
  return null;
}

function overlap(a: View, b: View): boolean {
  if (a.buffer !== b.buffer) return false;
  const [first, second] = [regionOf(a), regionOf(b)];
  return sharedBytes({ start: first.offset, ...first }, { start: second.offset, ...second }) > 0;
}

const inPlaceForms: { readonly [F in CollectiveRow["inPlace"]]: string } = {
  same: "an output that is the input, or does not overlap it",
  part: "the rank's own slice of the other side, which no other slice overlaps, or no overlap with it",
  never: apart,
};

function collectiveOverlap(
  operation: Collective,
  transfer: LinkedTransfer | null,
  rank: number,
): IllegalOverlap | null {
  const { type, input, output } = operation;
  if (input === null || output === null || !overlap(input, output)) return null;
  const { inPlace, splitsInput } = collectives[type];
  if (inPlace === "same" && sameElements(input, output)) return null;
  if (inPlace === "part") {
    const [split, single] = splitsInput ? [input, output] : [output, input];
    if (
      !repeatsElements(split) &&
      sameElements(partOf(split, placeIn(transfer, rank, splitsInput ? "output" : "input")), single)
    )
      return null;
  }
  return { written: regionOf(output), other: regionOf(input), rule: inPlaceForms[inPlace] };
}

/** The index of the rank's slice in the split side: slices go to the ranks that have the other side, in order. */
function placeIn(transfer: LinkedTransfer | null, rank: number, side: "input" | "output"): number {
  const before = transfer?.participants.slice(
    0,
    transfer.participants.findIndex((participant) => participant.rank === rank),
  );
  const holders = before?.filter(({ operation }) => operation.kind === "collective" && operation[side] !== null);
  return holders?.length ?? 0;
}

function sameElements(a: View, b: View): boolean {
  if (dtypes[a.dtype].bytes !== dtypes[b.dtype].bytes) return false;
  const [first, second] = alignViews([a, { ...b, dtype: a.dtype }]) ?? [];
  return first !== undefined && second !== undefined && sameView(first, second);
}
