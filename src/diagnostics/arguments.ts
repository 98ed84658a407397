/** Checks of callers' arguments, which throw `bad-argument`. */
import { isOneOf } from "../support/invariant.ts";
import { fail, type Place } from "./diagnostic.ts";

/** A whole number that is large enough. */
export function requireWholeNumber(call: string, value: number, least: number, most = Infinity): void {
  if (Number.isSafeInteger(value) && value >= least && value <= most) return;
  fail("bad-argument", "an argument is not a whole number in range", {
    place: { kind: "call", text: call },
    found: String(value),
    expected: `a whole number of at least ${least}${most === Infinity ? "" : ` and at most ${most}`}`,
    help: value > most ? `pass ${most} or less` : `pass ${least} or more`,
  });
}

/** Guards calls from JavaScript. `what` is as in "a dtype". */
export function requireOneOf<T extends string>(
  names: readonly T[],
  name: unknown,
  what: string,
  place: Place,
): asserts name is T {
  if (typeof name === "string" && isOneOf(names, name)) return;
  fail("bad-argument", `${what} does not exist`, {
    // A Call of src/ir holds more than the place.
    place: place.kind === "call" ? { kind: "call", text: place.text } : place,
    found: String(name),
    expected: names.join(", "),
    help: "use one of these names",
  });
}
