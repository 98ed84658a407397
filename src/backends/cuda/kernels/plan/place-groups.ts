/** Places the values between the kernels of a unit in the scratch. Those that stay in registers have no place. */
import type { Memory } from "../../../../kernels/nests/nest.ts";
import { memoriesOf, movedNest, movedPhase, placeScratch } from "../../../../kernels/nests/share-scratch.ts";
import { unreachable } from "../../../../support/unreachable.ts";
import type { PhaseGroup } from "./nest-groups.ts";

export interface PlacedGroups {
  readonly groups: readonly PhaseGroup[];
  readonly valueBytes: number;
}

/** `sizes` maps the offset of each value to its aligned bytes. */
export function placeGroups(groups: readonly PhaseGroup[], sizes: ReadonlyMap<number, number>): PlacedGroups {
  const { move, bytes } = placeScratch(groups.map(usedBy), sizes);
  return { groups: groups.map((group) => moved(group, move)), valueBytes: bytes };
}

function usedBy(group: PhaseGroup): readonly Memory[] {
  switch (group.kind) {
    case "nests":
    case "rows":
      return group.nests.flatMap(({ nest, given, stores }): readonly Memory[] => [
        ...nest.body.flatMap((step, i) => (step.kind === "load" && !given.has(i) ? [step.access.memory] : [])),
        ...(stores ? [nest.target.memory] : []),
      ]);
    case "reduction":
    case "scatter":
      return memoriesOf({ kind: "nest", nest: group.nest });
    case "contraction":
      return memoriesOf(group);
    default:
      return unreachable(group);
  }
}

function moved(group: PhaseGroup, move: (memory: Memory) => Memory): PhaseGroup {
  switch (group.kind) {
    case "nests":
      return { ...group, nests: group.nests.map((each) => ({ ...each, nest: movedNest(each.nest, move) })) };
    case "rows":
      return { ...group, nests: group.nests.map((each) => ({ ...each, nest: movedNest(each.nest, move) })) };
    case "reduction":
    case "scatter":
      return { ...group, nest: movedNest(group.nest, move) };
    case "contraction":
      return movedPhase(group, move);
    default:
      return unreachable(group);
  }
}
