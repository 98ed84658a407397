/**
 * Device operations: what a rank's host hands to the driver and the libraries, in order, as plain data with symbolic
 * addresses. `deviceOps` plans them; a binder turns each into one call, or one per offset of a GEMM. docs/plan.md has
 * the format of files.
 *
 * To add a kind: add it to `DeviceOp`, then follow the compile errors (bind/bind-op.ts, src/plan).
 */
import type { AttentionKernel } from "../../../commands/attention.ts";
import type { StreamInfo } from "../../../commands/command.ts";
import type { DType } from "../../../numerics/dtype.ts";
import type { CudnnGraph } from "../attention/graph.ts";
import type { GemmLayout } from "../matmul/gemm-layout.ts";
import type { NcclCall } from "../nccl/plan-builder.ts";
import type { Team } from "../nccl/communicators.ts";
import type { Address, TensorPlace, Word } from "./address.ts";
import type { MemoryOperation } from "./memory-operations.ts";

interface OpBase {
  readonly stream: number;
  /** The command of the rank's list that it belongs to, the first one of joined commands; -1 for an added edge. */
  readonly command: number;
}

/** A contiguous run of bytes, by a copy engine. */
export interface CopyOp extends OpBase {
  readonly kind: "copy";
  readonly to: Address;
  readonly from: Address;
  readonly bytes: number;
}
/** `height` rows of `width` bytes, whose starts are `toPitch` and `fromPitch` bytes apart, by a copy engine. */
export interface Copy2dOp extends OpBase {
  readonly kind: "copy2d";
  readonly to: Address;
  readonly toPitch: number;
  readonly from: Address;
  readonly fromPitch: number;
  readonly width: number;
  readonly height: number;
}
/** Memory operations that the stream executes in order: writes of 32-bit words, and waits for a word to be equal. */
export interface BatchOp extends OpBase {
  readonly kind: "batch";
  readonly operations: readonly MemoryOperation[];
}
export interface LaunchOp extends OpBase, KernelLaunch {
  readonly kind: "launch";
}
/** c = a b, plus the bias, plus, if the GEMM accumulates, the addend or c. */
export interface GemmOp extends OpBase {
  readonly kind: "gemm";
  /** A position in the list's `gemms`. */
  readonly gemm: number;
  readonly a: Address;
  readonly b: Address;
  readonly bias: Address | null;
  /** In the layout of c; absent for c itself. */
  readonly addend?: Address;
  /** Of a and b. */
  readonly scales?: readonly Address[];
  readonly c: Address;
}
/** One graph of cuDNN. Its workspace is the stream's. */
export interface AttentionOp extends OpBase {
  readonly kind: "attention";
  /** A position in the list's `attentions`. */
  readonly attention: number;
  /** Of the kernel's inputs, then its outputs. */
  readonly operands: readonly Address[];
  /** Of the graph's tensors in scratch. */
  readonly scratch: Address;
}
export interface RecordOp extends OpBase {
  readonly kind: "record";
  readonly event: number;
}
export interface WaitOp extends OpBase {
  readonly kind: "wait";
  readonly event: number;
}
/** Calls of NCCL in one group. Plan files have none. */
export interface TransferOp extends OpBase {
  readonly kind: "transfer";
  readonly communicator: string;
  readonly calls: readonly NcclCall<Address>[];
}

export type DeviceOp = CopyOp | Copy2dOp | BatchOp | LaunchOp | GemmOp | AttentionOp | RecordOp | WaitOp | TransferOp;

type Three = readonly [x: number, y: number, z: number];

export interface KernelLaunch {
  /** A position in the list's `kernels`. */
  readonly kernel: number;
  readonly grid: Three;
  readonly block: Three;
  /** Of dynamic shared memory; none if absent. */
  readonly sharedBytes?: number;
  /** 64 bits each: pointers, or numbers. */
  readonly parameters: readonly (Address | number)[];
}

export interface DeviceGemm {
  readonly layout: GemmLayout;
  /** Multiprocessors that it leaves free. */
  readonly margin: number;
  /**
   * The kernel to launch if cuBLASLt has no algorithm. Its parameters are a, b, the bias, the addend and the
   * scales if there are any, and c.
   */
  readonly fallback: Omit<KernelLaunch, "parameters">;
}

export interface DeviceAttention {
  readonly kernel: AttentionKernel;
  readonly graph: CudnnGraph;
  /** Bytes of the graph's tensors in scratch. */
  readonly scratchBytes: number;
}

export interface DeviceStream extends Pick<StreamInfo, "name" | "role"> {
  /** 0 is the highest. */
  readonly priority: number;
}

/** A tensor of the caller, as this rank holds it. */
export interface BoundTensor {
  readonly role: "input" | "output";
  /** In the program's list of inputs or of outputs; null for a tensor between two parts of a program. */
  readonly position: number | null;
  /** Of an input that the run writes: the position of the output that it is afterwards. */
  readonly output?: number;
  readonly name: string;
  readonly dtype: DType;
  /** Of this rank's part. */
  readonly shape: readonly number[];
  readonly bytes: number;
  /** A tensor in symmetric memory is copied there before a run, or from there afterwards. Others are bound in place. */
  readonly place: TensorPlace;
}

/** The memory that a rank binds. */
export interface DeviceMemoryNeeds {
  /** Of `in` and `out` addresses, in the order of their numbers. */
  readonly in: readonly BoundTensor[];
  readonly out: readonly BoundTensor[];
  /** Inputs and outputs that lie in symmetric memory. */
  readonly copied: readonly BoundTensor[];
  readonly temporaryBytes: number;
  /** By rank, in bytes: multiples of 256. */
  readonly symmetricBytes: readonly number[];
  /** By rank: the slots that it waits on. They follow the symmetric arena. */
  readonly words: readonly number[];
  /** Of this rank. They follow its words. */
  readonly gates: number;
  /** By stream, in bytes. */
  readonly scratchBytes: readonly number[];
  /** By stream, in bytes, of cuBLASLt. What cuDNN needs is known when its plans are made. */
  readonly workspaceBytes: readonly number[];
}

/** A wait for a peer's signal: the word, and the command that waits. */
export interface PeerWait {
  readonly word: Word;
  readonly command: number;
}

/** All that one rank does in a run. */
export interface DeviceOps {
  readonly rank: number;
  readonly world: number;
  readonly streams: readonly DeviceStream[];
  readonly events: number;
  readonly memory: DeviceMemoryNeeds;
  /** Texts of CUDA C++. */
  readonly kernels: readonly string[];
  readonly gemms: readonly DeviceGemm[];
  readonly attentions: readonly DeviceAttention[];
  /** Of all ranks. */
  readonly teams: readonly Team[];
  /** In issue order. */
  readonly ops: readonly DeviceOp[];
  /** Waits of one batch that a stream reports as one, by their first command. */
  readonly waitRuns: readonly (readonly PeerWait[])[];
}
