/**
 * The schedules among which `scheduleChoice: "auto"` chooses: lowering options and rewrites that are each the best somewhere, for any program and any
 * shape. A rewrite that leaves a program as it is drops out, a form that lowering refuses does, too.
 */
import type { Program } from "../../commands/program.ts";
import type { LoweringOptions } from "../../passes/options.ts";
import type { ScheduleOptions } from "../../schedule/schedule.ts";
import { measuredMargin } from "../../simulate/machine-profile.ts";
import { peerTraffic } from "./peer-traffic.ts";

export interface ScheduleCandidate {
  /** What a line about the choice calls it. */
  readonly name: string;
  readonly lowering: Partial<LoweringOptions>;
  readonly schedule: ScheduleOptions;
}

/** The serial form: all of a communication by the library, then all of the product, or the other way round. */
export const serial: ScheduleCandidate = {
  name: "serial",
  lowering: { backend: "nccl", overlap: false },
  schedule: { copyStream: "inline" },
};

/** Loops whose iterations communicate by the library, as they are lowered. */
export const libraryLoops: readonly ScheduleCandidate[] = [
  {
    name: "collectives in chunks",
    lowering: { backend: "nccl", p2p: "broadcast" },
    schedule: { copyStream: "inline" },
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

/** Loops whose iterations copy between the ranks' memories, or run kernels there: what the rewrites below begin with. */
export const copyLoops: readonly Pick<ScheduleCandidate, "name" | "lowering">[] = (["get", "put"] as const).map(
  (protocol) => ({
    name: protocol,
    lowering: { backend: "cuda", p2p: "rotated", protocol },
  }),
);

/** What either of them is called where both are the same program, which has collectives alone. */
export const eitherLoop = "peers' memory";

/** One way to set some of the schedule's options. */
export interface Choice {
  /** Empty for the usual way. */
  readonly name: string;
  readonly schedule: ScheduleOptions;
}

/** Alternatives to each other, the usual one first. */
export type ChoiceRow = readonly [usual: Choice, ...others: Choice[]];

const usual: Choice = { name: "", schedule: {} };

/** In a group all that follow: more than there ever are. */
const all = 1_000_000;

/** Gemms that copies wait for leave no gaps; on two streams a GPU may begin with the second of them, which holds all copies up. */
const oneStream: Choice = { name: "", schedule: { computeStreams: 1 } };

/** Gemms that wait for copies fill each other's gaps, which is not in the model: of what takes the same, two streams are the safer. */
const twoStreams: ChoiceRow = [
  { name: "", schedule: { computeStreams: 2 } },
  { name: "1 compute stream", schedule: { computeStreams: 1 } },
];

const ownChunk: ChoiceRow = [
  { name: "", schedule: { inPlace: true, ownLast: true } },
  // The own product first, while peers are not yet ready.
  { name: "own chunk first", schedule: { inPlace: true } },
  { name: "own chunk copied", schedule: {} },
];

const room: ChoiceRow = [usual, { name: `margin ${measuredMargin}`, schedule: { smMargin: measuredMargin } }];
/** Gemms that fill all multiprocessors leave their kernels room by chance. */
const roomForKernels: ChoiceRow = [
  { name: "", schedule: { smMargin: measuredMargin } },
  { name: "no margin", schedule: {} },
];

/** What saves batches of memory operations, which the model has no time for: for the best alone, and where it costs no more there than `finishingSaves`. */
export const finishing = { batchSignals: true } as const satisfies ScheduleOptions;

/** Milliseconds: a batch between two copies takes 5 us and more, an event that the model does count less than one. */
export const finishingSaves = 0.001;

/**
 * Independent choices; a candidate takes one of each, the first is the usual one. What matters most at most shapes comes first; of one option the last choice
 * says. Sizes of groups are in order of arrival, the last is that of all that follow. Copies above 32 MiB are never faster by a kernel. Few of them are
 * for programs that communicate by kernels in peers' memory alone, which have no chunks that arrive one by one.
 */
export function choicesFor(program: Program): readonly ChoiceRow[] {
  const { kernels, copies, feedsGemms } = peerTraffic(program);
  if (kernels && !copies) return [[oneStream], ownChunk, roomForKernels];
  return [
    // On two the next product would take the room that one leaves.
    feedsGemms && !kernels ? twoStreams : [oneStream],
    [
      usual,
      ...sumGroupings(program).map((earlySums): Choice => ({
        name: `sums ${groupText(earlySums)}`,
        schedule: { earlySums },
      })),
    ],
    [usual, ...[2, 4].map((splitChunks): Choice => ({ name: `chunks in ${splitChunks}`, schedule: { splitChunks } }))],
    ownChunk,
    [
      usual,
      ...[[1, 2], [1, 3, 4], [2], [1, 1, 2, 4], [1, all], [all]].map((mergeGemms): Choice => ({
        name: `products ${groupText(mergeGemms)}`,
        schedule: { mergeGemms },
      })),
      // The own chunk is to lie beside those that have come.
      { name: "one product", schedule: { inPlace: false, ownLast: false, mergeGemms: [all] } },
    ],
    [usual, { name: "copies by kernel", schedule: { kernelCopies: 32 * 2 ** 20 } }],
    room,
  ];
}

/** Each partial result when it comes; halves; and all that come from others, so that only the own one, computed last, is left. */
function sumGroupings({ kernels }: Program): readonly (readonly number[])[] {
  const parts = kernels.map((kernel) =>
    kernel.kind === "reduction" && kernel.axes.length === 1 ? (kernel.inputs[0]?.shape[kernel.axes[0] ?? 0] ?? 1) : 1,
  );
  const most = Math.max(1, ...parts);
  const sizes = new Set([1, 2, Math.ceil(most / 2), most - 1].filter((size) => size < most && size >= 1));
  return [...sizes].map((size) => [size]);
}

function groupText(sizes: readonly number[]): string {
  return sizes.map((size) => (size === all ? "all" : size)).join("-");
}
