/**
 * Tensors that a Stream of the user's keeps whole: without it they would be cut over the devices, as the operands of the
 * op that makes them are. Chunks of an axis leave no place for that cut, so that each device gathers all of them.
 */
import type { Diagnostic } from "../../diagnostics/diagnostic.ts";
import { isDID, type Tensor } from "../../ir/domain.ts";
import type { FusionData } from "../../ir/fusion-data.ts";
import { axisMap } from "../../ir/ops/axis-map.ts";
import { type Op, outputsOf } from "../../ir/ops/op.ts";
import { originated } from "../../ir/origin.ts";
import { shardsOf } from "../../ir/shards.ts";
import { type StreamPart, streamPart } from "../../ir/stream.ts";
import { at } from "../../support/invariant.ts";
import { reparallelize } from "../edit/tensor-edit.ts";
import { axisText, opText } from "../op-text.ts";

/** `before` is the Fusion as the user wrote it, `placed` with all shardings. `bytesOf`: all that a Fusion moves. */
export function gatheredStreams(
  placed: FusionData,
  before: FusionData,
  now: number | null,
  bytesOf: (changed: FusionData) => number | null,
): readonly Diagnostic[] {
  if (now === null) return [];
  const found = placed.ops.flatMap((op) =>
    outputsOf(op).flatMap((id) => keptWhole(op, at(placed.tensors, id), placed, before)),
  );
  return found.slice(0, mostTried).flatMap((kept): readonly Diagnostic[] => {
    const own = at(before.tensors, kept.tensor.id);
    const without = reparallelize(own, ({ parallelType }) => (parallelType === "Stream" ? "Serial" : parallelType));
    const bytes = bytesOf({ ...before, tensors: before.tensors.with(own.id, without) });
    return bytes === null || bytes >= now ? [] : [originated(warning(kept, now, bytes), before.tensors, true)];
  });
}

/** Each costs a lowering of the program. */
const mostTried = 3;

interface Kept {
  readonly op: Op;
  readonly tensor: Tensor;
  readonly stream: StreamPart;
  /** The operand that is cut along the same axis. */
  readonly operand: Tensor;
}

function keptWhole(op: Op, tensor: Tensor, { tensors }: FusionData, before: FusionData): readonly Kept[] {
  const own = before.tensors[tensor.id];
  const stream = own === undefined || own.mesh !== null ? null : streamPart(own);
  if (
    stream === null ||
    stream.axis.iterType !== "iteration" ||
    own === undefined ||
    own.domain.loop.some(({ parallelType }) => isDID(parallelType))
  )
    return [];
  if (shardsOf(tensor).some(({ axis }) => axis.id === stream.axis.id)) return [];
  const pair = axisMap(op, tensors).find(
    ({ operand, producer, consumer }) =>
      consumer.id === stream.axis.id &&
      shardsOf(at(tensors, at(op.inputs, operand))).some(({ axis }) => axis.id === producer.id),
  );
  return pair === undefined ? [] : [{ op, tensor, stream, operand: at(tensors, at(op.inputs, pair.operand)) }];
}

function warning({ op, tensor, stream, operand }: Kept, now: number, bytes: number): Diagnostic {
  const text = (count: number): string => `${count.toLocaleString("en-US")} bytes`;
  return {
    code: "stream-keeps-whole",
    severity: "warning",
    message: `Stream keeps T${tensor.id} whole, which would be cut as T${operand.id} is: ${text(now - bytes)} more move`,
    place: { kind: "tensor", text: axisText(tensor, stream.part) },
    found: `${opText(op)}, of which T${operand.id} is cut over the devices along this axis`,
    expected: "Stream on an axis along which no operand is cut",
    help: `leave out the Stream of T${tensor.id} (${text(bytes)} move in all, now ${text(now)}), or put it on another axis`,
  };
}
