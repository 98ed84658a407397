/**
 * The schedules among which `scheduleChoice: "auto"` chooses: combinations of lowering options and rewrites that are each the best
 * somewhere, for any program and any shape. A rewrite that leaves a program as it is drops out with all its combinations, a form that
 * lowering refuses does, too.
 */
import type { LoweringOptions } from "../passes/options.ts";
import type { CopyLane } from "../schedule/copy-lane.ts";
import type { ScheduleOptions } from "../schedule/schedule-options.ts";

export interface ScheduleCandidate {
  /** What a line about the choice calls it. */
  readonly name: string;
  readonly lowering: Partial<LoweringOptions>;
  readonly copyLane: CopyLane;
  readonly schedule: ScheduleOptions;
}

/** The serial form: all of a communication by the library, then all of the product, or the other way round. */
export const serial: ScheduleCandidate = {
  name: "serial",
  lowering: { communicatorBackend: "nccl", overlap: false },
  copyLane: "inline",
  schedule: {},
};

/** Loops whose iterations communicate by the library, as they are lowered. */
export const libraryLoops: readonly ScheduleCandidate[] = [
  {
    name: "collectives in chunks",
    lowering: { communicatorBackend: "nccl", pointToPoint: "broadcast" },
    copyLane: "inline",
    schedule: {},
  },
  {
    name: "sends and receives",
    lowering: { communicatorBackend: "nccl", pointToPoint: "rotated" },
    copyLane: "inline",
    schedule: {},
  },
];

/** Loops whose iterations copy between the ranks' memories: what the rewrites below begin with. */
export const copyLoops: readonly Pick<ScheduleCandidate, "name" | "lowering">[] = (["get", "put"] as const).map(
  (p2pProtocol) => ({
    name: p2pProtocol,
    lowering: { communicatorBackend: "cuda", pointToPoint: "rotated", p2pProtocol },
  }),
);

/** One way to set some of the schedule's options. */
export interface Choice {
  /** Empty for the usual way. */
  readonly name: string;
  readonly schedule: ScheduleOptions;
}

const usual: Choice = { name: "", schedule: {} };

/** In a group all chunks that follow: more than there ever are. */
const all = 1_000_000;

/**
 * Independent choices; a candidate takes one of each. Sizes of groups are in order of arrival, the last is that of all that follow. Copies
 * above 32 MiB are never faster by a kernel.
 */
export const choices: readonly (readonly Choice[])[] = [
  [
    usual,
    ...[[1, 2], [1, 3, 4], [2], [1, 1, 2, 4], [1, all], [all]].map((mergeProducts): Choice => ({
      name: `products ${groupText(mergeProducts)}`,
      schedule: { mergeProducts },
    })),
  ],
  [
    usual,
    { name: "chunks in 2", schedule: { splitChunks: 2 } },
    { name: "copies by kernel", schedule: { kernelCopies: 32 * 2 ** 20 } },
  ],
  [
    usual,
    ...[[1], [4]].map((earlySums): Choice => ({ name: `sums ${groupText(earlySums)}`, schedule: { earlySums } })),
  ],
  [
    { name: "", schedule: { inPlace: true, ownLast: true } },
    // One product of everything needs the own chunk beside those that have come.
    { name: "own chunk copied", schedule: {} },
  ],
  [
    { name: "", schedule: { computeStreams: 1, batchSignals: true } },
    { name: "2 compute streams", schedule: { computeStreams: 2, batchSignals: true } },
  ],
];

function groupText(sizes: readonly number[]): string {
  return sizes.map((size) => (size === all ? "all" : size)).join("-");
}
