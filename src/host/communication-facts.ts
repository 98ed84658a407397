/** What kinds of communication there are, as one table: which have a root and which reduce. */
import type { CommunicationType } from "./nodes.ts";

export interface CommunicationFacts {
  /** Whether one member of the team is the root. */
  readonly rooted: boolean;
  /** Whether the members' data is combined. */
  readonly reducing: boolean;
}

export const communicationFacts: { readonly [K in CommunicationType]: CommunicationFacts } = {
  Gather: { rooted: true, reducing: false },
  Allgather: { rooted: false, reducing: false },
  Scatter: { rooted: true, reducing: false },
  Reduce: { rooted: true, reducing: true },
  Allreduce: { rooted: false, reducing: true },
  ReduceScatter: { rooted: false, reducing: true },
  Broadcast: { rooted: true, reducing: false },
  SendRecv: { rooted: true, reducing: false },
  AllToAll: { rooted: false, reducing: false },
};
