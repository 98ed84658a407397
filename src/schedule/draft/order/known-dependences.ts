/** The dependences of node lists, computed once for each. */
import { type Dependences, dependencesOf } from "./dependences.ts";
import type { DraftNode } from "../draft.ts";
import type { Memory } from "../memory/memory.ts";

type Nodes = readonly DraftNode[];

/** Of drafts as they were read, which several edits start from. */
export type ReadDependences = Map<Nodes, Dependences | null>;

export interface KnownDependences {
  readonly of: (nodes: Nodes) => Dependences;
  /** `nodes` are `like` others, on other streams, which dependences do not depend on. */
  readonly equate: (nodes: Nodes, like: Nodes) => void;
}

/** For one edit. */
export function createKnownDependences(read: ReadDependences, memory: Memory): KnownDependences {
  const edited: ReadDependences = new Map();
  return {
    of: (nodes) => {
      const known = read.get(nodes) ?? edited.get(nodes) ?? dependencesOf(nodes, memory);
      (read.has(nodes) ? read : edited).set(nodes, known);
      return known;
    },
    equate: (nodes, like) => {
      edited.set(nodes, read.get(like) ?? edited.get(like) ?? null);
    },
  };
}
