/**
 * Parsers of option values for commander. Each throws a diagnostic that names the option, the value and what was
 * expected, so that a bad value never reaches a command.
 */
import { fail } from "../../diagnostics/diagnostic.ts";

type Parser<T> = (text: string, previous: T) => T;

/** A decimal whole number of at least `least`. */
export function wholeNumber(flag: string, least: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (/^[+-]?\d+$/.test(text.trim()) && Number.isSafeInteger(value) && value >= least) return value;
    return badValue(flag, text, `a whole number of at least ${least}`, `pass a number, for example ${flag} ${least}`);
  };
}

/** A number greater than 0, such as `0.5`. */
export function positiveNumber(flag: string, example: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (text.trim() !== "" && Number.isFinite(value) && value > 0) return value;
    return badValue(flag, text, "a number greater than 0", `pass a number, for example ${flag} ${example}`);
  };
}

/** Whole numbers of at least 1 with hyphens between them, such as `1-3-4`. */
export function groupSizes(flag: string): (text: string) => readonly number[] {
  return (text) => {
    const values = text.split("-").map(Number);
    if (/^\d+(-\d+)*$/.test(text) && values.every((value) => Number.isSafeInteger(value) && value >= 1)) return values;
    return badValue(flag, text, "whole numbers of at least 1 with - between them", `write them like ${flag} 1-3-4`);
  };
}

/** One of `choices`. */
export function choice<T extends string>(flag: string, choices: readonly T[]): (text: string) => T {
  return (text) => {
    const found = choices.find((candidate) => candidate === text);
    return found ?? badValue(flag, text, `one of ${choices.join(", ")}`, `pass one of these values to ${flag}`);
  };
}

/** What the values of an assignment option may be. */
export interface AssignedValues {
  readonly pattern: RegExp;
  readonly least: number;
  readonly expected: string;
}

export const sizes: AssignedValues = { pattern: /^\d+$/, least: 1, expected: "a whole number of at least 1" };
export const numbers: AssignedValues = {
  pattern: /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i,
  least: -Infinity,
  expected: "a number",
};

/** Collects `NAME=VALUE` of a repeated option; no name comes twice. */
export function assignment(
  flag: string,
  example: string,
  { pattern, least, expected }: AssignedValues,
): Parser<ReadonlyMap<string, number>> {
  return (text, previous) => {
    const [, name, digits = ""] = /^\s*([A-Za-z_$][\w$]*)\s*=\s*(\S+)\s*$/.exec(text) ?? [];
    const value = Number(digits);
    if (name === undefined || !pattern.test(digits) || !Number.isFinite(value) || value < least) {
      return badValue(flag, text, `NAME=VALUE, where VALUE is ${expected}`, `write it like ${flag} ${example}`);
    }
    const known = previous.get(name);
    if (known !== undefined) {
      const help = `remove one of the two ${flag} ${name}=...`;
      return badValue(flag, text, `each name at most once; ${name}=${known} came before`, help);
    }
    return new Map([...previous, [name, value]]);
  };
}

/** Throws `option-value`. */
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
