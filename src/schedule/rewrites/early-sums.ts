/**
 * Adds partial results as they arrive instead of all at the end. A reduction over slots that fill at different times
 * becomes several reductions in order of arrival, with an accumulator between them. After the last arrival only the
 * last group remains.
 *
 *     wait 1, .., wait 7, GEMM; sum of 8 slots    ->    sums:   wait 1, .., wait 4, slots 1 + .. + 4 -> accumulator
 *                                                       caller: wait 5, .., GEMM; accumulator + slots 5 + .. -> result
 *
 * The accumulator is float for half and bfloat16, so each sum still rounds once, but in order of arrival instead of
 * device order. This is the only rewrite that may change the last bits. They are the same in every run.
 */
import type { CommandStreamId, Launch, StreamInfo } from "../../commands/command.ts";
import type { CombineKernel } from "../../commands/kernel.ts";
import { contiguousStrides } from "../../commands/view.ts";
import { accumulatorOf } from "../../numerics/dtype.ts";
import { makeId } from "../../support/ids.ts";
import { at } from "../../support/invariant.ts";
import { type Draft, type DraftNode, freshId } from "../draft/draft.ts";
import type { EditContext } from "../draft/edit-ranks.ts";
import { type Grouping, grouped } from "../draft/grouping.ts";
import type { Memory } from "../draft/memory/memory.ts";
import { type Past, unknownOf } from "../draft/order/pasts.ts";
import { asSum, createArrivals, type Part, type Sum } from "../draft/sum-arrivals.ts";
import { draftRewrite, type Rewrite } from "../rewrite.ts";
import { concerns } from "../draft/order/signal-guarantees.ts";

export const earlySums: Rewrite<Grouping> = draftRewrite(
  "early-sums",
  (grouping) => (draft, context) => sumAllEarly(draft, context, grouping),
);

/** The edit of a draft, sum by sum. */
interface Editing {
  readonly memory: Memory;
  readonly streams: StreamInfo[];
  fresh: number;
  /** By id of a reduction: the nodes that replace it. */
  readonly stages: Map<number, readonly DraftNode[]>;
  /** By id of a wait: the stream to which it moves. */
  readonly moved: Map<number, CommandStreamId>;
  readonly allocs: DraftNode[];
  readonly frees: DraftNode[];
}

function sumAllEarly(draft: Draft, { memory }: EditContext, grouping: Grouping): Draft {
  const { rank, nodes } = draft;
  const arrivals = createArrivals(nodes, rank, memory);
  const waits = new Map(nodes.flatMap((node) => (node.command.kind === "waitSignal" ? [[node.id, node]] : [])));
  const editing: Editing = {
    memory,
    streams: [...draft.streams],
    fresh: freshId(nodes),
    stages: new Map(),
    moved: new Map(),
    allocs: [],
    frees: [],
  };
  /** What earlier nodes rely on, and the sets of it that were looked at. */
  const needed = new Set<number>();
  const known = new Map<Past, true>();
  for (const [position, node] of nodes.entries()) {
    const sum = asSum(node, memory);
    const groups = sum === null ? [] : grouped(arrivals.inOrder(sum, position), grouping);
    const relied = new Set<number>();
    for (const past of node.pasts) {
      for (const each of unknownOf(past, known)) {
        known.set(each, true);
        for (const id of each.items) relied.add(id);
      }
    }
    if (sum !== null && groups.length > 1) sumEarly(editing, sum, rank, groups, { waits, needed, relied });
    for (const id of [...node.sync, ...relied]) needed.add(id);
  }
  const { stages, moved, allocs, frees, streams } = editing;
  if (stages.size === 0) return draft;
  const edited = nodes.flatMap((node): readonly DraftNode[] => {
    const stream = moved.get(node.id);
    return stages.get(node.id) ?? [stream === undefined ? node : { ...node, command: { ...node.command, stream } }];
  });
  return { ...draft, streams, nodes: [...allocs.toReversed(), ...edited, ...frees] };
}

/** The waits by id, those that earlier nodes rely on, and those that this node and no earlier one has in its pasts. */
interface Waits {
  readonly waits: ReadonlyMap<number, DraftNode>;
  readonly needed: ReadonlySet<number>;
  readonly relied: ReadonlySet<number>;
}

function sumEarly(
  editing: Editing,
  { node, command, kernel }: Sum,
  rank: number,
  groups: readonly (readonly Part[])[],
  { waits, needed, relied }: Waits,
): void {
  const { memory, streams, fresh } = editing;
  const output: Part = { ref: at(command.outputs, 0), operand: at(kernel.outputs, 0) };
  const { shape } = output.operand;
  const dtype = accumulatorOf[output.operand.dtype];
  const buffer = memory.addTemporary(rank, { dtype, shape, name: "sum" });
  const accumulator: Part = {
    ref: { buffer, offset: 0 },
    operand: { dtype, shape, strides: contiguousStrides(shape) },
  };
  const sums = makeId<CommandStreamId>(streams.length);
  streams.push({ id: sums, role: "worker", name: "sums" });
  const stages = groups.map((parts, i): DraftNode => {
    const isLast = i === groups.length - 1;
    const stage: Launch = {
      ...combination(kernel.op, i === 0 ? parts : [accumulator, ...parts], isLast ? output : accumulator, memory),
      stream: isLast ? command.stream : sums,
    };
    const touches = memory.touches(stage);
    const sync = node.sync.filter((id) => isLast || concerns(waits.get(id)?.guarantee ?? null, rank, touches));
    return { ...node, id: isLast ? node.id : fresh + i, command: stage, sync, sources: isLast ? node.sources : [] };
  });
  const mark = (kind: "alloc" | "free", number: number): DraftNode => ({
    ...node,
    id: fresh + groups.length + number,
    command: { kind, stream: makeId<CommandStreamId>(0), buffer },
    sources: [],
    sync: [],
    pasts: [],
  });
  editing.stages.set(node.id, stages);
  editing.allocs.push(mark("alloc", 0));
  editing.frees.push(mark("free", 1));
  editing.fresh = fresh + groups.length + 2;
  // The waits of the early sums move with them: on another stream they would queue after unrelated work.
  for (const id of [...stages.slice(0, -1).flatMap(({ sync }) => sync), ...relied]) {
    if (waits.has(id) && !needed.has(id)) editing.moved.set(id, sums);
  }
}

function combination(
  op: CombineKernel["op"],
  parts: readonly Part[],
  result: Part,
  memory: Memory,
): Pick<Launch, "kind" | "kernel" | "inputs" | "outputs"> {
  const kernel: CombineKernel = {
    kind: "combine",
    op,
    inputs: parts.map(({ operand }) => operand),
    outputs: [result.operand],
  };
  return {
    kind: "launch",
    kernel: memory.kernelId(kernel),
    inputs: parts.map(({ ref }) => ref),
    outputs: [result.ref],
  };
}
