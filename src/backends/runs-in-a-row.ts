/** How many runs a call of `execute` makes. */
import { fail } from "../diagnostics/diagnostic.ts";
import type { ExecuteOptions } from "./backend.ts";

/** Throws `bad-option` for anything but a positive whole number, and for a trace of several runs. */
export function runsInARow({ runs = 1, trace = false }: ExecuteOptions): number {
  if (Number.isSafeInteger(runs) && runs >= 1 && (runs === 1 || !trace)) return runs;
  return fail({
    code: "bad-option",
    message: trace ? "a trace is of one run" : "runs in a row are counted",
    place: { kind: "option", text: "execute({ runs })" },
    found: String(runs),
    expected: trace ? "1 with trace: true" : "a whole number of at least 1",
    help: trace
      ? "trace a run of its own, or leave trace out"
      : "give such a number, or leave the option out for one run",
  });
}
