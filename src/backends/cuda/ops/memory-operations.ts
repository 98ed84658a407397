/**
 * Signals as stream memory operations: signal writes 1 into the waiting rank's word; waitSignal waits for 1 in its own
 * memory and writes 0. A stream also reports what it waits for, and that it is past it. Commands carry no value, so a
 * batch is made once and replayed, in a graph too.
 *
 *     waitSignal a, waitSignal b     ->     report a; wait for a, wait for b; a = 0, b = 0; report past b
 *
 * Consecutive waits form one run with one report before and one after: writing a word of host memory takes 1.5 us on an
 * H200, longer than the rest. All words stay 1 until the last signal has arrived, so in a run that hangs the words show
 * which signals are missing.
 */
import { at, unreachable } from "../../../support/invariant.ts";
import { isSameWord, type ProgressWord, type Word } from "./address.ts";

/** The operations of commands. */
export type StreamOperation =
  | { readonly kind: "say"; readonly progress: ProgressWord; readonly value: number }
  | { readonly kind: "signal"; readonly word: Word }
  /** `says`: the word that the stream writes to `progress` before it waits. */
  | { readonly kind: "wait"; readonly word: Word; readonly progress: ProgressWord; readonly says: number };

/** The operations that the GPU executes. `A` names a 4-byte word: an address, or its number. */
export type MemoryOperation<A = Word | ProgressWord> =
  | { readonly kind: "write"; readonly address: A; readonly value: number }
  /** Holds the stream until the word has the value. */
  | { readonly kind: "wait"; readonly address: A; readonly value: number };

export type WaitOperation = Extract<StreamOperation, { readonly kind: "wait" }>;

/**
 * The operations of one stream, in order. A run of waits resets its words after all signals have arrived. A peer raises
 * a word again only after it has learned that the wait is over, which it cannot learn inside the run.
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

/** The runs of waits among a stream's operations. */
export function waitRuns(operations: readonly StreamOperation[]): readonly (readonly WaitOperation[])[] {
  return piecesOf(operations).flatMap((piece) => (piece.kind === "waits" ? [piece.waits] : []));
}

type Piece =
  Exclude<StreamOperation, WaitOperation> | { readonly kind: "waits"; readonly waits: readonly WaitOperation[] };

/** A second wait for a word starts a new run, because the first wait must reset the word. */
function piecesOf(operations: readonly StreamOperation[]): readonly Piece[] {
  const pieces: Piece[] = [];
  let run: WaitOperation[] | null = null;
  for (const operation of operations) {
    if (operation.kind !== "wait") {
      run = null;
      pieces.push(operation);
    } else if (run === null || run.some(({ word }) => isSameWord(word, operation.word))) {
      run = [operation];
      pieces.push({ kind: "waits", waits: run });
    } else run.push(operation);
  }
  return pieces;
}

// The numbers by which streams report commands in their words of host memory; 0 for none.

const passedBit = 0x8000_0000;

/** The word that a stream writes when it reaches a command. */
export function progressWord(command: number): number {
  return command + 1;
}

/** The command of a word made by `progressWord`. */
export function commandOf(word: number): number {
  return word - 1;
}

/** The word that a stream writes after that command. */
export function passedWord(word: number): number {
  return word + passedBit;
}

/** The command of a word that is not 0, and whether the stream is past it. */
export function reportedBy(word: number): { readonly command: number; readonly passed: boolean } {
  return { command: commandOf(word % passedBit), passed: word >= passedBit };
}
