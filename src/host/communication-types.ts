/**
 * The types of communication: whether one has a root and whether it combines what it moves (reference: nvFuser's hasRoot and isReduction);
 * and how dumps spell what else a communication names.
 */
import type { CommunicationType, CommunicatorBackend, ReduceOpType } from "./nodes.ts";

interface CommunicationFacts {
  readonly rooted: boolean;
  readonly reduces: boolean;
}

export const communicationTypes: { readonly [T in CommunicationType]: CommunicationFacts } = {
  Gather: { rooted: true, reduces: false },
  Allgather: { rooted: false, reduces: false },
  Scatter: { rooted: true, reduces: false },
  Reduce: { rooted: true, reduces: true },
  Allreduce: { rooted: false, reduces: true },
  ReduceScatter: { rooted: false, reduces: true },
  Broadcast: { rooted: true, reduces: false },
  SendRecv: { rooted: true, reduces: false },
  AllToAll: { rooted: false, reduces: false },
};

export const backendNames: { readonly [B in CommunicatorBackend]: string } = { nccl: "NCCL", cuda: "CUDA", ucc: "UCC" };

export const reduceOpNames: { readonly [R in ReduceOpType]: string } = {
  sum: "SUM",
  prod: "PRODUCT",
  min: "MIN",
  max: "MAX",
};
