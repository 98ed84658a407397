/**
 * Barriers inside a kernel: the signals and waits around a launch become the kernel's first and last lines. The kernel
 * then already occupies its SMs when its peers become ready. A kernel launched at that time might find them taken by a
 * GEMM.
 *
 *     signal a, wait b, launch, signal c, wait d
 *       ->  launch { block 0: raise a; every block: see b, work; last block to end: reset b, raise c, await d }
 *
 * Every block looks at the awaited words itself, because passing the news from block to block takes a microsecond.
 *
 * A word has the same meaning as in memory operations, so a peer may use either form.
 */

/** Numbers of signals and of waits. All signals come before the waits. */
export interface BarrierShape {
  readonly signals: number;
  readonly waits: number;
}

/** Before and after the kernel's work. */
export interface Barriers {
  readonly before: BarrierShape;
  readonly after: BarrierShape;
}

export const noBarriers: Barriers = { before: { signals: 0, waits: 0 }, after: { signals: 0, waits: 0 } };

/**
 * The parameters that follow the operands' pointers, 64 bits each. First the gate, which counts the blocks that have
 * ended and is 0 between runs, and the word that reports what the stream waits for. Then, before and after the work, the
 * words to raise and the words to wait for, each of the latter with the report of a long wait.
 */
export function barrierParameters(barriers: Barriers): readonly string[] {
  if (!(operationsOf(barriers.before) + operationsOf(barriers.after) > 0)) return [];
  const words = (["before", "after"] as const).flatMap((place) => {
    const { signals, waits } = barriers[place];
    return [
      ...numbered(signals).map((i) => `unsigned *${place}Raise${i}`),
      ...numbered(waits).flatMap((i) => [`unsigned *${place}Await${i}`, `unsigned long long ${place}Says${i}`]),
    ];
  });
  return ["unsigned *gate", "unsigned *progress", ...words];
}

/** Lines before the work of a kernel of `blocks` blocks of `threads` threads, in one dimension. */
export function barrierBefore({ before }: Barriers, blocks: number, threads: number): readonly string[] {
  const { signals, waits } = before;
  if (signals + waits === 0) return [];
  if (blocks === 1) return [...operationLines(before, "before", threads), "__syncthreads();"];
  const raising = signalLines(before, "before", threads);
  if (waits === 0) return ["if (blockIdx.x == 0) {", ...raising, "}"];
  return [
    "if (blockIdx.x == 0) {",
    ...raising,
    ...waitLines(before, "before", threads, "braid_see"),
    "} else {",
    ...numbered(waits).map(
      (i) => `if (threadIdx.x == ${threadOf(signals + i, threads)}) while (braid_look(beforeAwait${i}) != 1) {}`,
    ),
    "}",
    "__syncthreads();",
  ];
}

/** Lines after the work. */
export function barrierAfter({ before, after }: Barriers, blocks: number, threads: number): readonly string[] {
  const lines = operationLines(after, "after", threads);
  if (blocks === 1) return lines.length === 0 ? [] : ["__syncthreads();", ...lines];
  if (lines.length === 0 && before.waits === 0) return [];
  return [
    "__shared__ unsigned isLast;",
    "__syncthreads();",
    "if (threadIdx.x == 0) {",
    // All stores of the block come before its count, and all counts before the last block's signals.
    "__threadfence_system();",
    `isLast = atomicAdd(gate, 1u) == ${blocks - 1}u;`,
    "__threadfence();",
    "}",
    "__syncthreads();",
    "if (isLast) {",
    "if (threadIdx.x == 0) {",
    "*gate = 0;",
    ...numbered(before.waits).map((i) => `*(volatile unsigned *)beforeAwait${i} = 0;`),
    "}",
    // A peer that has seen a signal may raise the words again.
    ...(before.waits > 0 && after.signals > 0 ? ["__syncthreads();"] : []),
    ...lines,
    "}",
  ];
}

/** The warps of a block take the operations in turn, so that waits do not queue up. */
function operationLines(shape: BarrierShape, place: string, threads: number): readonly string[] {
  return [...signalLines(shape, place, threads), ...waitLines(shape, place, threads, "braid_await")];
}

function signalLines({ signals }: BarrierShape, place: string, threads: number): readonly string[] {
  return numbered(signals).map((i) => `if (threadIdx.x == ${threadOf(i, threads)}) braid_raise(${place}Raise${i});`);
}

function waitLines(
  { signals, waits }: BarrierShape,
  place: string,
  threads: number,
  call: "braid_see" | "braid_await",
): readonly string[] {
  return numbered(waits).map(
    (i) =>
      `if (threadIdx.x == ${threadOf(signals + i, threads)}) ${call}(${place}Await${i}, progress, (unsigned)${place}Says${i});`,
  );
}

function threadOf(operation: number, threads: number): number {
  return (32 * operation) % threads;
}

function operationsOf({ signals, waits }: BarrierShape): number {
  return signals + waits;
}

function numbered(count: number): readonly number[] {
  return Array.from({ length: count }, (_, i) => i);
}
