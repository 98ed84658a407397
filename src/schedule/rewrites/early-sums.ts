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
import type { CommandStreamId, Launch } from "../../commands/command.ts";
import type { BufferRef } from "../../commands/buffer.ts";
import type { CombineKernel, Operand, ReductionKernel } from "../../commands/kernel.ts";
import { contiguousStrides } from "../../commands/view.ts";
import { accumulatorOf, dtypes } from "../../numerics/dtype.ts";
import { makeId } from "../../support/ids.ts";
import { at } from "../../support/invariant.ts";
import { type Draft, type DraftNode, freshId } from "../draft/draft.ts";
import type { EditContext } from "../draft/edit-ranks.ts";
import { type Grouping, grouped } from "../draft/grouping.ts";
import { conflict } from "../draft/touch.ts";
import { isGemmLaunch } from "../draft/gemm-axes.ts";
import { idsRelied } from "../draft/pasts.ts";
import { draftRewrite, type Rewrite } from "../rewrite.ts";
import { concerns } from "../draft/signal-guarantees.ts";

export const earlySums: Rewrite<Grouping> = draftRewrite(
  "early-sums",
  (grouping) => (draft, context) => draft.nodes.reduce((left, { id }) => sumEarly(left, id, context, grouping), draft),
);

/** One of the added tensors, and its memory. */
interface Part {
  readonly ref: BufferRef;
  readonly operand: Operand;
}

function sumEarly(draft: Draft, id: number, context: EditContext, grouping: Grouping): Draft {
  const { memory } = context;
  const position = draft.nodes.findIndex((node) => node.id === id);
  const node = at(draft.nodes, position);
  const { command } = node;
  if (command.kind !== "launch") return draft;
  const kernel = at(memory.kernels, command.kernel);
  if (kernel.kind !== "reduction" || kernel.axes.length !== 1) return draft;
  const groups = grouped(inOrderOfArrival(draft, position, command, kernel, context), grouping);
  if (groups.length < 2) return draft;

  const output: Part = { ref: at(command.outputs, 0), operand: at(kernel.outputs, 0) };
  const { shape } = output.operand;
  const dtype = accumulatorOf[output.operand.dtype];
  const buffer = memory.addTemporary(draft.rank, { dtype, shape, name: "sum" });
  const accumulator: Part = {
    ref: { buffer, offset: 0 },
    operand: { dtype, shape, strides: contiguousStrides(shape) },
  };
  const sums = makeId<CommandStreamId>(draft.streams.length);
  const fresh = freshId(draft.nodes);
  const stages = groups.map((parts, i): DraftNode => {
    const isLast = i === groups.length - 1;
    const stage: Launch = {
      ...combination(kernel.op, i === 0 ? parts : [accumulator, ...parts], isLast ? output : accumulator, context),
      stream: isLast ? command.stream : sums,
    };
    const touches = memory.touches(stage);
    const sync = node.sync.filter((other) => {
      const wait = draft.nodes.find((candidate) => candidate.id === other);
      return isLast || concerns(wait?.guarantee ?? null, draft.rank, touches);
    });
    return { ...node, id: isLast ? id : fresh + i, command: stage, sync, sources: isLast ? node.sources : [] };
  });
  const mark = (kind: "alloc" | "free", number: number): DraftNode => ({
    ...node,
    id: fresh + groups.length + number,
    command: { kind, stream: makeId<CommandStreamId>(0), buffer },
    sources: [],
    sync: [],
    pasts: [],
  });
  // The waits of the early sums move with them: on another stream they would queue after unrelated work.
  const early = idsRelied(stages.slice(0, -1));
  const needed = idsRelied(draft.nodes.slice(0, position));
  const moved = draft.nodes.map((other) =>
    early.has(other.id) && other.command.kind === "waitSignal" && !needed.has(other.id)
      ? { ...other, command: { ...other.command, stream: sums } }
      : other,
  );
  return {
    ...draft,
    streams: [...draft.streams, { id: sums, role: "worker", name: "sums" }],
    nodes: [mark("alloc", 0), ...moved.slice(0, position), ...stages, ...moved.slice(position + 1), mark("free", 1)],
  };
}

/** The slices of the reduced axis; none if all are available at the same time. */
function inOrderOfArrival(
  { nodes, rank }: Draft,
  position: number,
  { inputs }: Launch,
  kernel: ReductionKernel,
  context: EditContext,
): readonly Part[] {
  const axis = at(kernel.axes, 0);
  const { dtype, shape, strides } = at(kernel.inputs, 0);
  const ref = at(inputs, 0);
  const parts = Array.from({ length: at(shape, axis) }, (_, i): Part => ({
    ref: { buffer: ref.buffer, offset: ref.offset + i * at(strides, axis) * dtypes[dtype].bytes },
    operand: { dtype, shape: shape.toSpliced(axis, 1), strides: strides.toSpliced(axis, 1) },
  }));
  const [before, node] = [nodes.slice(0, position), at(nodes, position)];
  const arrivals = parts.map((part) => arrivalOf(part, before, node, rank, context));
  if (new Set(arrivals).size < 2) return [];
  const order = parts.map((_, i) => i).sort((a, b) => at(arrivals, a) - at(arrivals, b) || a - b);
  return order.map((i) => at(parts, i));
}

/**
 * A sort key for when the slice is complete: own slices by list position, then peers' slices by the position of the
 * wait or copy, and last an own slice that is the result of the last GEMM.
 */
function arrivalOf(
  { ref, operand }: Part,
  before: readonly DraftNode[],
  { sync }: DraftNode,
  rank: number,
  { memory }: EditContext,
): number {
  const view = { ...ref, ...operand };
  const reading = { kind: "copy", stream: makeId<CommandStreamId>(0), source: view, destination: view } as const;
  const part = at(memory.touches(reading), 0);
  const position = before.findLastIndex(({ id, command, guarantee }) => {
    if (command.kind === "waitSignal")
      return sync.includes(id) && guarantee !== null && conflict(guarantee.done, [part]);
    return command.kind !== "alloc" && conflict(memory.touches(command), [part]);
  });
  const last = before[position]?.command;
  if (last === undefined) return -1;
  const isSent = last.kind === "waitSignal" || memory.touches(last).some((touch) => touch.rank !== rank);
  if (isSent) return before.length + position;
  const lastGemm = before.findLastIndex(({ command }) => isGemmLaunch(command, memory));
  return position >= lastGemm && lastGemm >= 0 ? 2 * before.length : position;
}

function combination(
  op: CombineKernel["op"],
  parts: readonly Part[],
  result: Part,
  { memory }: EditContext,
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
