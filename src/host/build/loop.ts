/** Loops of a HostProgramBuilder. */
import type { IterDomain } from "../../ir/api/iter-domain.ts";
import { constant, type Scalar } from "../../ir/scalar/scalar.ts";
import { append, type BuilderState, collect, type ScalarLike, toScalar } from "./state.ts";
import { nextName } from "./tensors.ts";
import { invariant } from "../../support/invariant.ts";
import type { ForLoop } from "../nodes.ts";

export type LoopIndex = ForLoop["index"];

export interface LoopSteps {
  /** 0 if not given. */
  readonly start?: ScalarLike;
  /** A whole number of at least 1; 1 if not given. */
  readonly step?: number;
}

/** `over`: the axis that the loop runs over. It is how the loop prints, names its index `streamIdx` and, without `stop`, ends it. */
export type LoopRange = LoopSteps &
  (
    | { readonly stop: ScalarLike; readonly over?: IterDomain }
    | { readonly stop?: ScalarLike; readonly over: IterDomain }
  );

export function addLoop(state: BuilderState, range: ScalarLike | LoopRange, body: (index: LoopIndex) => void): void {
  const steps: LoopRange = isRange(range) ? range : { stop: range };
  const { start = 0, step = 1, over } = steps;
  const index: LoopIndex =
    over === undefined ? { kind: "symbol", name: nextName(state) } : { kind: "named", name: "streamIdx" };
  append(state, {
    kind: "ForLoop",
    iterDomain: over?.data() ?? null,
    index,
    start: toScalar(start),
    stop: stopOf(steps),
    step: constant(step),
    body: collect(state, () => {
      body(index);
    }),
  });
}

/** The index stays below it. */
function stopOf({ stop, over }: LoopRange): Scalar {
  if (stop !== undefined) return toScalar(stop);
  invariant(over !== undefined, "a loop has a stop or an axis");
  return over.extent;
}

function isRange(range: ScalarLike | LoopRange): range is LoopRange {
  return typeof range === "object" && !isScalar(range);
}

function isScalar(value: Scalar | LoopRange): value is Scalar {
  return "kind" in value;
}
