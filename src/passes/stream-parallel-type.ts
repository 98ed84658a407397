/**
 * Turns Stream axes into host loops whose iterations run on alternating streams.
 *
 *   T1[iStreamIdx{i0}, i1] = Set(T0)
 * becomes
 *   T1 = ALLOCATE(...)
 *   GetCurrentStream into Stream 0
 *   FOR streamIdx: SetCurrentStream to Stream (streamIdx % numberOfStreams); Synchronize Stream 0
 *   FOR streamIdx: SetCurrentStream ...; T2 = select T0; T3 = select T1; T3 = Set(T2); SetCurrentStream to Stream 0; Synchronize ...
 *
 * Grouping is here, one loop's statements are made in stream-loop.ts. Source: nvFuser's StreamParallelType.
 */
import { fail } from "../diagnostics/diagnostic.ts";
import { type IterDomain, isDID, type Tensor } from "../ir/domain.ts";
import { type Op, standaloneHostOp } from "../ir/ops.ts";
import type { HostProgram, PostOnStream, Statement } from "../host/nodes.ts";
import { isOp } from "../host/statement-kinds.ts";
import { accessesOf } from "../host/traverse.ts";
import { at } from "../support/invariant.ts";
import { type AxisClasses, axisClasses } from "./axis-classes.ts";
import { axisText, opPlace, tensorList } from "./op-text.ts";
import type { Pass } from "./pass.ts";
import { isResharding } from "./sharding.ts";
import { sameScalar } from "../ir/scalar-fold.ts";
import { loopedOperandAxes } from "./slice-op.ts";
import { emitLoop, type LoopEdit, type StreamLoop } from "./stream-loop.ts";

export const streamParallelType: Pass<"segmented", "looped"> = {
  name: "stream-parallel-type",
  from: "segmented",
  to: "looped",
  run: (program, { rank }) => {
    requireUnstreamedInputs(program);
    const all = groupIntoLoops(program);
    const groups = all.flatMap((group) => ofRank(group, program.tensors, rank) ?? []);
    if (groups.length === program.body.length && groups.every((group, i) => group === program.body[i])) return program;
    const edit: LoopEdit = {
      tensors: [...program.tensors],
      streams: [...program.streams],
      iterDomainCount: program.iterDomainCount,
    };
    const body = groups.flatMap((group) => (group.kind === "StreamLoop" ? emitLoop(group, edit, rank) : [group]));
    return { ...program, ...edit, body };
  },
};

/**
 * What is left of a statement or loop on a device: statements with a tensor there. Loops are grouped before, so that all ranks make the
 * same loops and post their communications in the same order.
 */
function ofRank(
  group: Statement | StreamLoop,
  tensors: readonly Tensor[],
  rank: number,
): Statement | StreamLoop | null {
  if (group.kind === "StreamLoop") {
    const members = group.members.filter(({ op }) => runsOn(op, tensors, rank));
    if (members.length === group.members.length) return group;
    return members.length === 0 ? null : { ...group, members };
  }
  return !(isOp(group) || group.kind === "PostOnStream") || runsOn(group, tensors, rank) ? group : null;
}

function runsOn(statement: Op | PostOnStream, tensors: readonly Tensor[], rank: number): boolean {
  const { reads, writes } = accessesOf(statement);
  return [...reads, ...writes].some((id) => {
    const { mesh } = at(tensors, id);
    return mesh === null || mesh.has(rank);
  });
}

function requireUnstreamedInputs({ inputs, tensors }: HostProgram): void {
  for (const input of inputs) {
    const tensor = at(tensors, input);
    const axis = tensor.domain.loop.find((candidate) => candidate.parallelType === "Stream");
    if (axis === undefined) continue;
    fail({
      code: "stream-on-input",
      message: `fusion input T${input} is parallelized with Stream`,
      place: { kind: "tensor", text: axisText(tensor, axis) },
      found: "Stream on a fusion input",
      expected: "Stream on tensors that an op computes",
      help: "parallelize the output of the op that reads it; its input is sliced by itself",
    });
  }
}

function groupIntoLoops(program: HostProgram): readonly (Statement | StreamLoop)[] {
  const { tensors } = program;
  const classes = axisClasses(program);
  const groups: (Statement | StreamLoop)[] = [];
  for (const statement of program.body) {
    const looped = loopedAxis(statement, tensors);
    if (looped === null || !isOp(statement)) {
      groups.push(statement);
      continue;
    }
    requireCollectiveForm(statement, looped, tensors);
    const last = groups.at(-1);
    if (last?.kind === "StreamLoop" && canJoin(last, statement, looped, classes, tensors)) {
      last.members.push({ op: statement, looped });
      last.made.set(statement.output, looped);
    } else {
      const made = new Map([[statement.output, looped]]);
      groups.push({ kind: "StreamLoop", axis: looped, members: [{ op: statement, looped }], made });
    }
  }
  return groups;
}

/**
 * The axes must index the same thing and have the same extent (a broadcast axis can link axes of different extents), and what the
 * loop has made so far must be read at the loop's own index: another chunk of it may not be there yet.
 */
function canJoin(
  loop: StreamLoop,
  op: Op,
  looped: IterDomain,
  classes: AxisClasses,
  tensors: readonly Tensor[],
): boolean {
  if (!classes.same(loop.axis, looped) || !sameScalar(loop.axis.extent, looped.extent)) return false;
  const axes = loopedOperandAxes(op, looped, tensors);
  return op.inputs.every((input, operand) => {
    const madeAlong = loop.made.get(input);
    return madeAlong === undefined || madeAlong.id === axes[operand]?.id;
  });
}

/** The Stream axis over which the statement must be looped; null when its outputs have none. */
function loopedAxis(statement: Statement, tensors: readonly Tensor[]): IterDomain | null {
  const outputs = isOp(statement) ? [statement.output] : statement.kind === "PostOnStream" ? statement.outputs : [];
  const streamed = outputs.flatMap((output) => {
    const axes = at(tensors, output).domain.loop.filter((axis) => axis.parallelType === "Stream");
    return axes.map((axis) => ({ tensor: at(tensors, output), axis }));
  });
  const [first, second] = streamed;
  if (first === undefined) return null;
  const { tensor, axis } = first;
  const place = isOp(statement)
    ? opPlace(statement)
    : ({ kind: "statement", text: `PostOnStream of a fused unit with outputs ${tensorList(outputs)}` } as const);
  const found = axisText(tensor, axis);
  if (!isOp(statement) || !standaloneHostOp[statement.kind]) {
    fail({
      code: "stream-on-host-unit",
      message: "Stream stands on the output of an op that cannot run as a standalone host op",
      place,
      found,
      expected: `one of ${Object.entries(standaloneHostOp)
        .flatMap(([kind, alone]) => (alone ? kind.toLowerCase() : []))
        .join(", ")}`,
      help: "put set() behind the op and parallelize the set's output with Stream",
    });
  }
  if (second !== undefined) {
    fail({
      code: "stream-repeated",
      message: `Stream stands twice on T${tensor.id}`,
      place,
      found: `${found} and ${axisText(second.tensor, second.axis)}`,
      expected: "at most one Stream axis per tensor",
      help: "make one of the two axes Serial",
    });
  }
  if (!tensor.domain.logical.some((candidate) => candidate.id === axis.id)) {
    fail({
      code: "stream-on-split-axis",
      message: "Stream stands on an axis made by split or merge",
      place,
      found,
      expected: "Stream on a whole logical axis",
      help: "shape the input with the chunks as an axis of its own, and parallelize that axis",
    });
  }
  if (axis.iterType === "reduction") {
    fail({
      code: "stream-on-reduction-axis",
      message: "Stream stands on a reduced or contracted axis",
      place,
      found,
      expected: "Stream on an axis that the output keeps",
      help: "parallelize another axis of the output with Stream",
    });
  }
  return axis;
}

/** A DID axis that becomes the Stream axis itself needs sends and receives; all else is a collective per chunk. */
function requireCollectiveForm(op: Op, looped: IterDomain, tensors: readonly Tensor[]): void {
  if (!isResharding(op, tensors)) return;
  loopedOperandAxes(op, looped, tensors).forEach((axis, operand) => {
    if (axis === null || !isDID(axis.parallelType)) return;
    const producer = at(tensors, at(op.inputs, operand));
    fail({
      code: "point-to-point-unsupported",
      message: `${axisText(producer, axis)} becomes ${axisText(at(tensors, op.output), looped)}, which needs point-to-point communication`,
      place: opPlace(op),
      found: `${axis.parallelType} and Stream on the same axis`,
      expected: `the ${axis.parallelType} axis apart from the Stream axis`,
      help: "shape the tensor as [chunks, devices, ...], shard the devices axis and parallelize the chunks axis with Stream",
    });
  });
}
