/**
 * The candidates of `schedule: "auto"`: lowering options and rewrites, each of which is the fastest for some
 * program and shape. Forms that lowering rejects and rewrites that change nothing are left out.
 */
import type { Program } from "../../commands/program.ts";
import type { LoweringOptions } from "../../passes/options.ts";
import type { ScheduleOptions } from "../../schedule/schedule.ts";
import { measuredMargin } from "../../simulate/machine-profile.ts";
import { type PeerTraffic, peerTraffic } from "./peer-traffic.ts";

export interface ScheduleCandidate {
  /** Its name in the reason for a choice. */
  readonly name: string;
  readonly lowering: Partial<LoweringOptions>;
  readonly schedule: ScheduleOptions;
}

/** Worker streams of all candidates: about one per chunk, so that no chunk waits for the stream of another. */
export const candidateStreams = 64;

/** The serial form: a whole collective of the library and a whole GEMM, one after the other. */
export const serial: ScheduleCandidate = {
  name: "serial",
  lowering: { backend: "nccl", overlap: false, deviceLoops: false },
  schedule: { copyStream: "inline" },
};

/** Loops whose iterations communicate by calls of the library. */
export const libraryLoops: readonly ScheduleCandidate[] = [
  {
    name: "collectives in chunks",
    lowering: { backend: "nccl", p2p: "broadcast" },
    schedule: { copyStream: "inline" },
  },
  {
    name: "collectives in chunks, early gathers",
    lowering: { backend: "nccl", p2p: "broadcast" },
    schedule: { copyStream: "inline", earlyGathers: true },
  },
  {
    name: "sends and receives",
    lowering: { backend: "nccl", p2p: "rotated" },
    schedule: { copyStream: "inline" },
  },
  {
    name: "sends and receives, in the order of devices",
    lowering: { backend: "nccl", p2p: "linear" },
    schedule: { copyStream: "inline" },
  },
];

/**
 * Loops whose iterations access peers' memory by copies or kernels, and no loop at all, which is the fastest where a
 * chunk takes about as long as the whole. The rewrites below start from these.
 */
export const copyLoops: readonly Pick<ScheduleCandidate, "name" | "lowering">[] = [
  { name: "get", lowering: { backend: "cuda", p2p: "rotated", protocol: "get" } },
  { name: "put", lowering: { backend: "cuda", p2p: "rotated", protocol: "put" } },
  {
    name: "loops over devices",
    lowering: { backend: "cuda", p2p: "rotated", protocol: "put", deviceLoops: true },
  },
  { name: "no loop", lowering: { backend: "cuda", overlap: false } },
  {
    name: "loops over devices in place of Stream",
    lowering: { backend: "cuda", overlap: false, p2p: "rotated", protocol: "put", deviceLoops: true },
  },
];

/** The name of `get` and `put` if both make the same program, because it has only collectives. */
export const eitherLoop = "peers' memory";

/** One way to set some of the schedule's options. */
export interface Choice {
  /** Empty for the usual choice. */
  readonly name: string;
  readonly schedule: ScheduleOptions;
}

/** Alternatives, the usual one first. */
export type ChoiceRow = readonly [usual: Choice, ...others: Choice[]];

const usual: Choice = { name: "", schedule: {} };

/**
 * For GEMMs that copies wait for: they leave no gaps. With two streams a GPU may start with the second, which delays
 * every copy.
 */
const oneStream: Choice = { name: "", schedule: { computeStreams: 1 } };

/**
 * For GEMMs that wait for copies: on two streams they fill each other's gaps. The model lacks this, so two streams win
 * at equal times.
 */
const twoStreams: ChoiceRow = [
  { name: "", schedule: { computeStreams: 2 } },
  { name: "1 compute stream", schedule: { computeStreams: 1 } },
];

/**
 * For loops that compute before and after a communication. On one stream the GEMMs of a chunk that waits would hold up
 * those of all later chunks.
 */
const streamPerChunk: ChoiceRow = [usual, { name: "1 compute stream", schedule: { computeStreams: 1 } }];

/** In every loop: local copies are used in place, and the own chunk is computed last. */
const ownChunk: ChoiceRow = [{ name: "", schedule: { inPlace: true, ownLast: true } }];

const smMargin: ChoiceRow = [usual, { name: `margin ${measuredMargin}`, schedule: { smMargin: measuredMargin } }];
/**
 * For programs whose only communication is kernels in peers' memory: without a margin, those find free SMs only by
 * chance.
 */
const smMarginForKernels: ChoiceRow = [
  { name: "", schedule: { smMargin: measuredMargin } },
  { name: "no margin", schedule: {} },
];

/**
 * Rows of independent choices, of which a candidate takes one each. Rows that matter most for most shapes come first.
 * If two rows set one option, the later row wins. Programs
 * that communicate only by kernels in peers' memory, and those without loops, have few choices, because no chunks arrive
 * one by one.
 */
export function choicesFor(
  program: Program,
  { overlap, deviceLoops }: Pick<Partial<LoweringOptions>, "overlap" | "deviceLoops">,
): readonly ChoiceRow[] {
  const { kernels, copies, feedsGemms, hasStages } = peerTraffic(program);
  if (overlap === false && deviceLoops !== true) return [[oneStream]];
  if (kernels && !copies) return hasStages ? [streamPerChunk, smMargin] : [[oneStream], ownChunk, smMarginForKernels];
  return [
    computeStreamsFor({ kernels, feedsGemms, hasStages }),
    // Copies of later chunks would queue after the kernels of earlier ones on the copy stream.
    [usual, ...(kernels ? [{ name: "early gathers", schedule: { earlyGathers: true } }] : [])],
    pairSums(program),
    [usual, ...[2, 4].map((splitChunks): Choice => ({ name: `chunks in ${splitChunks}`, schedule: { splitChunks } }))],
    ownChunk,
    smMargin,
    [{ name: "", schedule: { dropSignals: true } }],
  ];
}

function computeStreamsFor({ kernels, feedsGemms, hasStages }: Omit<PeerTraffic, "copies">): ChoiceRow {
  if (hasStages) return streamPerChunk;
  // With two streams the next GEMM would take the SMs that a GEMM leaves free.
  return feedsGemms && !kernels ? twoStreams : [oneStream];
}

/**
 * Sums by kernels, and in the GEMMs that make one of two parts in place. The GEMM waits for the other part: with a
 * single sum for its arrival, with several it has arrived during the GEMM before.
 */
function pairSums({ kernels, ranks }: Program): ChoiceRow {
  const pairs = new Set(
    kernels.flatMap((kernel, id) =>
      kernel.kind === "reduction" && kernel.inputs[0]?.shape[kernel.axes[0] ?? 0] === 2 ? [id] : [],
    ),
  );
  if (pairs.size === 0) return [usual];
  const most = Math.max(
    ...ranks.map(({ commands }) => commands.filter((each) => each.kind === "launch" && pairs.has(each.kernel)).length),
  );
  // For all-reduces two streams were 1 to 5 % faster, for reduce-scatters up to 2 % slower.
  const schedule = { gemmSums: true, computeStreams: 2 } as const;
  return most > 1
    ? [
        { name: "", schedule },
        { name: "sums apart", schedule: {} },
      ]
    : [usual, { name: "sums in GEMMs", schedule }];
}
