/**
 * Signals as stream memory operations: signal writes 1 into the waiting rank's word, waitSignal waits for 1 in own memory and writes 0. A stream says what it waits for
 * before and when it is past it. Commands carry no value, so a batch is made once and replayed, in a graph too. Layout: CUstreamBatchMemOpParams of cuda.h.
 *
 *     waitSignal a, waitSignal b     ->     says a; wait for a, wait for b; a = 0, b = 0; past b
 *
 * Waits that follow each other are one run, and a stream speaks once before it and once behind it: a word in the host's memory takes longer than all else, 1.5 us on an
 * H200. That all words stay 1 until the last has come tells which have not, where a run does not end.
 */
import { at } from "../../../../support/invariant.ts";
import { unreachable } from "../../../../support/unreachable.ts";
import {
  CU_STREAM_BATCH_MEM_OP_SIZE,
  CU_STREAM_MEM_OP_WAIT_VALUE_32,
  CU_STREAM_MEM_OP_WRITE_VALUE_32,
  CU_STREAM_WAIT_VALUE_EQ,
  CU_STREAM_WRITE_VALUE_DEFAULT,
} from "../../bindings/driver-api.ts";
import type { HostBlocks } from "../../memory/host-blocks.ts";
import { passedWord } from "../stuck/progress.ts";

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

export type Wait = Extract<StreamOperation, { readonly kind: "wait" }>;

/**
 * What one stream does, in its order. A run of waits takes their words back when all have come: a peer raises a word again only after it has heard that the wait is over, and nothing
 * that a run holds could tell it.
 */
export function memoryOperations(operations: readonly StreamOperation[]): readonly MemoryOperation[] {
  return piecesOf(operations).flatMap((piece): readonly MemoryOperation[] => {
    switch (piece.kind) {
      case "say":
        return [{ kind: "write", address: piece.progress, value: piece.value }];
      case "signal":
        return [{ kind: "write", address: piece.word, value: 1 }];
      case "waits": {
        const { waits } = piece;
        const [first, last] = [at(waits, 0), at(waits, waits.length - 1)];
        return [
          { kind: "write", address: first.progress, value: first.says },
          ...waits.map(({ word }): MemoryOperation => ({ kind: "wait", address: word, value: 1 })),
          ...waits.map(({ word }): MemoryOperation => ({ kind: "write", address: word, value: 0 })),
          { kind: "write", address: last.progress, value: passedWord(last.says) },
        ];
      }
      default:
        return unreachable(piece);
    }
  });
}

/** The runs of waits among what one stream does. */
export function waitRuns(operations: readonly StreamOperation[]): readonly (readonly Wait[])[] {
  return piecesOf(operations).flatMap((piece) => (piece.kind === "waits" ? [piece.waits] : []));
}

type Piece = Exclude<StreamOperation, Wait> | { readonly kind: "waits"; readonly waits: readonly Wait[] };

/** A second wait for a word begins a run of its own: the first has to take the word back. */
function piecesOf(operations: readonly StreamOperation[]): readonly Piece[] {
  const pieces: Piece[] = [];
  let run: Wait[] | null = null;
  for (const operation of operations) {
    if (operation.kind !== "wait") {
      run = null;
      pieces.push(operation);
    } else if (run === null || run.some(({ word }) => word === operation.word)) {
      run = [operation];
      pieces.push({ kind: "waits", waits: run });
    } else run.push(operation);
  }
  return pieces;
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
