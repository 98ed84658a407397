/**
 * The inputs that the user gave chunks which no op that reads them has: their Stream makes no loop. Lowering refuses
 * Stream on a whole axis of such an input (requireSlicedInputs).
 */
import { isScaled } from "../../ir/ops/kinds/contractions.ts";
import type { Diagnostic } from "../../diagnostics/diagnostic.ts";
import type { Tensor } from "../../ir/domain.ts";
import type { FusionData } from "../../ir/fusion-data.ts";
import { axisMap } from "../../ir/ops/axis-map.ts";
import { type Op, outputsOf } from "../../ir/ops/op.ts";
import { originated } from "../../ir/origin.ts";
import { logicalAxisOf } from "../../ir/parts.ts";
import { printScalar } from "../../ir/scalar/scalar.ts";
import { sameChunks, streamAxis, type StreamPart, streamPart } from "../../ir/stream.ts";
import { at } from "../../support/invariant.ts";
import { type FusionEdit, reparallelize } from "../edit/tensor-edit.ts";
import { axisText, opText } from "../op-text.ts";
import type { LoweringOptions } from "../options.ts";

/** `before` is the Fusion as the user wrote it, `placed` with the shardings that lowering derives. */
export function unfollowedInputs(placed: FusionData, before: FusionData): readonly Diagnostic[] {
  const { tensors } = placed;
  return before.inputs.flatMap((id): readonly Diagnostic[] => {
    const input = at(before.tensors, id);
    const own = streamPart(input);
    if (own === null || own.chunks === null) return [];
    const readers = placed.ops.filter(({ inputs }) => inputs.includes(id));
    if (readers.some((op) => follows(op, input, own, tensors))) return [];
    const diagnostic = unfollowed(input, own, readers[0], placed, before);
    return [originated(diagnostic, before.tensors, true)];
  });
}

function follows(op: Op, { id }: Tensor, { axis, chunks }: StreamPart, tensors: readonly Tensor[]): boolean {
  const made = streamPart(at(tensors, op.output));
  return (
    made !== null &&
    sameChunks(made.chunks, chunks) &&
    axisMap(op, tensors).some(
      ({ operand, producer, consumer, broadcast }) =>
        op.inputs[operand] === id && producer.id === axis.id && consumer.id === made.axis.id && !broadcast,
    )
  );
}

function unfollowed(
  input: Tensor,
  { part }: StreamPart,
  reader: Op | undefined,
  { tensors }: FusionData,
  before: FusionData,
): Diagnostic {
  const made = reader === undefined ? null : streamPart(at(tensors, reader.output));
  const isUsers = reader !== undefined && (before.tensors[reader.output]?.mesh ?? null) !== null;
  const found =
    reader === undefined
      ? "no op reads it"
      : made === null
        ? `${opText(reader)} without Stream`
        : `${opText(reader)} with ${printScalar(made.part.extent)} chunks: ${axisText(at(tensors, reader.output), made.part)}`;
  const help =
    made !== null
      ? `give both the same number of chunks of the same axis, or remove Stream from T${input.id}: the loop over the ` +
        "other chunks stays, and overlaps as before"
      : isUsers && reader !== undefined
        ? `parallelize that axis of T${reader.output} too, or remove Stream from T${input.id}: the op runs whole and ` +
          "overlaps with nothing"
        : `remove Stream from T${input.id}, or put it on an axis that the op keeps: without, the op runs whole and ` +
          "overlaps with nothing";
  return {
    code: "stream-on-input",
    severity: "warning",
    message: `no op follows the ${printScalar(part.extent)} chunks of fusion input T${input.id}`,
    place: { kind: "tensor", text: axisText(input, part) },
    found,
    expected: "an op that reads the input and whose result has the same chunks",
    help,
  };
}

// Takes Stream away where it has spread to an axis along which the op cannot run chunk by chunk: an axis that it cuts
// or makes, or that it reduces, unless chunks are accumulated. The user's own Stream stays, and lowering says what is
// wrong with it.

export function removeUnfollowedStreams(edit: FusionEdit, fusion: FusionData, options: LoweringOptions): void {
  for (const op of fusion.ops) {
    const output = at(edit.tensors, op.output);
    if (streamAxis(output) === null || streamAxis(at(fusion.tensors, op.output)) !== null) continue;
    if (canFollow(op, edit.tensors, options)) continue;
    for (const id of outputsOf(op)) {
      edit.tensors[id] = reparallelize(at(edit.tensors, id), ({ parallelType }) =>
        parallelType === "Stream" ? "Serial" : parallelType,
      );
    }
  }
}

function canFollow(op: Op, tensors: readonly Tensor[], { accumulate }: LoweringOptions): boolean {
  const output = at(tensors, op.output);
  const stream = streamAxis(output);
  const streamed = stream === null ? null : logicalAxisOf(output.domain, stream);
  if (streamed === null) return false;
  if (op.kind === "Full") return true;
  if (streamed.iterType === "reduction")
    return accumulate && (op.kind === "Matmul" || op.kind === "Linear") && !isScaled(op);
  return axisMap(op, tensors).some(({ consumer }) => consumer.id === streamed.id);
}
