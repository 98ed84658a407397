/** What `--set` may name, and the values it may give: numbers and dtypes as the program declares its parameters. */
import { fail } from "../../diagnostics/diagnostic.ts";
import { expectedOfParameter, fitsParameter, type Parameters, type ParameterValue } from "../../host/program-file.ts";
import { nearest } from "../../support/wording.ts";

/** Throws `option-unknown` and `option-value`. */
export function requireKnownParameters(
  file: string,
  defaults: Parameters,
  set: ReadonlyMap<string, ParameterValue>,
): void {
  const known = Object.keys(defaults);
  const unknown = [...set.keys()].find((name) => !known.includes(name));
  if (unknown === undefined) return requireValues(file, defaults, set);
  const candidate = nearest(unknown, known);
  fail("option-unknown", `${file} has no parameter ${unknown}`, {
    place: { kind: "option", text: `--set ${unknown}=${set.get(unknown)}` },
    found: unknown,
    expected:
      known.length === 0
        ? "no --set, since the program has no parameters"
        : `one of ${known.map((name) => `${name} (default ${defaults[name]})`).join(", ")}`,
    help: candidate === undefined ? "set only parameters that the program declares" : `did you mean ${candidate}?`,
  });
}

function requireValues(file: string, defaults: Parameters, set: ReadonlyMap<string, ParameterValue>): void {
  for (const [name, value] of set) {
    const usual = defaults[name];
    if (fitsParameter(usual, value)) continue;
    fail("option-value", `parameter ${name} of ${file} is ${typeof usual === "number" ? "a number" : "a dtype"}`, {
      place: { kind: "option", text: `--set ${name}=${value}` },
      found: String(value),
      expected: expectedOfParameter(usual),
      help: `write it like --set ${name}=${usual}`,
    });
  }
}
