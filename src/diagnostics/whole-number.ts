/**
 * Checks that numbers from callers are whole and large enough. Otherwise throws `bad-argument` with the call as place.
 */
import { fail } from "./diagnostic.ts";

export function requireWholeNumber(call: string, value: number, least: number): void {
  if (Number.isSafeInteger(value) && value >= least) return;
  fail({
    code: "bad-argument",
    message: "an argument is not a whole number in range",
    place: { kind: "call", text: call },
    found: String(value),
    expected: `a whole number of at least ${least}`,
    help: `pass ${least} or more`,
  });
}
