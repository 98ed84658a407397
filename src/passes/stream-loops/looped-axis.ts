/** Finds the Stream axis of a statement's loop, and rejects Stream where no loop can run. */
import { isAttentionOp } from "../../ir/ops/kinds/attention/cudnn-obstacle.ts";
import { isScaled } from "../../ir/ops/kinds/contractions.ts";
import { fail, type Place } from "../../diagnostics/diagnostic.ts";
import type { HostProgram, PostOnStream, Statement } from "../../host/nodes.ts";
import { isOp } from "../../host/traverse.ts";
import { isUnitAxis, type IterDomain, type Tensor, type TensorId, withoutReductions } from "../../ir/domain.ts";
import { axisMap, siblingAxes } from "../../ir/ops/axis-map.ts";
import { isContraction, type Op, type OpKind, outputsOf } from "../../ir/ops/op.ts";
import { opRows } from "../../ir/ops/rows.ts";
import { cutOf, logicalAxisOf } from "../../ir/parts.ts";
import { constantValue, foldProduct } from "../../ir/scalar/fold.ts";
import { typeOfWhole } from "../../ir/shards.ts";
import { chunkFit, type Chunks, sameChunks, streamPart, type StreamPart } from "../../ir/stream.ts";
import { at, invariant, keysOf } from "../../support/invariant.ts";
import { axisText, opPlace, tensorListText } from "../op-text.ts";
import type { LoweringOptions } from "../options.ts";
import type { LoopMember, SlicedAxes } from "./loop-member.ts";

/**
 * The Stream axis of the statement's first output, or null if no output has one. Throws `stream-on-host-unit`,
 * `stream-repeated`, `stream-on-split-axis` and `stream-on-reduction-axis`.
 */
export function loopedAxis(
  statement: Statement,
  tensors: readonly Tensor[],
  { accumulate, nvfuserLimits }: Pick<LoweringOptions, "accumulate" | "nvfuserLimits">,
): StreamPart | null {
  const outputs = isOp(statement) ? outputsOf(statement) : statement.kind === "PostOnStream" ? statement.outputs : [];
  const tensor = outputs.map((output) => at(tensors, output)).find((output) => streamAxes(output).length > 0);
  if (tensor === undefined) return null;
  const place = isOp(statement)
    ? opPlace(statement)
    : ({ kind: "statement", text: `PostOnStream of a fused unit with outputs ${tensorListText(outputs)}` } as const);
  const [first, second] = streamAxes(tensor);
  invariant(first !== undefined, "the tensor has a Stream axis", tensor);
  const found = axisText(tensor, first);
  const bare = outputs.find((output) => streamAxes(at(tensors, output)).length === 0);
  if (isOp(statement) ? !runsOnSlices(statement.kind) : nvfuserLimits || bare !== undefined) {
    fail("stream-on-host-unit", "Stream is on the output of an op that cannot run as a standalone host op", {
      place,
      found: bare === undefined ? found : `${found}, and no Stream on T${bare}`,
      expected:
        bare === undefined
          ? `one of ${keysOf(opRows)
              .filter(runsOnSlices)
              .map((kind) => kind.toLowerCase())
              .join(", ")}`
          : "Stream on all outputs of a unit, or on none",
      help: "put set() after the op and parallelize the set's output with Stream",
    });
  }
  if (second !== undefined) {
    fail("stream-repeated", `Stream is on two axes of T${tensor.id}`, {
      place,
      found: `${found} and ${axisText(tensor, second)}`,
      expected: "at most one Stream axis per tensor",
      help: "make one of the two axes Serial",
    });
  }
  const looped = streamPart(tensor);
  if (looped === null || (nvfuserLimits && looped.chunks !== null)) {
    return rejectPart(place, tensor, first, looped !== null);
  }
  if (first.iterType !== "reduction" || !isOp(statement)) return looped;
  const isSum = looped.chunks !== null && statement.kind === "Reduction" && statement.op === "sum";
  const isContracted = isSum || ((statement.kind === "Matmul" || statement.kind === "Linear") && !isScaled(statement));
  const isLooped = isContracted
    ? accumulate
    : looped.chunks === null && reducesSharded(statement, looped.axis, tensors);
  if (!isLooped) rejectReducedStream(statement, tensor, first, isContracted);
  return looped;
}

/**
 * Throws what `loopedAxis` does for chunks of an axis that the op reduces. Called before operands move: what carries them
 * has the same chunks, and its refusal would name a tensor and a fix that are not the user's.
 */
export function requireReducedChunks(op: Op, tensors: readonly Tensor[], options: LoweringOptions): void {
  const looped = op.kind === "Reduction" || isContraction(op) ? streamPart(at(tensors, op.output)) : null;
  if (looped?.part.iterType !== "reduction" || (op.kind === "Reduction" && looped.chunks === null)) return;
  loopedAxis(op, tensors, options);
}

/** An iota is computed before the loops that read slices of it. */
function runsOnSlices(kind: OpKind): boolean {
  return opRows[kind].standalone && kind !== "Iota";
}

function streamAxes({ domain }: Tensor): readonly IterDomain[] {
  return domain.loop.filter(({ parallelType }) => parallelType === "Stream");
}

/** `isLimited`: a loop could count the part, but for `nvfuserLimits`. */
function rejectPart(place: Place, tensor: Tensor, axis: IterDomain, isLimited: boolean): never {
  const found = axisText(tensor, axis);
  if (isLimited) {
    return fail("stream-on-split-axis", "Stream is on an axis made by split or merge", {
      place,
      found,
      expected: "Stream on a whole logical axis",
      help: "give the input a separate axis for the chunks, and parallelize that axis; or leave out nvfuserLimits",
    });
  }
  const isMerged = logicalAxisOf(tensor.domain, axis) === null;
  return fail({
    code: "stream-on-split-axis",
    message: isMerged ? "Stream is on an axis made by merge" : "Stream is inside of a part without a DID type",
    place,
    found,
    expected: isMerged
      ? "Stream on a logical axis, or on a part that split made from one"
      : "Stream on the outermost part of its axis, or on the part inside of a DID type",
    help: isMerged
      ? "parallelize one of the axes instead of merging them: its chunks overlap with communication in the same way"
      : "call outerSplit() with the number of chunks first: chunks of consecutive indices overlap as well",
  });
}

/** `isContraction`: the option `accumulate` would let the op run chunk by chunk. */
export function rejectReducedStream(op: Op, tensor: Tensor, axis: IterDomain, isContraction: boolean): never {
  return fail("stream-on-reduction-axis", "Stream is on a reduced or contracted axis", {
    place: opPlace(op),
    found: axisText(tensor, axis),
    expected: "Stream on an axis that the output keeps, or on a reduced axis that the operand shards",
    help: isContraction
      ? "set accumulate to true (--schedule accumulate) to add the chunks' results in order, or put Stream on another axis: " +
        "added in order, one chunk waits for the other and only communication overlaps"
      : "parallelize another axis of the output with Stream: cut it into the same number of chunks",
  });
}

/** Whether the op reduces only one axis, which is sharded: an iteration is then the share of one device. */
function reducesSharded(op: Op, axis: IterDomain, tensors: readonly Tensor[]): boolean {
  if (op.kind !== "Reduction" || op.axes.length !== 1) return false;
  const producer = axisMap(op, tensors).find(({ consumer }) => consumer.id === axis.id)?.producer;
  return producer !== undefined && typeOfWhole(at(tensors, at(op.inputs, 0)), producer) !== null;
}

/**
 * Throws `stream-on-input` for a fusion input with Stream that no op reads index by index along that axis. Stream on a
 * part of an axis may have come from an op that reads another copy of the input.
 */
export function requireSlicedInputs({ inputs, tensors }: HostProgram, members: readonly (LoopMember | null)[]): void {
  for (const input of inputs) {
    const tensor = at(tensors, input);
    const [part] = streamAxes(tensor);
    if (part === undefined) continue;
    const own = streamPart(tensor);
    const isSliced =
      (own !== null && own.chunks !== null) ||
      members.some((member) =>
        member?.inputs.some((id, operand) => id === input && member.read[operand]?.id === part.id),
      );
    if (isSliced) continue;
    const loop = members.find((member) => member?.inputs.includes(input)) ?? null;
    const looped = loop === null ? null : axisText(at(tensors, at(loop.outputs, 0)), loop.stream);
    fail("stream-on-input", `no op that reads fusion input T${input} loops over its Stream axis`, {
      place: { kind: "tensor", text: axisText(tensor, part) },
      found: looped === null ? "Stream on a fusion input" : `a loop over ${looped}, which reads all of T${input}`,
      expected: "an op whose output has Stream on the same axis",
      help:
        looped === null
          ? `parallelize that axis of the output of the op that reads T${input}, not of T${input}; if the output has no ` +
            "such axis, remove Stream: the op runs whole and overlaps with nothing"
          : `remove Stream from T${input}: the loop over ${looped} stays`,
    });
  }
}

// The axes of an op's operands that a loop over an axis of its output slices. An operand without the axis, or with one
// element along it, is read whole.

/**
 * For each operand the axis that maps to `looped`, an axis of the op's output, or null. Throws `stream-on-cut-axis` and
 * `stream-on-split-axis`.
 */
export function loopedOperandAxes(
  op: Op,
  looped: IterDomain,
  chunks: Chunks | null,
  tensors: readonly Tensor[],
): readonly (IterDomain | null)[] {
  // An op without operands makes any chunk.
  if (op.inputs.length === 0) return [];
  const output = at(tensors, op.output);
  const pairs = axisMap(op, tensors).filter((pair) => pair.consumer.id === looped.id);
  const parts = chunks === null ? null : chunkCount(output, looped, chunks);
  const isRearranged = pairs.some((pair) => pair.outermost && !isEven(pair.producer, pair.consumer, parts));
  if (pairs.length === 0 || isRearranged) {
    fail({
      code: "stream-on-cut-axis",
      message: `Stream is on ${whyUncounted(op, looped, tensors)}`,
      place: opPlace(op),
      found: axisText(output, looped),
      expected: "Stream on an axis that the op keeps in full",
      help:
        "put set() after the op and parallelize the set's output with Stream: " +
        "the op runs whole before the loop and overlaps with nothing",
    });
  }
  return op.inputs.map((id, operand) => {
    const pair = pairs.find((each) => each.operand === operand);
    if (pair === undefined) return null;
    if (chunks === null) return pair.producer;
    // The one element of an axis, which every device has, is stretched to whatever a chunk of a share has.
    const isOne = (op.kind === "Binary" || op.kind === "Ternary") && isUnitAxis(pair.producer);
    if (pair.broadcast || (isOne && chunkFit(cutOf(at(tensors, id).domain, pair.producer), chunks).kind === "whole"))
      return null;
    requireChunks(op, at(tensors, id), pair.producer, chunks);
    return pair.producer;
  });
}

/** Which axis a loop cannot count. */
function whyUncounted(op: Op, looped: IterDomain, tensors: readonly Tensor[]): string {
  if (op.kind === "Slice" || op.kind === "Select") return "an axis that the op slices";
  const axes = withoutReductions(at(tensors, op.output).domain.logical);
  const position = axes.findIndex(({ id }) => id === looped.id);
  if (isAttentionOp(op) && op.causal !== null && position === axes.length - 2) {
    return "the rows of a causal attention, of which each sees as many keys as its number allows";
  }
  const isAlong = (op.kind === "Scan" || op.kind === "Argsort") && op.axis === position;
  return isAlong ? "the axis along which the op goes: a result needs other indices, too" : "an axis that the op makes";
}

/** The axis of output `which` that the loop slices with `looped` of the first. Throws `stream-on-cut-axis`. */
export function loopedFurtherAxis(op: Op, looped: IterDomain, which: number, tensors: readonly Tensor[]): IterDomain {
  const own = siblingAxes(op, tensors, which).find(({ first }) => first.id === looped.id)?.further;
  if (own !== undefined) return own;
  const { id } = at(tensors, at(outputsOf(op), which));
  return fail("stream-on-cut-axis", `Stream is on an axis that T${id} does not have`, {
    place: opPlace(op),
    found: axisText(at(tensors, op.output), looped),
    expected: "Stream on an axis that all outputs of the op share",
    help: "put Stream on one of the axes in front of the matrices",
  });
}

/** The chunks of all devices; null if their number is not known. */
function chunkCount({ domain }: Tensor, axis: IterDomain, { parts, within }: Chunks): number | null {
  const shares = cutOf(domain, axis).parts.slice(0, within.length);
  return constantValue(foldProduct([parts, ...shares.map(({ extent }) => extent)]));
}

/** Whether the `parts` chunks of two outermost axes of a reshape have the same elements. */
function isEven(producer: IterDomain, consumer: IterDomain, parts: number | null): boolean {
  return [producer, consumer].every(({ extent }) => {
    const size = constantValue(extent);
    return parts !== null && size !== null && size % parts === 0;
  });
}

/** Throws `stream-on-split-axis` if the loop's chunks are not runs of what each device has of the operand. */
function requireChunks(op: Op, operand: Tensor, axis: IterDomain, chunks: Chunks): void {
  const fit = chunkFit(cutOf(operand.domain, axis), chunks);
  if (fit.kind === "fits") return;
  const within = chunks.within.join(" and ");
  fail({
    code: "stream-on-split-axis",
    message:
      fit.kind === "whole"
        ? `a chunk of each device's share is not one run of T${operand.id}, which every device has in full`
        : `a chunk of the whole axis is not on one device: T${operand.id} is cut over devices first`,
    place: opPlace(op),
    found: axisText(operand, axis),
    expected:
      fit.kind === "whole"
        ? `${within} on the axis of T${operand.id} too, or Stream outside of ${within}`
        : `Stream inside of ${fit.type} on the op's output, or a set() to Stream without ${fit.type} before the op`,
    help:
      fit.kind === "whole"
        ? `split the axis by the number of chunks first, and its inner part by the devices: nothing is lost in overlap`
        : `put set() before the op and give it Stream without ${fit.type}: it gathers chunk by chunk, and the op overlaps with it`,
  });
}

// Which tensors of a host unit a loop over the Stream axis of its outputs slices: those from which the outputs take the
// axis. All others are read whole.

/** The sliced axes of the tensors of a unit's Fusion, by tensor. */
type SlicedTensors = ReadonlyMap<TensorId, IterDomain>;

/** The axes of the posted tensors that the loop slices. Throws `stream-on-cut-axis` and `stream-on-split-axis`. */
export function unitAxes(post: PostOnStream, looped: StreamPart, program: HostProgram): SlicedAxes {
  const { fusion } = at(program.units, post.unit);
  const made = post.outputs.map((id) => madeAxis(post, at(program.tensors, id), looped));
  const sliced = slicedTensors(post, made, looped.chunks, program);
  const read = post.inputs.map((id, i): IterDomain | null => {
    const own = sliced.get(at(fusion.inputs, i));
    return own === undefined
      ? null
      : counterpart(own, at(fusion.tensors, at(fusion.inputs, i)), at(program.tensors, id));
  });
  return { read, made };
}

function madeAxis(post: PostOnStream, output: Tensor, looped: StreamPart): IterDomain {
  const own = streamPart(output);
  if (own !== null && sameChunks(own.chunks, looped.chunks)) return own.axis;
  return fail("stream-on-host-unit", "the outputs of a unit have different Stream axes", {
    place: { kind: "statement", text: `PostOnStream of a fused unit with outputs ${tensorListText(post.outputs)}` },
    found: own === null ? `no Stream axis that a loop can count on T${output.id}` : axisText(output, own.part),
    expected: "as many chunks of one axis on all outputs",
    help: "give all outputs the same Stream axis, or put set() after the op and parallelize the set's output with Stream",
  });
}

/**
 * The tensors of the unit's Fusion that have an iteration's slice. `made` are the axes of the posted outputs. Throws
 * `stream-on-cut-axis` and `stream-on-split-axis`.
 */
export function slicedTensors(
  { unit, outputs }: PostOnStream,
  made: readonly IterDomain[],
  chunks: Chunks | null,
  program: Pick<HostProgram, "tensors" | "units">,
): SlicedTensors {
  const { fusion } = at(program.units, unit);
  const sliced = new Map<TensorId, IterDomain>();
  const whole = new Set<TensorId>();
  fusion.outputs.forEach((id, i) => {
    sliced.set(id, counterpart(at(made, i), at(program.tensors, at(outputs, i)), at(fusion.tensors, id)));
  });
  for (const op of fusion.ops.toReversed()) {
    const axis = sliced.get(op.output);
    const axes =
      axis === undefined
        ? []
        : loopedOperandAxes(op, axis, chunks ?? { parts: axis.extent, within: [] }, fusion.tensors);
    op.inputs.forEach((input, operand) => {
      const own = axes[operand] ?? null;
      const known = sliced.get(input);
      if (own === null ? known !== undefined : whole.has(input) || (known !== undefined && known.id !== own.id)) {
        rejectUse(at(fusion.tensors, input), own ?? known);
      }
      if (own === null) whole.add(input);
      else sliced.set(input, own);
    });
  }
  return sliced;
}

/** The axis of `other` at the place of `axis` in `tensor`. */
function counterpart(axis: IterDomain, tensor: Tensor, other: Tensor): IterDomain {
  const position = withoutReductions(tensor.domain.logical).findIndex(({ id }) => id === axis.id);
  return at(withoutReductions(other.domain.logical), position);
}

function rejectUse(tensor: Tensor, axis: IterDomain | undefined): never {
  return fail("stream-on-cut-axis", `a fused unit needs T${tensor.id} as a whole and in chunks`, {
    place: { kind: "tensor", text: axis === undefined ? `T${tensor.id}` : axisText(tensor, axis) },
    found: "ops of one unit that read the tensor along different axes",
    expected: "ops that read the chunk of their own iteration",
    help: "remove Stream from the op that reads the whole tensor: it then runs before or after the loop, not overlapped",
  });
}
