/** Removes ops that no output depends on. */
import { withoutDeadOps } from "../../ir/fusion-data.ts";
import type { Pass } from "../pass.ts";

export const removeDeadOps: Pass<"fusion", "fusion"> = {
  name: "remove-dead-ops",
  from: "fusion",
  to: "fusion",
  run: withoutDeadOps,
};
