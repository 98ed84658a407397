/**
 * Signals as stream memory operations: signal writes 1 into the waiting rank's word, waitSignal waits for 1 in own memory and writes 0. A stream says what it waits for
 * before and when it is past it. Commands carry no value, so a batch is made once and replayed, in a graph too. Layout: CUstreamBatchMemOpParams of cuda.h.
 */
import { unreachable } from "../../../support/unreachable.ts";
import {
  CU_STREAM_BATCH_MEM_OP_SIZE,
  CU_STREAM_MEM_OP_WAIT_VALUE_32,
  CU_STREAM_MEM_OP_WRITE_VALUE_32,
  CU_STREAM_WAIT_VALUE_EQ,
  CU_STREAM_WRITE_VALUE_DEFAULT,
} from "../bindings/driver-api.ts";
import type { HostBlocks } from "../memory/host-blocks.ts";
import { passedWord } from "./progress.ts";

/** What stands in for commands; addresses are of words of 4 bytes. */
export type StreamOperation =
  | { readonly kind: "say"; readonly progress: number; readonly value: number }
  | { readonly kind: "signal"; readonly word: number }
  /** `says`: what the stream writes to `progress` before it waits. */
  | { readonly kind: "wait"; readonly word: number; readonly progress: number; readonly says: number };

/** What the GPU has. */
export type MemoryOperation =
  | { readonly kind: "write"; readonly address: number; readonly value: number }
  /** Holds the stream until the word has the value. */
  | { readonly kind: "wait"; readonly address: number; readonly value: number };

export function memoryOperations(operation: StreamOperation): readonly MemoryOperation[] {
  switch (operation.kind) {
    case "say":
      return [{ kind: "write", address: operation.progress, value: operation.value }];
    case "signal":
      return [{ kind: "write", address: operation.word, value: 1 }];
    case "wait": {
      const { word, progress, says } = operation;
      return [
        { kind: "write", address: progress, value: says },
        { kind: "wait", address: word, value: 1 },
        { kind: "write", address: word, value: 0 },
        { kind: "write", address: progress, value: passedWord(says) },
      ];
    }
    default:
      return unreachable(operation);
  }
}

/** The address of the batch, for cuStreamBatchMemOp. */
export function encodeBatch(operations: readonly MemoryOperation[], blocks: HostBlocks): number {
  const { address, view } = blocks.take(operations.length * CU_STREAM_BATCH_MEM_OP_SIZE);
  operations.forEach((operation, i) => writeOperation(view, i * CU_STREAM_BATCH_MEM_OP_SIZE, operation));
  return address;
}

/** The bytes of one operation: its type at 0, the address at 8, the value at 16, flags at 24. */
export function writeOperation(view: DataView, offset: number, operation: MemoryOperation): void {
  const waits = operation.kind === "wait";
  view.setUint32(offset, waits ? CU_STREAM_MEM_OP_WAIT_VALUE_32 : CU_STREAM_MEM_OP_WRITE_VALUE_32, true);
  view.setBigUint64(offset + 8, BigInt(operation.address), true);
  view.setUint32(offset + 16, operation.value, true);
  view.setUint32(offset + 24, waits ? CU_STREAM_WAIT_VALUE_EQ : CU_STREAM_WRITE_VALUE_DEFAULT, true);
}
