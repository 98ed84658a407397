/** Positions of a dynamicUpdate, which only a run knows. */
import { fail } from "../diagnostics/diagnostic.ts";

/** Throws `position-past-end` for an index that is not below the extent of its axis. */
export function requireBelow(index: number | bigint, extent: number): void {
  if (index < extent) return;
  fail({
    code: "position-past-end",
    message: "an update goes past the end of its axis",
    place: { kind: "call", text: "dynamicUpdate" },
    found: `an element for position ${index} of ${extent}`,
    expected: `positions below ${extent}; negative ones are not written`,
    help: "stop before the cache is full, or make its axis longer",
  });
}
