/**
 * Decides which signals and waits a kernel absorbs (kernels/text/barrier-text.ts): as many before and after it as are
 * in order, signals first. The others stay a batch of memory operations.
 */
import type { Barriers, BarrierShape } from "../kernels/text/barrier-text.ts";
import type { Address } from "./address.ts";
import type { StreamOperation } from "./memory-operations.ts";

export interface BarrierOperations {
  readonly before: readonly StreamOperation[];
  readonly after: readonly StreamOperation[];
}

export const noOperations: BarrierOperations = { before: [], after: [] };

/** Fits the parameters of every kernel. A wait needs two. */
const mostInside = 128;

/** The last operations that the kernel can absorb before its work. */
export function takenBefore(operations: readonly StreamOperation[]): readonly StreamOperation[] {
  let from = operations.length;
  while (from > 0 && isInOrder(operations.slice(from - 1))) from--;
  return operations.slice(from);
}

/** Whether a kernel can absorb all of them: signals, then waits. */
export function isInOrder(operations: readonly StreamOperation[]): boolean {
  const firstWait = operations.findIndex(({ kind }) => kind === "wait");
  return (
    operations.length <= mostInside &&
    operations.every(({ kind }, i) => (firstWait < 0 || i < firstWait ? kind === "signal" : kind === "wait"))
  );
}

export function barrierShapes({ before, after }: BarrierOperations): Barriers {
  return { before: shapeOf(before), after: shapeOf(after) };
}

/** The values of `barrierParameters`. */
export function barrierValues({ before, after }: BarrierOperations, gate: Address): readonly (Address | number)[] {
  const all = [...before, ...after];
  if (all.length === 0) return [];
  const wait = all.find((operation) => operation.kind === "wait");
  // A kernel without waits has nothing to report.
  return [gate, wait?.progress ?? gate, ...all.flatMap(wordsOf)];
}

function wordsOf(operation: StreamOperation): readonly (Address | number)[] {
  if (operation.kind === "say") return [];
  return operation.kind === "signal" ? [operation.word] : [operation.word, operation.says];
}

function shapeOf(operations: readonly StreamOperation[]): BarrierShape {
  const waits = operations.filter(({ kind }) => kind === "wait").length;
  return { signals: operations.length - waits, waits };
}
