/**
 * Kinds of option values. A kind checks a value of the API, reads the same value from text (flags, `bench --impl`) and
 * prints it as text.
 */
import * as v from "valibot";
import { type DType, dtypes, dtypesBy, isDType } from "../../numerics/dtype.ts";
import { keysOf } from "../../support/invariant.ts";
import type { ChoiceKind, GivenGradients, GivenHalf, OptionKind } from "./kind.ts";

interface KindParts<Value> extends Pick<OptionKind<Value>, "expected" | "argument" | "example" | "corrected"> {
  readonly schema: v.GenericSchema<Value>;
  /** The text itself if omitted. */
  readonly parse?: (text: string) => unknown;
  readonly print?: (value: Value) => string;
  readonly separator?: string;
}

/** A kind whose texts are parsed and then checked like values of the API. */
export function kindOf<Value>(parts: KindParts<Value>): OptionKind<Value> {
  const { schema, parse, print = String, separator, ...kind } = parts;
  const accepts = (value: unknown): value is Value => v.is(schema, value);
  return {
    ...kind,
    accepts,
    read: (text) => {
      const value = parse === undefined ? text : parse(text);
      return accepts(value) ? value : undefined;
    },
    print,
    separator: separator ?? null,
  };
}

const toggleWords: ReadonlyMap<string, boolean> = new Map([
  ["true", true],
  ["false", false],
]);

export const toggle = kindOf<boolean>({
  schema: v.boolean(),
  expected: "true or false",
  argument: null,
  example: "true",
  parse: (text) => toggleWords.get(text),
});

export function oneOf<const T extends string>(choices: readonly [T, ...T[]]): ChoiceKind<T> {
  const [example] = choices;
  const expected = `one of ${choices.join(", ")}`;
  return { ...kindOf<T>({ schema: v.picklist(choices), expected, argument: choices.join("|"), example }), choices };
}

/** A count, an extent or a group size in the API. */
export const positiveWhole = v.pipe(v.number(), v.safeInteger(), v.minValue(1));

/** A decimal whole number from `least` to `most`. */
export function wholeNumber(least: number, example: number, argument = "n", most = Infinity): OptionKind<number> {
  return kindOf({
    schema: v.pipe(v.number(), v.safeInteger(), v.minValue(least), v.maxValue(most)),
    expected: `a whole number of at least ${least}${most === Infinity ? "" : ` and at most ${most}`}`,
    argument,
    example: String(example),
    parse: (text) => (/^[+-]?\d+$/.test(text.trim()) ? Number(text) : undefined),
  });
}

/** Timers of Node take no more; they fire at once instead. */
const longest = 2e6;

/** A duration in seconds, which may be a fraction. */
export const seconds = kindOf<number>({
  schema: v.pipe(v.number(), v.gtValue(0), v.maxValue(longest)),
  expected: `a number greater than 0, at most ${longest}`,
  argument: "seconds",
  example: "30",
  parse: (text) => (text.trim() === "" ? undefined : Number(text)),
});

/** A text that the command itself checks: a file, a pass. */
export function text(argument: string, example: string): OptionKind<string> {
  return kindOf({ schema: v.pipe(v.string(), v.nonEmpty()), expected: "a text", argument, example });
}

export const gradientsOf = kindOf<GivenGradients>({
  schema: v.object({
    cotangent: v.pipe(v.string(), v.regex(/^[^=]+$/)),
    wrt: v.nullable(v.pipe(v.array(v.pipe(v.string(), v.nonEmpty())), v.minLength(1))),
  }),
  expected: "a name, and = with the names of inputs to have gradients of these alone",
  argument: "name=input,..",
  example: "dy",
  parse: (given) => {
    const [, cotangent, wrt] = /^([^=]*)(?:=(.*))?$/s.exec(given) ?? [];
    return { cotangent, wrt: wrt?.split(",") ?? null };
  },
  print: ({ cotangent, wrt }) => (wrt === null ? cotangent : `${cotangent}=${wrt.join(",")}`),
});

export const halfOf = kindOf<GivenHalf>({
  schema: v.object({
    pass: v.picklist(["forward", "backward"]),
    save: v.union([v.picklist(["all", "minimal"]), v.pipe(v.number(), v.safeInteger(), v.minValue(0))]),
  }),
  expected: "forward or backward, and what is saved after a colon: all, minimal or a number of bytes",
  argument: "pass:saved",
  example: "forward:minimal",
  parse: (given) => {
    const [pass, save = "all", ...others] = given.split(":");
    return others.length > 0 ? undefined : { pass, save: /^\d+$/.test(save) ? Number(save) : save };
  },
  print: ({ pass, save }) => `${pass}:${save}`,
});

/** Several values with commas between them. */
export function listOf<T>(kind: OptionKind<T>, argument: string): OptionKind<readonly T[]> {
  return kindOf<readonly T[]>({
    schema: v.array(v.custom<T>(kind.accepts)),
    expected: `${kind.expected}; several are separated by commas`,
    argument,
    example: kind.example,
    parse: (text) => text.split(",").map((each) => kind.read(each.trim())),
    print: (values) => values.map(kind.print).join(","),
    separator: ",",
  });
}

/** The values that a flag assigns to names. */
interface AssignedKind<T> {
  readonly schema: v.GenericSchema<T>;
  readonly expected: string;
  /** The value of a text; other values than those of `schema` are refused. */
  readonly parse: (text: string) => unknown;
  /** What the text of one assignment was likely to mean; undefined if nobody knows. */
  readonly corrected?: (text: string) => string | undefined;
}

export const sizeValues: AssignedKind<number> = {
  schema: positiveWhole,
  expected: "a whole number of at least 1",
  parse: decimal,
};
export const wholeValues: AssignedKind<number> = {
  schema: v.pipe(v.number(), v.safeInteger()),
  expected: "a whole number",
  parse: decimal,
};
export const parameterValues: AssignedKind<number | DType> = {
  schema: v.union([v.pipe(v.number(), v.finite()), v.picklist(keysOf(dtypes))]),
  expected: `a number, or a dtype: ${keysOf(dtypes).join(", ")}`,
  parse: (text) => (isDType(text) ? text : decimal(text)),
  corrected: correctedParameter,
};

/** A dtype by the name that PyTorch or StableHLO has for it, or one with fp. */
function spelled(text: string): DType | undefined {
  return dtypesBy("torch").get(text.replace(/^fp/u, "float")) ?? dtypesBy("stablehlo").get(text);
}

/** Of a name alone, of a dtype by another name, or of a parameter that is called a type. */
function correctedParameter(text: string): string | undefined {
  if (/^[A-Za-z_$][\w$]*$/u.test(text)) return `${text}=${/type/iu.test(text) ? "half" : 32}`;
  const [, name = "", value = ""] = /^\s*([A-Za-z_$][\w$]*)\s*=\s*(\w+)\s*$/u.exec(text) ?? [];
  const dtype = spelled(value.toLowerCase()) ?? (/type/iu.test(name) ? "half" : undefined);
  return dtype === undefined ? undefined : `${name}=${dtype}`;
}

/** A change of a machine or a run, which `explain` reads by its name. */
export const changeValues: AssignedKind<string> = {
  schema: v.pipe(v.string(), v.regex(/^\d+(\.\d+)?(x|GB\/s)?$/u)),
  expected: "a factor such as 1.2x, a rate such as 900GB/s, or a number",
  parse: (text) => text,
};

/** `NAME=VALUE`, several separated by commas. */
export function assignments<T>(values: AssignedKind<T>, example: string): OptionKind<ReadonlyMap<string, T>> {
  return kindOf<ReadonlyMap<string, T>>({
    schema: v.map(v.string(), values.schema),
    expected: `NAME=VALUE, where VALUE is ${values.expected}`,
    argument: "name=value",
    example,
    parse: (text) => assigned(text, values),
    print: (given) => [...given].map((entry) => entry.join("=")).join(","),
    separator: ",",
    ...(values.corrected === undefined ? {} : { corrected: values.corrected }),
  });
}

/** Undefined if a part does not assign a value to a name, or two parts assign one name. */
function assigned<T>(given: string, { parse }: AssignedKind<T>): ReadonlyMap<string, unknown> | undefined {
  const pairs = given.split(",").map((part): readonly [string, unknown] | null => {
    const [, name, text] = /^\s*([A-Za-z_$][\w$]*)\s*=\s*(\S+)\s*$/.exec(part) ?? [];
    const value = text === undefined ? undefined : parse(text);
    return name === undefined || value === undefined ? null : [name, value];
  });
  const values = new Map(pairs.filter((pair) => pair !== null));
  return values.size === pairs.length ? values : undefined;
}

function decimal(text: string): number | undefined {
  return /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text) ? Number(text) : undefined;
}
