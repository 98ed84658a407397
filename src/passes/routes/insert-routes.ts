/**
 * Decides what moves between devices, and inserts it: after this pass, an op that reshards does nothing else, and one
 * communication carries it.
 *
 *   whether operands of an op move, or its result, or it is reduced instead    weigh-ops.ts, place-op.ts
 *   what a sum over devices becomes                                            split-over-devices.ts, merge-sums.ts,
 *                                                                              late-sums.ts
 *   which tensor moves, for how many readers                                   move.ts, move-sources.ts
 *   the route, and what it costs                                               route.ts
 *   the kinds of steps, and the bytes of each                                  steps/
 *
 * With `nvfuserLimits` each op is placed for itself, as nvFuser does.
 */
import type { FusionData } from "../../ir/fusion-data.ts";
import type { Pass } from "../pass.ts";
import { lateSums } from "./late-sums.ts";
import { type Decisions, routeOps } from "./route-ops.ts";
import { weighing } from "./weigh-ops.ts";

export const insertRoutes: Pass<"checked", "checked"> = {
  name: "insert-routes",
  from: "checked",
  to: "checked",
  run: (fusion, { options }) => routeOps(fusion, options, options.nvfuserLimits ? {} : decisions(fusion)),
};

function decisions(fusion: FusionData): Decisions {
  const weigh = weighing(fusion);
  return {
    decide: (routing, op, written) => {
      weigh(routing, op, written);
      if (op.kind === "Matmul" || op.kind === "Linear") for (const id of lateSums(routing, op)) routing.late.add(id);
    },
  };
}
