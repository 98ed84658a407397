/** What `--set` may name: the parameters that a program declares. */
import { fail } from "../../diagnostics/diagnostic.ts";
import type { ProgramFile } from "../../host/program-file.ts";
import { nearest } from "../../support/nearest.ts";

/** Throws `option-unknown`. */
export function requireKnownParameters(
  file: string,
  defaults: ProgramFile["defaults"],
  set: ReadonlyMap<string, number>,
): void {
  const known = Object.keys(defaults);
  const unknown = [...set.keys()].find((name) => !known.includes(name));
  if (unknown === undefined) return;
  const candidate = nearest(unknown, known);
  fail({
    code: "option-unknown",
    message: `${file} has no parameter ${unknown}`,
    place: { kind: "option", text: `--set ${unknown}=${set.get(unknown)}` },
    found: unknown,
    expected:
      known.length === 0
        ? "no --set, since the program has no parameters"
        : `one of ${known.map((name) => `${name} (default ${defaults[name]})`).join(", ")}`,
    help: candidate === undefined ? "set only parameters that the program declares" : `did you mean ${candidate}?`,
  });
}
