/** The options of the passes, with all values decided. Defaults, flags and checks are in src/compile/options/. */
import type { CommunicatorBackend, OneSidedProtocol } from "../host/collectives.ts";

export interface LoweringOptions {
  /** The communication backend that the host program is written for, and that its communications name. */
  readonly backend: CommunicatorBackend;
  /** Devices 0 .. n-1 are on the first host, and so on. Without it, all devices are on one host. */
  readonly devicesPerHost?: number;
  /** How a DID axis that becomes a Stream axis is lowered. */
  readonly p2p: "linear" | "rotated" | "broadcast";
  /** Which side copies in one-sided point-to-point: the receiver (get) or the sender (put). */
  readonly protocol: OneSidedProtocol;
  /** Whether tensors without an annotation get meshes and shardings from their neighbours. */
  readonly propagate: boolean;
  /** Restores nvFuser's refusals, and the communication that Braid avoids. */
  readonly nvfuserLimits: boolean;
  /** If false, Stream axes are ignored, and all communication of an op comes before or after all of its computation. */
  readonly overlap: boolean;
  /** Gathers before a contraction, and reduce-scatters after it, are loops over the devices without an annotation. */
  readonly deviceLoops: boolean;
  /** Stream i+1 waits for the point-to-point communication of stream i, in the first round over the streams. */
  readonly interStreamSync: boolean;
  /** Reshardings are inserted after the op instead of before it. */
  readonly insertReshardingAfter: boolean;
  /** Allows Stream on a contracted axis: a loop adds the matmul of each chunk to the output, in order. */
  readonly accumulate: boolean;
  /** Attention as one kernel, as matmuls and a softmax, or as one kernel where cuDNN has it. */
  readonly attention: "fused" | "ops" | "auto";
  /** Deallocate statements free buffers after their last use. */
  readonly deallocate: boolean;
  /** Loop-local buffers get one slot per stream instead of their full extent. */
  readonly shrink: boolean;
  /** Names of passes to leave out. */
  readonly disablePass: readonly string[];
}
