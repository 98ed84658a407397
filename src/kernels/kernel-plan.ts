/** Every kind of kernel as phases: combine and fill as nests of their own, all else as a unit. */
import type { Kernel } from "../commands/kernel.ts";
import { arrangeLoops } from "./nests/arrange-loops.ts";
import { asUnit } from "../commands/as-unit.ts";
import { combineNests } from "./nests/combine-nest.ts";
import { fillNest } from "./nests/fill-nest.ts";
import type { Nest } from "./nests/nest.ts";
import { planUnit, type UnitPlan } from "./unit-plan.ts";

export function planKernel(kernel: Kernel): UnitPlan {
  switch (kernel.kind) {
    case "combine":
      return nests(combineNests(kernel));
    case "fill":
      return nests([fillNest(kernel)]);
    default:
      return planUnit(asUnit(kernel));
  }
}

function nests(list: readonly Nest[]): UnitPlan {
  return { phases: list.map((nest) => ({ kind: "nest", nest: arrangeLoops(nest) })), valueBytes: 0, workBytes: 0 };
}
