/** Why a run takes longer than its kernels alone: the causes of exposed time, each with the words that users read. */

import { timeText } from "../support/wording.ts";

export type Cause =
  | "firstChunk"
  | "lastChunk"
  | "linkBound"
  | "queued"
  | "dependent"
  | "notInLoop"
  | "chunking"
  | "sums"
  | "interference"
  | "sms"
  | "latePeer"
  | "order"
  | "reuse"
  | "localCopy"
  | "host"
  | "latency";

interface CauseWords {
  /** For a column of a table. */
  readonly label: string;
  /** One sentence: what happened. */
  readonly sentence: string;
  /** The same where the cause is a gain. */
  readonly gain?: string;
}

/** Each sentence says what the streams, the links and the costs of commands show, and no more. */
export const causes: { readonly [C in Cause]: CauseWords } = {
  firstChunk: {
    label: "first chunk",
    sentence: "The first chunk moves before kernels of another chunk have run, so none hides it.",
  },
  lastChunk: {
    label: "last chunk",
    sentence: "The last chunk moves when no kernel of another chunk is left to hide it.",
  },
  linkBound: {
    label: "link-bound",
    sentence: "The rank waits for data while the link is busy, which it is for longer than the loop's kernels run.",
  },
  queued: {
    label: "behind another transfer",
    sentence: "Data is there, but its transfer waits behind another on the same communicator, stream or link.",
  },
  dependent: {
    label: "dependent kernels",
    sentence: "Data moves between two kernels that depend on it, and no other kernel is ready.",
  },
  notInLoop: {
    label: "not in a loop",
    sentence: "Data moves outside of loops with kernels, and no other kernel runs beside it.",
  },
  chunking: {
    label: "chunking",
    sentence: "Kernels of chunks take longer together than those of the whole.",
    gain: "Kernels of chunks take less time together than those of the whole.",
  },
  sums: {
    label: "sums",
    sentence: "Kernels run that the serial program does not have, such as sums of partial results.",
  },
  interference: {
    label: "interference",
    sentence: "Kernels beside a transfer run more slowly than alone.",
    gain: "Kernels took less time than the profile has for them alone.",
  },
  sms: {
    label: "no free SMs",
    sentence: "A transfer's kernel waits for SMs, or cores, that another kernel occupies on a rank that takes part.",
  },
  latePeer: {
    label: "late peer",
    sentence: "The rank waits for work of another rank.",
  },
  order: {
    label: "stream order",
    sentence:
      "A command has its data, but waits for an earlier one on its stream, or for an event that it does not need.",
  },
  reuse: {
    label: "buffer reuse",
    sentence: "A command has its data, but the buffer that it writes is still in use.",
  },
  localCopy: {
    label: "copies on the device",
    sentence: "A copy within the device runs between kernels.",
  },
  host: {
    label: "host",
    sentence: "The device waits for the host, which issues a run's commands or launches its graph.",
  },
  latency: {
    label: "latency",
    sentence: "Launches, events and signals take time themselves.",
    gain: "Launches pass beside other kernels.",
  },
};

/** Of a run by threads of a CPU: a stream's next command may be ready long before a core is free. */
const onCores = "Commands wait for a free core, and starting them takes time itself.";

/** What the times of a cause mean: a cost, or a gain where they are negative. `also`: second causes of parts of it. */
export function causeSentence(
  cause: Cause,
  milliseconds: number,
  also: ReadonlyMap<Cause, number>,
  isOnCores = false,
): string {
  const { sentence: usual, gain } = causes[cause];
  const sentence = isOnCores && cause === "latency" ? onCores : usual;
  const others = [...also].map(
    ([other, time]) => ` For ${timeText(time)} of it, ${causes[other].label} holds it as long: both have to change.`,
  );
  return milliseconds < 0 ? (gain ?? sentence) : sentence + others.join("");
}
