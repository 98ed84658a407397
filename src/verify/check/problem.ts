/** The mistakes in a Program, as numbers of its graph. */
import type { SlotMisuse } from "../order/slots.ts";
import type { ContentsProblem } from "./contents.ts";
import type { Wait } from "./deadlock.ts";
import type { Conflict } from "./races.ts";
import type { StaticProblem } from "./static-checks.ts";

/**
 * What verification finds. The commands of a problem are visits: nodes of the first run, or of the second from the node
 * count on.
 */
export type Problem =
  | ({ readonly kind: "conflict" } & Conflict)
  | ({ readonly kind: "slotMisuse" } & Omit<SlotMisuse, "kind"> & { readonly nextIs: SlotMisuse["kind"] })
  | { readonly kind: "deadlock"; readonly cycle: readonly Wait[] }
  /** `ofPairs`: only streams of pairs must run at once, which PyTorch counts on. */
  | { readonly kind: "needsConcurrency"; readonly cycle: readonly Wait[]; readonly ofPairs: boolean }
  | ContentsProblem
  | StaticProblem;

/** Whether the Program is correct in spite of it. */
export function isWarning(problem: Problem): boolean {
  return problem.kind === "needsConcurrency" && problem.ofPairs;
}
