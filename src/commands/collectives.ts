/**
 * What the table of collectives (src/host/collectives.ts) means for commands: which sides each rank has, whose data a
 * result needs, and which slices make up each result.
 */
import { collectives, type CollectiveType, type SlicedType } from "../host/collectives.ts";
import { at, keysOf } from "../support/invariant.ts";
import type { Collective, Transfer } from "./command.ts";
import { partOf, sameNumbers, sameView, type View } from "./view.ts";

// For layers that do not import src/host.
export {
  collectives,
  type CollectiveRow,
  type CollectiveType,
  isRooted,
  type NcclCollective,
  type SlicedType,
} from "../host/collectives.ts";

/** The types that are one transfer of a team. */
export const collectiveTypes: readonly CollectiveType[] = keysOf(collectives).filter(
  (type) => type !== "SendRecv" && type !== "AllToAllV",
);

/** The ranks that take part, also those that a Program of one replica lacks. */
export function allRanksOf({ team, wholeTeam = team }: Collective): readonly number[] {
  return wholeTeam;
}

/** The views of one rank's half of a transfer. */
export function transferViews(operation: Transfer["operation"]): readonly View[] {
  if (operation.kind === "group") return operation.ops.map(({ view }) => view);
  return [operation.input, operation.output].filter((view) => view !== null);
}

/**
 * Whether two halves of transfers are equal, where views are by `isSame`, and a rank of the first is `imageOf` it in the
 * second.
 */
export function sameOperation(
  a: Transfer["operation"],
  b: Transfer["operation"],
  isSame: (own: View, image: View) => boolean = sameView,
  imageOf: ((rank: number) => number) | null = null,
): boolean {
  if (a.kind === "group")
    return (
      b.kind === "group" &&
      a.ops.length === b.ops.length &&
      a.ops.every(({ type, peer, view }, i) => {
        const other = at(b.ops, i);
        return type === other.type && (imageOf?.(peer) ?? peer) === other.peer && isSame(view, other.view);
      })
    );
  const sameRanks = (own: readonly number[], image: readonly number[]): boolean =>
    sameNumbers(imageOf === null ? own : own.map(imageOf), image);
  const sameSide = (own: View | null, image: View | null): boolean =>
    own === null || image === null ? own === image : isSame(own, image);
  return (
    b.kind === "collective" &&
    a.type === b.type &&
    a.root === b.root &&
    a.reduceOp === b.reduceOp &&
    sameRanks(a.team, b.team) &&
    sameRanks(allRanksOf(a), allRanksOf(b)) &&
    sameSide(a.input, b.input) &&
    sameSide(a.output, b.output)
  );
}

/** Whether all ranks get the same result, which one of them can combine for the others. */
export function sharesResult(type: CollectiveType): boolean {
  const { reduces, writes, splitsInput } = collectives[type];
  return reduces && writes === "all" && !splitsInput;
}

/** Whether the rank at `position` of the team must, may or must not have the side. */
export function sideOf(
  type: SlicedType,
  side: "input" | "output",
  root: number | null,
  position: number,
): "required" | "optional" | "absent" {
  const row = collectives[type];
  const who = side === "input" ? row.reads : row.writes;
  if (position === root && "rootMayLack" in row && row.rootMayLack === side) return "optional";
  return who === "all" || position === root ? "required" : "absent";
}

/**
 * The positions whose data the result of the rank at `position` needs, in team order. The rank cannot complete before
 * that data has arrived. Empty for a rank that writes nothing, such as a rank of a Reduce that is not its root.
 */
export function dependsOn(
  type: CollectiveType,
  teamSize: number,
  root: number | null,
  position: number,
): readonly number[] {
  const row = collectives[type];
  if (row.writes === "root" && position !== root) return [];
  if (row.reads === "root") return root === null ? [] : [root];
  return Array.from({ length: teamSize }, (_, other) => other);
}

/** Whether every result needs the data of all ranks. */
export function dependsOnAll(type: CollectiveType): boolean {
  const { reads, writes } = collectives[type];
  return reads === "all" && writes === "all";
}

/** The sources of one region of a rank's output: one slice, or for a reduction all ranks' slices in team order. */
export interface Assembly {
  readonly output: View;
  /** `from` is a position in the team. */
  readonly sources: readonly { readonly from: number; readonly view: View }[];
}

/**
 * The regions of the output of the rank at `position`, with their sources; empty if it writes nothing. `operations` are
 * those of the whole team in team order. Views of one Assembly have equally many elements, which correspond in
 * row-major order.
 */
export function assembliesOf(operations: readonly Collective[], position: number): readonly Assembly[] {
  const own = operations[position];
  const output = own?.output ?? null;
  if (own === undefined || output === null) return [];
  const { splitsInput, splitsOutput } = collectives[own.type];
  const place = countBefore(operations, position, "output");
  const sources = operations.flatMap(({ input }, from) =>
    input === null ? [] : [{ from, view: splitsInput ? partOf(input, place) : input }],
  );
  if (!splitsOutput) return [{ output, sources }];
  return sources.map((source, part) => ({ output: partOf(output, part), sources: [source] }));
}

/**
 * The slice of the rank at `from` in the result of the rank at `position`, and the region that it is for; null if that
 * result has none of its data. The same as in `assembliesOf`, without the slices of the others: a team of n ranks has n
 * x n slices.
 */
export function sliceFrom(
  operations: readonly Collective[],
  position: number,
  from: number,
): { readonly source: View; readonly output: View } | null {
  const own = operations[position];
  const input = operations[from]?.input ?? null;
  if (own === undefined || own.output === null || input === null) return null;
  const { splitsInput, splitsOutput } = collectives[own.type];
  return {
    source: splitsInput ? partOf(input, countBefore(operations, position, "output")) : input,
    output: splitsOutput ? partOf(own.output, countBefore(operations, from, "input")) : own.output,
  };
}

/** How many ranks before `position` have the side. */
function countBefore(operations: readonly Collective[], position: number, side: "input" | "output"): number {
  let count = 0;
  for (let i = 0; i < position; i++) if ((operations[i]?.[side] ?? null) !== null) count += 1;
  return count;
}
