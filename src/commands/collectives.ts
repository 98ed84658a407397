/**
 * What the collectives mean for the commands of a Program, read from the one table of src/host/collectives.ts: who must have which
 * side, whose data a result needs, and which pieces make it.
 */
import { collectives, type CollectiveType } from "../host/collectives.ts";
import { keysOf } from "../support/keys-of.ts";
import type { Collective } from "./transfer.ts";
import { partOf, type View } from "./view.ts";

// For layers that do not import src/host.
export {
  collectives,
  type CollectiveRow,
  type CollectiveType,
  isRooted,
  type NcclCollective,
} from "../host/collectives.ts";

/** The types that are one transfer of a team. */
export const collectiveTypes: readonly CollectiveType[] = keysOf(collectives).filter((type) => type !== "SendRecv");

/** Whether all ranks get the same result, which one of them can combine for the others. */
export function sharesResult(type: CollectiveType): boolean {
  const { reduces, writes, splitsInput } = collectives[type];
  return reduces && writes === "all" && !splitsInput;
}

/** Whether the member at `position` of the team must, may or must not have the side. */
export function sideOf(
  type: CollectiveType,
  side: "input" | "output",
  root: number | null,
  position: number,
): "required" | "optional" | "absent" {
  const rule = collectives[type];
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
  const rule = collectives[type];
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
  const rule = collectives[own.type];
  const place = members.slice(0, position).filter((member) => member.output !== null).length;
  const sources = members.flatMap(({ input }, from) =>
    input === null ? [] : [{ from, view: rule.splitsInput ? partOf(input, place) : input }],
  );
  if (!rule.splitsOutput) return [{ output, sources }];
  return sources.map((source, part) => ({ output: partOf(output, part), sources: [source] }));
}
