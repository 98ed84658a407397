/** Checks options by the schema and fills in their defaults. */
import { type Diagnostic, fail } from "../../diagnostics/diagnostic.ts";
import { isOneOf } from "../../support/invariant.ts";
import { suggestion } from "../../support/wording.ts";
import type { OptionKind } from "./kind.ts";
import {
  flagOf,
  type GivenOptions,
  type LoweringName,
  type OptionName,
  type OptionValue,
  type Options,
  options,
  optionRow,
  scheduleNames,
} from "../options.ts";

/**
 * The options with these names, given or default. Throws `bad-option` for a bad value and `option-unknown` for any
 * other name.
 */
export function resolveOptions<K extends OptionName>(names: readonly K[], given: GivenOptions<K>): Options<K> {
  const values = Object.fromEntries([
    ...names.map((name): [string, unknown] => [name, optionRow(name).default]),
    ...givenEntries(given),
  ]);
  requireResolved(names, values);
  return values;
}

/** The same check without defaults. `others`: names that the caller also takes and checks itself. */
export function requireOptions<K extends OptionName>(
  names: readonly K[],
  given: object,
  others: readonly string[] = [],
): asserts given is GivenOptions<K> {
  requireResolved(names, given, others);
}

function requireResolved<K extends OptionName>(
  names: readonly K[],
  given: object,
  others: readonly string[] = [],
): asserts given is Options<K> {
  for (const [name, value] of givenEntries(given)) {
    const known = names.find((each) => each === name);
    if (known !== undefined) {
      if (!optionRow(known).kind.accepts(value)) badValue(known, value);
    } else if (!others.includes(name)) unknownOption(name, [...others, ...names]);
  }
}

/** The value as text for flags and `bench --impl`. */
export function printOption<K extends OptionName>(name: K, value: OptionValue<K>): string {
  return rows[name].kind.print(value);
}

const rows: { readonly [K in OptionName]: { readonly kind: OptionKind<OptionValue<K>> } } = options;

/** Only these options of `from`. */
export function pickOptions<K extends OptionName>(names: readonly K[], from: GivenOptions<K>): GivenOptions<K> {
  const picked = Object.fromEntries(givenEntries(from).filter(([name]) => names.some((each) => each === name)));
  requireOptions(names, picked);
  return picked;
}

/** What `attention` is with `--on cuda` if it is not given. */
const attentionOnGpus = "auto";

/** The lowering options for a back end. The CPU has a kernel for every attention. */
export function loweringOn(
  given: GivenOptions<LoweringName>,
  on: OptionValue<"on"> | undefined,
): GivenOptions<LoweringName> {
  if (on === "cuda") return { attention: attentionOnGpus, ...given };
  return given.attention === "auto" ? { ...given, attention: "fused" } : given;
}

/** Callers without type checks may pass undefined for an option that they do not give. */
function givenEntries(given: object): readonly (readonly [string, unknown])[] {
  return Object.entries(given).filter(([, value]) => value !== undefined);
}

function badValue(name: OptionName, value: unknown): never {
  const row = optionRow(name);
  return fail("bad-option", `option ${name} has a bad value`, {
    place: optionPlace(name),
    found: JSON.stringify(value) ?? String(value),
    expected: row.kind.expected,
    help: `pass a value such as ${row.kind.example}, or leave the option out`,
  });
}

/** The option's names in the API and on the command line. */
export function optionPlace(name: OptionName): NonNullable<Diagnostic["place"]> {
  return { kind: "option", text: optionText(name) };
}

export function optionText(name: OptionName): string {
  const { within, commands } = optionRow(name);
  return commands.length === 0 && within === undefined ? name : `${name} (${flagOf(name)})`;
}

function unknownOption(name: string, known: readonly string[]): never {
  if (known.includes("schedule") && isOneOf(scheduleNames, name)) misplaced(name);
  return fail("option-unknown", `there is no option ${name}`, {
    place: { kind: "option", text: name },
    found: name,
    expected: `one of ${known.join(", ")}`,
    help: suggestion(name, known, "leave it out"),
  });
}

/** The API takes schedule options as one object, `schedule`. */
function misplaced(name: string): never {
  const place = `schedule: { ${name} }`;
  return fail("option-unknown", `option ${name} is part of schedule`, {
    place: { kind: "option", text: name },
    found: name,
    expected: place,
    help: `write ${place}`,
  });
}
