/** Finds the Stream axis of a statement's loop, and rejects Stream where no loop can run. */
import { fail, type Place } from "../../diagnostics/diagnostic.ts";
import { logicalAxisOf } from "../../ir/parts.ts";
import { typeOfWhole } from "../../ir/shards.ts";
import { axisMap } from "../../ir/ops/axis-map.ts";
import type { IterDomain, Tensor } from "../../ir/domain.ts";
import { type Op, type OpKind, outputsOf } from "../../ir/ops/op.ts";
import { opRows } from "../../ir/ops/rows.ts";
import type { HostProgram, Statement } from "../../host/nodes.ts";
import { isOp } from "../../host/traverse.ts";
import { at, invariant } from "../../support/invariant.ts";
import { keysOf } from "../../support/keys-of.ts";
import type { LoopMember } from "./loop-member.ts";
import { axisText, opPlace, tensorList } from "../op-text.ts";
import type { LoweringOptions } from "../options.ts";
import { streamPart, type StreamPart } from "../../ir/stream.ts";

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
    : ({ kind: "statement", text: `PostOnStream of a fused unit with outputs ${tensorList(outputs)}` } as const);
  const [first, second] = streamAxes(tensor);
  invariant(first !== undefined, "the tensor has a Stream axis", tensor);
  const found = axisText(tensor, first);
  const bare = outputs.find((output) => streamAxes(at(tensors, output)).length === 0);
  if (isOp(statement) ? !runsOnSlices(statement.kind) : nvfuserLimits || bare !== undefined) {
    fail({
      code: "stream-on-host-unit",
      message: "Stream is on the output of an op that cannot run as a standalone host op",
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
    fail({
      code: "stream-repeated",
      message: `Stream is on two axes of T${tensor.id}`,
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
  const isContracted = isSum || statement.kind === "Matmul" || statement.kind === "Linear";
  const isLooped = isContracted
    ? accumulate
    : looped.chunks === null && reducesSharded(statement, looped.axis, tensors);
  if (!isLooped) rejectReducedStream(statement, tensor, first, isContracted);
  return looped;
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
    return fail({
      code: "stream-on-split-axis",
      message: "Stream is on an axis made by split or merge",
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
      ? "parallelize one of the axes instead of merging them: as many chunks overlap, or fewer larger ones"
      : "call outerSplit() with the number of chunks first: chunks of consecutive indices overlap as well",
  });
}

/** `isContraction`: the option `accumulate` would let the op run chunk by chunk. */
export function rejectReducedStream(op: Op, tensor: Tensor, axis: IterDomain, isContraction: boolean): never {
  return fail({
    code: "stream-on-reduction-axis",
    message: "Stream is on a reduced or contracted axis",
    place: opPlace(op),
    found: axisText(tensor, axis),
    expected: "Stream on an axis that the output keeps, or on a reduced axis that the operand shards",
    help: isContraction
      ? "set accumulate to true (--schedule accumulate) to add the chunks' results in order, or put Stream on another axis: " +
        "added in order, one chunk waits for the other and only communication overlaps"
      : "parallelize another axis of the output with Stream: as many chunks overlap",
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
    fail({
      code: "stream-on-input",
      message: `no op that reads fusion input T${input} loops over its Stream axis`,
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
