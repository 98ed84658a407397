/**
 * The table of collectives: one row per type with all facts about it. Lowering, validation, recording, linking,
 * verification, simulation and the back ends read this table, and none of them has a rule for a single type.
 *
 * Every collective moves slices from the ranks that read to the ranks that write. A type's name is also its spelling in
 * dumps. To add a type, add its name here and its row, then follow the compile errors.
 */
import type { ReductionOpType } from "../ir/ops/op.ts";

export type CollectiveType =
  "Gather" | "Allgather" | "Scatter" | "Reduce" | "Allreduce" | "ReduceScatter" | "Broadcast" | "AllToAll";

/**
 * SendRecv is a send and a receive, AllToAllV sends and receives of whatever each rank lacks. `record` turns both into
 * point-to-point groups.
 */
export type CommunicationType = CollectiveType | "SendRecv" | "AllToAllV";

/** How a DID type or a mesh changes in a step of a route. A CollectivePermute is a statement of its own. */
export type StepType = CommunicationType | "CollectivePermute";

/** The types whose tensors say which elements move, whoever has them. */
export type SlicedType = Exclude<CommunicationType, "SendRecv">;

/** NCCL's calls for whole collectives. */
export type NcclCollective = "allGather" | "broadcast" | "allReduce" | "reduceScatter" | "reduce";

interface CommunicationRow {
  /** The ranks whose input is read. "root": the type has a root. */
  readonly reads: "all" | "root";
  /** The ranks whose output is written. "root": the type has a root; "peer": the one rank that is not the root. */
  readonly writes: "all" | "root" | "peer";
  /** Whether slices are reduced, in team order. If not, each region of the output gets one slice. */
  readonly reduces: boolean;
  /** The input has one slice per rank that writes; otherwise each of them gets the whole input. */
  readonly splitsInput: boolean;
  /** The output has one slice per rank that reads; otherwise it has one region for all of them. */
  readonly splitsOutput: boolean;
  /**
   * The change of one DID type, or of the mesh alone ("whole" to "whole"), that the type makes on one mesh or between
   * meshes: what the type cuts before and after, or whether results along it are still to be added. Null for a type
   * that makes changes of several.
   */
  readonly change: { readonly before: "pending" | "cut" | "whole"; readonly after: "cut" | "whole" } | null;
  /**
   * If the type changes a sharding on one mesh: the elements that a rank receives, as a multiple of (n - 1) / n of its
   * share of the tensor before or after. Null if it does not.
   */
  readonly onOneMesh: { readonly times: 1 | 2 | "team"; readonly share: "before" | "after" } | null;
  /**
   * If the type moves a tensor to another mesh: which receivers share a team. "all": one team; "shares": receivers that
   * differ only along the changing DID type; "one": a team for each receiver; "pair": a team for each receiver and its
   * sender; "union": the devices of both meshes. Null if it does not.
   */
  readonly betweenMeshes: "all" | "shares" | "one" | "pair" | "union" | null;
}

export interface CollectiveRow extends CommunicationRow {
  readonly writes: "all" | "root";
  /**
   * The overlap of one rank's two views that NCCL allows. "same": both are one region; "part": the unsplit side is the
   * rank's own slice of the split side; "never": they do not overlap.
   */
  readonly inPlace: "same" | "part" | "never";
  /**
   * The side that a root from outside the mesh may lack: it gathers without contributing, or scatters without
   * receiving.
   */
  readonly rootMayLack: "input" | "output" | null;
  /**
   * NCCL's call; null if there is none, and sends and receives implement the type. A type that reduces needs a call.
   */
  readonly nccl: NcclCollective | null;
  /** The type whose measured times apply: it moves as many bytes in as many steps. */
  readonly timedLike: CollectiveType;
}

/** What most rows have. */
const bareRow = {
  reduces: false,
  splitsInput: false,
  splitsOutput: false,
  onOneMesh: null,
  betweenMeshes: null,
} as const;
const plainRow = { ...bareRow, rootMayLack: null, nccl: null } as const;

export const collectives: {
  readonly [T in CommunicationType]: T extends CollectiveType ? CollectiveRow : CommunicationRow;
} = {
  Gather: {
    ...plainRow,
    reads: "all",
    writes: "root",
    splitsOutput: true,
    change: { before: "cut", after: "whole" },
    betweenMeshes: "one",
    inPlace: "part",
    rootMayLack: "input",
    timedLike: "Allgather",
  },
  Allgather: {
    ...plainRow,
    reads: "all",
    writes: "all",
    splitsOutput: true,
    change: { before: "cut", after: "whole" },
    onOneMesh: { times: "team", share: "before" },
    inPlace: "part",
    nccl: "allGather",
    timedLike: "Broadcast",
  },
  Scatter: {
    ...plainRow,
    reads: "root",
    writes: "all",
    splitsInput: true,
    change: { before: "whole", after: "cut" },
    onOneMesh: { times: 1, share: "after" },
    betweenMeshes: "shares",
    inPlace: "part",
    rootMayLack: "output",
    timedLike: "Allgather",
  },
  Reduce: {
    ...plainRow,
    reads: "all",
    writes: "root",
    reduces: true,
    change: { before: "pending", after: "whole" },
    betweenMeshes: "one",
    inPlace: "same",
    rootMayLack: "input",
    nccl: "reduce",
    timedLike: "Allreduce",
  },
  Allreduce: {
    ...plainRow,
    reads: "all",
    writes: "all",
    reduces: true,
    change: { before: "pending", after: "whole" },
    onOneMesh: { times: 2, share: "before" },
    inPlace: "same",
    nccl: "allReduce",
    timedLike: "ReduceScatter",
  },
  ReduceScatter: {
    ...plainRow,
    reads: "all",
    writes: "all",
    reduces: true,
    splitsInput: true,
    change: { before: "pending", after: "cut" },
    onOneMesh: { times: "team", share: "after" },
    inPlace: "part",
    nccl: "reduceScatter",
    timedLike: "Allgather",
  },
  Broadcast: {
    ...plainRow,
    reads: "root",
    writes: "all",
    change: { before: "whole", after: "whole" },
    betweenMeshes: "all",
    inPlace: "same",
    rootMayLack: "output",
    nccl: "broadcast",
    timedLike: "Allgather",
  },
  SendRecv: {
    ...bareRow,
    reads: "root",
    writes: "peer",
    change: { before: "whole", after: "whole" },
    betweenMeshes: "pair",
  },
  AllToAllV: {
    ...bareRow,
    reads: "all",
    writes: "all",
    splitsInput: true,
    splitsOutput: true,
    change: null,
    betweenMeshes: "union",
  },
  AllToAll: {
    ...plainRow,
    reads: "all",
    writes: "all",
    splitsInput: true,
    splitsOutput: true,
    change: { before: "cut", after: "cut" },
    onOneMesh: { times: 1, share: "before" },
    inPlace: "never",
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

/** As spelled in dumps. */
export const backendNames: { readonly [B in CommunicatorBackend]: string } = { nccl: "NCCL", cuda: "CUDA", ucc: "UCC" };

export type ReduceOpType = "sum" | "prod" | "min" | "max";

/** As spelled in dumps. */
export const reduceOpNames: { readonly [R in ReduceOpType]: string } = {
  sum: "SUM",
  prod: "PRODUCT",
  min: "MIN",
  max: "MAX",
};

/** The reduction op that matches a communication's reduction, and the reverse. */
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
