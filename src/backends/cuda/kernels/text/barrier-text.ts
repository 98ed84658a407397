/**
 * Barriers inside a kernel: the signals and waits around a launch become the kernel's first and last lines. The kernel
 * then already occupies its SMs when its peers become ready. A kernel launched at that time might find them taken by a
 * GEMM.
 *
 *     signal a, wait b, launch, signal c, wait d
 *       ->  launch { block 0: raise a, await b, open the gate; ...; last block: raise c, await d }
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

function hasBarriers({ before, after }: Barriers): boolean {
  return operationsOf(before) + operationsOf(after) > 0;
}

/**
 * The parameters that follow the operands' pointers, 64 bits each. First the gate's two words, which are 0 between
 * runs, and the word that reports what the stream waits for. Then, before and after the work, the words to raise and
 * the words to wait for, each of the latter with the report of a long wait.
 */
export function barrierParameters(barriers: Barriers): readonly string[] {
  if (!hasBarriers(barriers)) return [];
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
  if (operationsOf(before) === 0) return [];
  const lines = [...operationLines(before, "before", threads), "__syncthreads();"];
  if (blocks === 1) return lines;
  return [
    "if (blockIdx.x == 0) {",
    ...lines,
    "if (threadIdx.x == 0) braid_raise(gate);",
    "} else {",
    "if (threadIdx.x == 0) while (braid_look(gate) != 1) {}",
    "__syncthreads();",
    "}",
  ];
}

/** Lines after the work. */
export function barrierAfter(barriers: Barriers, blocks: number, threads: number): readonly string[] {
  if (!hasBarriers(barriers)) return [];
  const { before, after } = barriers;
  const lines = operationLines(after, "after", threads);
  if (blocks === 1) return operationsOf(after) === 0 ? [] : ["__syncthreads();", ...lines];
  const hasGate = operationsOf(before) > 0;
  return [
    "__shared__ unsigned isLast;",
    "__syncthreads();",
    "if (threadIdx.x == 0) {",
    // All stores of the block come before its count, and all counts before the last block's signals.
    "__threadfence_system();",
    `isLast = atomicAdd(gate + 1, 1u) == ${blocks - 1}u;`,
    "__threadfence_system();",
    "}",
    "__syncthreads();",
    "if (isLast) {",
    "if (threadIdx.x == 0) {",
    ...(hasGate ? ["gate[0] = 0;"] : []),
    "gate[1] = 0;",
    "}",
    ...lines,
    "}",
  ];
}

/** The warps of a block take the operations in turn, so that waits do not queue up. */
function operationLines({ signals, waits }: BarrierShape, place: string, threads: number): readonly string[] {
  const thread = (i: number): number => (32 * i) % threads;
  return [
    ...numbered(signals).map((i) => `if (threadIdx.x == ${thread(i)}) braid_raise(${place}Raise${i});`),
    ...numbered(waits).map(
      (i) =>
        `if (threadIdx.x == ${thread(signals + i)}) braid_await(${place}Await${i}, progress, (unsigned)${place}Says${i});`,
    ),
  ];
}

function operationsOf({ signals, waits }: BarrierShape): number {
  return signals + waits;
}

function numbered(count: number): readonly number[] {
  return Array.from({ length: count }, (_, i) => i);
}
