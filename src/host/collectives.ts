/**
 * The collectives: one row per type says everything that holds of it, whoever asks. Lowering, validation, recording,
 * linking, verification, simulation and the back ends read this table; none of them has a rule of its own for a type.
 *
 * Every collective moves pieces from the ranks that read to the ranks that write. A type's name is also its spelling
 * in dumps. To add a type: its name here, its row, and what the compiler then names.
 */
import type { ReductionOpType } from "../ir/ops/op.ts";

export type CollectiveType =
  "Gather" | "Allgather" | "Scatter" | "Reduce" | "Allreduce" | "ReduceScatter" | "Broadcast" | "AllToAll";

/** SendRecv is a send and a receive: recording makes a point-to-point group of it. */
export type CommunicationType = CollectiveType | "SendRecv";

/** NCCL's calls for whole collectives. */
export type NcclCollective = "allGather" | "broadcast" | "allReduce" | "reduceScatter" | "reduce";

interface CommunicationRow {
  /** Whose input is read. "root": the type has a root. */
  readonly reads: "all" | "root";
  /** Whose output is written. "root": the type has a root; "peer": the one rank that is not the root. */
  readonly writes: "all" | "root" | "peer";
  /** Whether pieces are combined by a reduction, in team order. If not, a place gets one piece. */
  readonly reduces: boolean;
  /** The input has one part per rank that writes; else each of them gets the whole input. */
  readonly splitsInput: boolean;
  /** The output has one part per rank that reads; else there is one place for all their pieces. */
  readonly splitsOutput: boolean;
  /**
   * Where it carries a change of sharding on one mesh: what a rank receives there, as a multiple of (n - 1) / n of
   * its share of the tensor before or after. Null where it carries none.
   */
  readonly onOneMesh: { readonly times: 1 | 2 | "team"; readonly share: "before" | "after" } | null;
  /**
   * Where it carries a tensor to another mesh: which receivers share a team. "all": one team; "shares": those that
   * differ along the changing DID type alone; "one": a team for each receiver; "pair": one for each receiver and its
   * sender. Null where it carries none.
   */
  readonly betweenMeshes: "all" | "shares" | "one" | "pair" | null;
}

export interface CollectiveRow extends CommunicationRow {
  readonly writes: "all" | "root";
  /**
   * What NCCL allows one rank's two views to share. "same": both are one region; "part": the one that is not split is
   * the rank's own part of the one that is; "never": they are apart.
   */
  readonly inPlace: "same" | "part" | "never";
  /**
   * The side that a root from outside the mesh may lack: it gathers without contributing, or scatters without
   * receiving.
   */
  readonly rootMayLack: "input" | "output" | null;
  /** NCCL's call; null where it has none, and sends and receives carry the collective. What reduces needs a call. */
  readonly nccl: NcclCollective | null;
  /** Whose measured times stand for its own: the type that moves as many bytes in as many steps. */
  readonly timedLike: CollectiveType;
}

export const collectives: {
  readonly [T in CommunicationType]: T extends CollectiveType ? CollectiveRow : CommunicationRow;
} = {
  Gather: {
    reads: "all",
    writes: "root",
    reduces: false,
    splitsInput: false,
    splitsOutput: true,
    onOneMesh: null,
    betweenMeshes: "one",
    inPlace: "part",
    rootMayLack: "input",
    nccl: null,
    timedLike: "Allgather",
  },
  Allgather: {
    reads: "all",
    writes: "all",
    reduces: false,
    splitsInput: false,
    splitsOutput: true,
    onOneMesh: { times: "team", share: "before" },
    betweenMeshes: null,
    inPlace: "part",
    rootMayLack: null,
    nccl: "allGather",
    timedLike: "Broadcast",
  },
  Scatter: {
    reads: "root",
    writes: "all",
    reduces: false,
    splitsInput: true,
    splitsOutput: false,
    onOneMesh: { times: 1, share: "after" },
    betweenMeshes: "shares",
    inPlace: "part",
    rootMayLack: "output",
    nccl: null,
    timedLike: "Allgather",
  },
  Reduce: {
    reads: "all",
    writes: "root",
    reduces: true,
    splitsInput: false,
    splitsOutput: false,
    onOneMesh: null,
    betweenMeshes: "one",
    inPlace: "same",
    rootMayLack: "input",
    nccl: "reduce",
    timedLike: "Allreduce",
  },
  Allreduce: {
    reads: "all",
    writes: "all",
    reduces: true,
    splitsInput: false,
    splitsOutput: false,
    onOneMesh: { times: 2, share: "before" },
    betweenMeshes: null,
    inPlace: "same",
    rootMayLack: null,
    nccl: "allReduce",
    timedLike: "ReduceScatter",
  },
  ReduceScatter: {
    reads: "all",
    writes: "all",
    reduces: true,
    splitsInput: true,
    splitsOutput: false,
    onOneMesh: { times: 1, share: "before" },
    betweenMeshes: null,
    inPlace: "part",
    rootMayLack: null,
    nccl: "reduceScatter",
    timedLike: "Allgather",
  },
  Broadcast: {
    reads: "root",
    writes: "all",
    reduces: false,
    splitsInput: false,
    splitsOutput: false,
    onOneMesh: null,
    betweenMeshes: "all",
    inPlace: "same",
    rootMayLack: "output",
    nccl: "broadcast",
    timedLike: "Allgather",
  },
  SendRecv: {
    reads: "root",
    writes: "peer",
    reduces: false,
    splitsInput: false,
    splitsOutput: false,
    onOneMesh: null,
    betweenMeshes: "pair",
  },
  AllToAll: {
    reads: "all",
    writes: "all",
    reduces: false,
    splitsInput: true,
    splitsOutput: true,
    onOneMesh: { times: 1, share: "before" },
    betweenMeshes: null,
    inPlace: "never",
    rootMayLack: null,
    nccl: null,
    timedLike: "Allgather",
  },
};

export function isRooted(type: CommunicationType): boolean {
  const { reads, writes } = collectives[type];
  return reads === "root" || writes === "root";
}

export type CommunicatorBackend = "nccl" | "cuda" | "ucc";

/** Who copies in one-sided point-to-point: the receiver gets, the sender puts. */
export type OneSidedProtocol = "get" | "put";

/** As dumps spell them. */
export const backendNames: { readonly [B in CommunicatorBackend]: string } = { nccl: "NCCL", cuda: "CUDA", ucc: "UCC" };

export type ReduceOpType = "sum" | "prod" | "min" | "max";

/** As dumps spell them. */
export const reduceOpNames: { readonly [R in ReduceOpType]: string } = {
  sum: "SUM",
  prod: "PRODUCT",
  min: "MIN",
  max: "MAX",
};

/** A communication's reduction as the op that reduces alike, and the reverse. */
export const reductionOf: { readonly [R in ReduceOpType]: ReductionOpType } = {
  sum: "sum",
  prod: "prod",
  min: "amin",
  max: "amax",
};
export const reduceOpOf: { readonly [R in ReductionOpType]: ReduceOpType } = {
  sum: "sum",
  prod: "prod",
  amin: "min",
  amax: "max",
};
