/**
 * The problems that verification finds, in numbers of the graph. One union, so that each kind has its row wherever
 * problems become findings.
 */
import type { ContentsProblem } from "./contents.ts";
import type { Wait } from "./deadlock.ts";
import type { Conflict } from "./shadow.ts";
import type { SlotMisuse } from "../order/slots.ts";
import type { StaticProblem } from "./static-checks.ts";

/** The commands of a problem are visits: nodes of the first run, or of the second from the node count on. */
export type Problem =
  | ({ readonly kind: "conflict" } & Conflict)
  | ({ readonly kind: "slotMisuse" } & Omit<SlotMisuse, "kind"> & { readonly nextIs: SlotMisuse["kind"] })
  | { readonly kind: "deadlock"; readonly cycle: readonly Wait[] }
  | { readonly kind: "needsConcurrency"; readonly cycle: readonly Wait[] }
  | ContentsProblem
  | StaticProblem;
