/** Reads a machine profile from JSON. `profile-invalid` names the first bad, missing or unknown entry and its place. */
import { type InferIssue, safeParse } from "valibot";
import { fail } from "../diagnostics/diagnostic.ts";
import { parseJson } from "../support/json-document.ts";
import { jsonText } from "../support/json-text.ts";
import { suggestion } from "../support/nearest.ts";
import type { MachineProfile } from "./machine-profile.ts";
import { machineProfile } from "./profile-schema.ts";

/** `source`: the origin of the text, such as a file. Throws `profile-invalid`. */
export function parseProfile(text: string, source: string): MachineProfile {
  const { success, output, issues } = safeParse(machineProfile, parsed(text, source), { abortEarly: true });
  return success ? output : invalid(issues[0], source);
}

type Issue = InferIssue<typeof machineProfile>;

function invalid({ type, expected, path, input, message }: Issue, source: string): never {
  const keys = (path ?? []).map((item): unknown => item.key);
  const steps = keys.map((key) => (typeof key === "number" ? `[${key}]` : `.${String(key)}`));
  const place = { kind: "option", text: `profile${steps.join("")} in ${source}` } as const;
  if (type === "strict_object" && expected === "never") {
    const name = String(keys.at(-1));
    return fail({
      code: "profile-invalid",
      message: `a machine profile has an unknown entry ${name}`,
      place,
      found: name,
      expected: `one of ${message}`,
      help: suggestion(name, message.split(", "), "leave it out"),
    });
  }
  const value: unknown = path === undefined ? input : path.at(-1)?.value;
  return fail({
    code: "profile-invalid",
    message: "a machine profile has a value that `braid calibrate` does not write",
    place,
    found: value === undefined ? "nothing" : jsonText(value),
    expected: message,
    help: "measure the machine again with braid calibrate, or correct the value",
  });
}

function parsed(text: string, source: string): unknown {
  try {
    return parseJson(text);
  } catch (error) {
    return fail({
      code: "profile-invalid",
      message: "a machine profile is not JSON",
      place: { kind: "option", text: source },
      found: error instanceof Error ? error.message : String(error),
      expected: "JSON that braid calibrate wrote",
      help: "measure the machine again with braid calibrate",
    });
  }
}
