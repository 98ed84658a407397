/** Why a run takes longer than its kernels alone: the causes of exposed time, each with the words that users read. */

export type Cause =
  | "firstChunk"
  | "lastChunk"
  | "linkBound"
  | "notInLoop"
  | "chunking"
  | "sums"
  | "interference"
  | "sms"
  | "latePeer"
  | "reuse"
  | "localCopy"
  | "host"
  | "latency";

interface CauseWords {
  /** For a column of a table. */
  readonly label: string;
  /** One sentence: what happened. */
  readonly sentence: string;
  /** What usually shortens it; null if nothing in a program or its options does. */
  readonly remedy: string | null;
}

export const causes: { readonly [C in Cause]: CauseWords } = {
  firstChunk: {
    label: "first chunk",
    sentence: "The first chunk moves before any of its kernels can run, so nothing hides it.",
    remedy: "more chunks, or another loop whose kernels run before it",
  },
  lastChunk: {
    label: "last chunk",
    sentence: "The result of the last chunk moves after the last kernel, so nothing hides it.",
    remedy: "more chunks, or chunks along another axis",
  },
  linkBound: {
    label: "link-bound",
    sentence: "Between kernels the rank waits for data: the link needs longer for a chunk than the kernels do.",
    remedy: "a protocol with fewer bytes, or a larger GEMM for each byte",
  },
  notInLoop: {
    label: "not in a loop",
    sentence: "A collective moves a whole tensor at once, and no independent kernel runs beside it.",
    remedy: "Stream on an axis of the op that reads or makes the tensor",
  },
  chunking: {
    label: "chunking",
    sentence: "GEMMs of chunks take longer than one GEMM of the whole.",
    remedy: "fewer chunks, or chunks along a longer axis",
  },
  sums: {
    label: "sums",
    sentence: "Kernels add partial results or do other work that the serial program leaves to its collective.",
    remedy: "a reduction in peers' memory or by the library",
  },
  interference: {
    label: "interference",
    sentence: "Kernels beside a transfer run more slowly than alone.",
    remedy: "copies by copy engines, or an SM margin",
  },
  sms: {
    label: "no free SMs",
    sentence: "A communication kernel waits for SMs, or cores, that a GEMM occupies.",
    remedy: "an SM margin, or copies by copy engines",
  },
  latePeer: {
    label: "late peer",
    sentence: "The rank waits for a kernel of another rank.",
    remedy: "equal shares of work on all ranks",
  },
  reuse: {
    label: "reuse",
    sentence: "An iteration waits for an earlier one that used the same stream or buffer, not for its data.",
    remedy: "more streams, or more slots per buffer",
  },
  localCopy: {
    label: "copies on the device",
    sentence: "A copy within the device runs between kernels.",
    remedy: "the own chunk in place",
  },
  host: {
    label: "host",
    sentence: "The device waits for the host, which issues a run's commands or launches its graph.",
    remedy: "CUDA graphs, or fewer and larger chunks",
  },
  latency: {
    label: "latency",
    sentence: "Launches, events and signals take time themselves.",
    remedy: "fewer and larger chunks",
  },
};
