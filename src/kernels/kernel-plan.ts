/** Every kind of kernel as phases: combine and fill as nests of their own, all else as a unit. */
import type { Kernel } from "../commands/kernel.ts";
import { unreachable } from "../support/unreachable.ts";
import { arrangeLoops } from "./arrange-loops.ts";
import { asUnit } from "./as-unit.ts";
import { combineNest } from "./combine-nest.ts";
import { fillNest } from "./fill-nest.ts";
import type { Nest } from "./nest.ts";
import { planUnit, type UnitPlan } from "./unit-plan.ts";

export function planKernel(kernel: Kernel): UnitPlan {
  switch (kernel.kind) {
    case "unary":
    case "cast":
    case "binary":
    case "reduction":
    case "matmul":
    case "linear":
      return planUnit(asUnit(kernel));
    case "unit":
      return planUnit(kernel);
    case "combine":
      return oneNest(combineNest(kernel));
    case "fill":
      return oneNest(fillNest(kernel));
    default:
      return unreachable(kernel);
  }
}

function oneNest(nest: Nest): UnitPlan {
  return { phases: [{ kind: "nest", nest: arrangeLoops(nest) }], valueBytes: 0, workBytes: 0 };
}
