/** Checks of numbers that callers pass: whole and large enough, else a `bad-argument` that names the call. */
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
