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
import type { Judge } from "./annotation-conflicts.ts";
import { axisText, opText } from "../op-text.ts";

/**
 * `before` is the Fusion as the user wrote it, `placed` with all shardings. `bytesOf`: all that a Fusion moves. None that
 * `judge` finds better with the Stream.
 */
export function gatheredStreams(
  placed: FusionData,
  before: FusionData,
  now: number | null,
  bytesOf: (changed: FusionData) => number | null,
  judge: Judge,
): readonly Diagnostic[] {
  if (now === null) return [];
  const found = placed.ops.flatMap((op) =>
    outputsOf(op).flatMap((id) => keptWhole(op, at(placed.tensors, id), placed, before)),
  );
  return found.slice(0, mostTried).flatMap((kept): readonly Diagnostic[] => {
    const own = at(before.tensors, kept.tensor.id);
    const without = reparallelize(own, ({ parallelType }) => (parallelType === "Stream" ? "Serial" : parallelType));
    const changed = { ...before, tensors: before.tensors.with(own.id, without) };
    const bytes = bytesOf(changed);
    const cost = bytes === null || bytes >= now ? null : judge.better(changed);
    if (bytes === null || cost === null || judge.now === null) return [];
    const found = warning(kept, now - bytes, judge.text(cost, judge.now));
    return [originated(found, before.tensors, true)];
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

function warning({ op, tensor, stream, operand }: Kept, more: number, gain: string): Diagnostic {
  return {
    code: "stream-keeps-whole",
    severity: "warning",
    message: `Stream keeps T${tensor.id} whole, which would be cut as T${operand.id} is: ${more.toLocaleString("en-US")} bytes more move`,
    place: { kind: "tensor", text: axisText(tensor, stream.part) },
    found: `${opText(op)}, of which T${operand.id} is cut over the devices along this axis`,
    expected: "Stream on an axis along which no operand is cut",
    help: `leave out the Stream of T${tensor.id} (${gain}), or put it on another axis`,
  };
}
