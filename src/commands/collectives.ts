/**
 * What the collectives mean, as one table: linker, verifier, machine and back ends read it, none has a rule of its own.
 * Every collective is pieces that go from members that read to members that write; a row says who reads and writes, which side is
 * split into one part per member of the other side (along axis 0), and how pieces that meet in one place are joined.
 */
import type { Collective, CollectiveType, View } from "./transfer.ts";
import { partOf } from "./view.ts";

export interface CollectiveRule {
  readonly rooted: boolean;
  /** Whether pieces are combined with `reduceOp`, in team order. Without, a place gets one piece. */
  readonly reduces: boolean;
  readonly reads: "all" | "root";
  readonly writes: "all" | "root";
  /** The input has one part per member that writes; else each of them gets the whole input. */
  readonly splitsInput: boolean;
  /** The output has one part per member that reads; else there is one place for all their pieces. */
  readonly splitsOutput: boolean;
  /**
   * What NCCL allows one member's two views to share: `same` both are one region; `part` the one that is not split is the
   * member's own part of the one that is; `never` they are apart.
   */
  readonly inPlace: "same" | "part" | "never";
  /** The side that a root from outside the mesh may lack: it gathers without contributing, or scatters without receiving. */
  readonly rootMayLack: "input" | "output" | null;
}

export const collectiveRules: { readonly [T in CollectiveType]: CollectiveRule } = {
  Gather: {
    rooted: true,
    reduces: false,
    reads: "all",
    writes: "root",
    splitsInput: false,
    splitsOutput: true,
    inPlace: "part",
    rootMayLack: "input",
  },
  Allgather: {
    rooted: false,
    reduces: false,
    reads: "all",
    writes: "all",
    splitsInput: false,
    splitsOutput: true,
    inPlace: "part",
    rootMayLack: null,
  },
  Scatter: {
    rooted: true,
    reduces: false,
    reads: "root",
    writes: "all",
    splitsInput: true,
    splitsOutput: false,
    inPlace: "part",
    rootMayLack: "output",
  },
  Reduce: {
    rooted: true,
    reduces: true,
    reads: "all",
    writes: "root",
    splitsInput: false,
    splitsOutput: false,
    inPlace: "same",
    rootMayLack: "input",
  },
  Allreduce: {
    rooted: false,
    reduces: true,
    reads: "all",
    writes: "all",
    splitsInput: false,
    splitsOutput: false,
    inPlace: "same",
    rootMayLack: null,
  },
  ReduceScatter: {
    rooted: false,
    reduces: true,
    reads: "all",
    writes: "all",
    splitsInput: true,
    splitsOutput: false,
    inPlace: "part",
    rootMayLack: null,
  },
  Broadcast: {
    rooted: true,
    reduces: false,
    reads: "root",
    writes: "all",
    splitsInput: false,
    splitsOutput: false,
    inPlace: "same",
    rootMayLack: "output",
  },
  AllToAll: {
    rooted: false,
    reduces: false,
    reads: "all",
    writes: "all",
    splitsInput: true,
    splitsOutput: true,
    inPlace: "never",
    rootMayLack: null,
  },
};

/** Whether the member at `position` of the team must, may or must not have the side. */
export function sideOf(
  type: CollectiveType,
  side: "input" | "output",
  root: number | null,
  position: number,
): "required" | "optional" | "absent" {
  const rule = collectiveRules[type];
  const who = side === "input" ? rule.reads : rule.writes;
  if (position === root && rule.rootMayLack === side) return "optional";
  return who === "all" || position === root ? "required" : "absent";
}

/**
 * The positions whose data the result of the member at `position` needs, in team order: it cannot complete before they have
 * arrived. Empty for a member that writes nothing, such as the non-root of a Reduce.
 */
export function dependsOn(
  type: CollectiveType,
  teamSize: number,
  root: number | null,
  position: number,
): readonly number[] {
  const rule = collectiveRules[type];
  if (rule.writes === "root" && position !== root) return [];
  if (rule.reads === "root") return root === null ? [] : [root];
  return Array.from({ length: teamSize }, (_, other) => other);
}

/** Pieces that meet in one place of one member's output: one source, or for a reduction all of them in team order. */
export interface Assembly {
  readonly output: View;
  /** `from` is a position in the team. */
  readonly sources: readonly { readonly from: number; readonly view: View }[];
}

/**
 * What the member at `position` has to put together: empty where it writes nothing. `members` holds the operations of the
 * whole team in team order. Views of one Assembly have equally many elements, which correspond in row-major order.
 */
export function assembliesOf(members: readonly Collective[], position: number): readonly Assembly[] {
  const own = members[position];
  const output = own?.output ?? null;
  if (own === undefined || output === null) return [];
  const rule = collectiveRules[own.type];
  const place = members.slice(0, position).filter((member) => member.output !== null).length;
  const sources = members.flatMap(({ input }, from) =>
    input === null ? [] : [{ from, view: rule.splitsInput ? partOf(input, place) : input }],
  );
  if (!rule.splitsOutput) return [{ output, sources }];
  return sources.map((source, part) => ({ output: partOf(output, part), sources: [source] }));
}
