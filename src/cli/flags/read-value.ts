/** Reads the values of flags from text. */
import type { KindInfo, OptionKind } from "../../compile/options/kind.ts";
import { fail } from "../../diagnostics/diagnostic.ts";

/** Of a flag that may be repeated, if its kind says so. Throws `option-value`. */
export function parserOf(flag: string, kind: KindInfo): (text: string) => unknown {
  const earlier: string[] = [];
  return (text) => {
    const value = readValue(flag, kind, text);
    if (kind.separator === null) return value;
    const all = kind.read([...earlier, text].join(kind.separator));
    if (all === undefined) twice(flag, text, earlier);
    earlier.push(text);
    return all;
  };
}

export function twice(flag: string, text: string, earlier: readonly string[]): never {
  const expected = `each name at most once; ${earlier.join(" and ")} came before`;
  return badValue(flag, text, expected, `remove one of the two ${flag}`);
}

/** Parses a flag's text. Throws `option-value`. */
export function readValue<T>(flag: string, kind: ReadKind<T>, text: string): T {
  const part = badPart(kind, text);
  const written = kind.corrected?.(part) ?? kind.example;
  const between = kind.alone === undefined ? " " : "=";
  const help = `write it like ${flag}${between}${written}`;
  return kind.read(text) ?? badValue(flag, part, kind.expected, help);
}

type ReadKind<T> = Pick<OptionKind<T>, "read" | "expected" | "example" | "corrected" | "separator" | "alone">;

/** The first bad value of a list. */
function badPart({ read, separator }: ReadKind<unknown>, text: string): string {
  const parts = separator === null ? [] : text.split(separator);
  return parts.find((part) => read(part) === undefined) ?? text;
}

export function badValue(flag: string, text: string, expected: string, help: string): never {
  return fail({
    code: "option-value",
    message: `option ${flag} has a bad value`,
    place: { kind: "option", text: flag },
    found: text === "" ? "nothing" : text,
    expected,
    help,
  });
}
