/**
 * Tensors that a Stream of the user's keeps whole: without it they would be cut over the devices, as an operand of the
 * op that makes them is, or of one that reads them. Chunks of an axis leave no place for that cut, so that each device
 * gets all of them.
 */
import type { Diagnostic } from "../../diagnostics/diagnostic.ts";
import { isDID, type IterDomainId, type Tensor, type TensorId } from "../../ir/domain.ts";
import { type FusionData, readersOf } from "../../ir/fusion-data.ts";
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
  const readers = readersOf(placed);
  const found = placed.ops.flatMap((op) =>
    outputsOf(op).flatMap((id) => keptWhole(op, at(placed.tensors, id), placed, before, readers.get(id) ?? [])),
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
  /** An operand of the op that is cut along the same axis. */
  readonly operand: Tensor;
}

interface Cut {
  readonly op: Op;
  readonly tensor: Tensor;
}

function keptWhole(
  op: Op,
  tensor: Tensor,
  { tensors }: FusionData,
  before: FusionData,
  readers: readonly Op[],
): readonly Kept[] {
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
  const operand =
    cutAlong(op, tensors, stream.axis.id) ??
    readers.reduce<Cut | null>((found, reader) => found ?? cutBeside(reader, tensors, tensor.id, stream.axis.id), null);
  return operand === null ? [] : [{ op: operand.op, tensor, stream, operand: operand.tensor }];
}

/** The operand of the op that is cut along an axis of its result. */
function cutAlong(op: Op, tensors: readonly Tensor[], result: IterDomainId): Cut | null {
  for (const { operand, producer, consumer } of axisMap(op, tensors)) {
    const tensor = at(tensors, at(op.inputs, operand));
    if (consumer.id === result && shardsOf(tensor).some(({ axis }) => axis.id === producer.id)) return { op, tensor };
  }
  return null;
}

/** The operand of a reader of a tensor that is cut along the same axis of its result. */
function cutBeside(reader: Op, tensors: readonly Tensor[], read: TensorId, own: IterDomainId): Cut | null {
  const pair = axisMap(reader, tensors).find(
    ({ operand, producer }) => reader.inputs[operand] === read && producer.id === own,
  );
  return pair === undefined ? null : cutAlong(reader, tensors, pair.consumer.id);
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
