/**
 * The configuration file of `braid bench`: DDLB's JSON, an object `benchmark` with DDLB's names and Braid's additions.
 * A list stands for all its values.
 *
 *     { "benchmark": { "primitive": "tp_columnwise", "m": [8192, 16384], "n": 8192, "k": 8192, "dtype": "bfloat16",
 *                      "implementations": { "braid": [{ "form": "rotated", "protocol": ["get", "put"] }] } } }
 */
import { readFile } from "node:fs/promises";
import { fail } from "../diagnostics/diagnostic.ts";
import type { DType } from "../numerics/dtype.ts";
import { isOneOf } from "../support/is-one-of.ts";
import { keysOf } from "../support/keys-of.ts";
import { suggestion } from "../support/nearest.ts";
import { systemReason } from "../support/system-reason.ts";
import { type Alternatives, expandImplementations, type Implementation } from "./implementation.ts";
import { type Primitive, primitives } from "./primitives.ts";

export interface Size {
  readonly m: number;
  readonly n: number;
  readonly k: number;
}

/** The settings of a file; each may come from a flag instead. */
export interface BenchConfig {
  readonly primitive?: Primitive;
  readonly m?: readonly number[];
  readonly n?: readonly number[];
  readonly k?: readonly number[];
  readonly sizes?: readonly Size[];
  readonly dtypes?: readonly DType[];
  readonly implementations?: readonly Implementation[];
  readonly iterations?: number;
  readonly warmup?: number;
  readonly validate?: boolean;
  readonly csv?: string;
  readonly plot?: string;
  readonly devices?: number;
}

/** dtypes that are timed, by Braid's names and PyTorch's. */
export const dtypeNames: Readonly<Record<string, DType>> = {
  bfloat16: "bfloat16",
  half: "half",
  float16: "half",
  float: "float",
  float32: "float",
  double: "double",
  float64: "double",
};

type Where = (key: string) => string;
type Entry = (value: unknown, key: string, where: Where) => BenchConfig;

const entries: { readonly [key: string]: Entry } = {
  primitive: (value, key, where) => ({ primitive: primitiveOf(value, where(key)) }),
  m: (value, key, where) => ({ m: list(value, (each) => count(each, 1, where(key))) }),
  n: (value, key, where) => ({ n: list(value, (each) => count(each, 1, where(key))) }),
  k: (value, key, where) => ({ k: list(value, (each) => count(each, 1, where(key))) }),
  sizes: (value, key, where) => ({ sizes: list(value, (each) => sizeOf(each, where(key))) }),
  dtype: (value, key, where) => ({ dtypes: list(value, (each) => dtypeOf(each, where(key))) }),
  validate: (value, key, where) => ({ validate: flag(value, where(key)) }),
  num_iterations: (value, key, where) => ({ iterations: count(value, 1, where(key)) }),
  num_warmups: (value, key, where) => ({ warmup: count(value, 0, where(key)) }),
  implementations: (value, key, where) => ({ implementations: implementationsOf(value, where(key)) }),
  output_csv: (value, key, where) => ({ csv: name(value, where(key)) }),
  plot: (value, key, where) => ({ plot: name(value, where(key)) }),
  devices: (value, key, where) => ({ devices: count(value, 2, where(key)) }),
};

/** Throws `file-unreadable`, `option-unknown` and `option-value`. */
export async function readBenchConfig(file: string): Promise<BenchConfig> {
  const text = await readFile(file, "utf8").catch((error: unknown) => unreadable(file, systemReason(error)));
  const root = objectOf(parsed(text, file), `--config ${file}`);
  const where: Where = (key) => `--config ${file}: benchmark.${key}`;
  const benchmark = objectOf(root["benchmark"], `--config ${file}: benchmark`);
  const parts = Object.entries(benchmark).map(([key, value]) => {
    const entry = Object.hasOwn(entries, key) ? entries[key] : undefined;
    return entry === undefined ? unknownKey(key, where(key)) : entry(value, key, where);
  });
  return parts.reduce<BenchConfig>((all, part) => ({ ...all, ...part }), {});
}

function implementationsOf(value: unknown, place: string): readonly Implementation[] {
  return Object.entries(objectOf(value, place)).flatMap(([name, variants]) =>
    list(variants, (variant) => {
      const options: Alternatives = Object.entries(objectOf(variant, `${place}.${name}`)).map(([option, values]) => [
        option,
        list(values, (each) => scalar(each, `${place}.${name}.${option}`)),
      ]);
      return expandImplementations(name, options, `${place}.${name}`);
    }).flat(),
  );
}

function parsed(text: string, file: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    return unreadable(file, error instanceof Error ? error.message : String(error));
  }
}

function list<T>(value: unknown, read: (each: unknown) => T): readonly T[] {
  return Array.isArray(value) ? value.map((each: unknown) => read(each)) : [read(value)];
}

function objectOf(value: unknown, place: string): Readonly<Record<string, unknown>> {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return { ...value };
  return bad(value, "an object", place);
}

function sizeOf(value: unknown, place: string): Size {
  const { m, n, k } = objectOf(value, place);
  return { m: count(m, 1, `${place}.m`), n: count(n, 1, `${place}.n`), k: count(k, 1, `${place}.k`) };
}

function count(value: unknown, least: number, place: string): number {
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= least) return value;
  return bad(value, `a whole number of at least ${least}`, place);
}

function flag(value: unknown, place: string): boolean {
  return typeof value === "boolean" ? value : bad(value, "true or false", place);
}

function name(value: unknown, place: string): string {
  return typeof value === "string" && value !== "" ? value : bad(value, "the name of a file", place);
}

function scalar(value: unknown, place: string): string {
  if (typeof value === "string" || typeof value === "number" || typeof value === "boolean") return String(value);
  return bad(value, "a text, a number, true or false, or a list of such", place);
}

function primitiveOf(value: unknown, place: string): Primitive {
  const text = typeof value === "string" ? value.replaceAll("_", "-") : "";
  return isOneOf(primitives, text) ? text : bad(value, `one of ${primitives.join(", ")}`, place);
}

function dtypeOf(value: unknown, place: string): DType {
  const dtype = typeof value === "string" && Object.hasOwn(dtypeNames, value) ? dtypeNames[value] : undefined;
  return dtype ?? bad(value, `one of ${keysOf(dtypeNames).join(", ")}`, place);
}

function bad(value: unknown, expected: string, place: string): never {
  return fail({
    code: "option-value",
    message: "a configuration has a bad value",
    place: { kind: "option", text: place },
    found: value === undefined ? "nothing" : JSON.stringify(value),
    expected,
    help: "correct the file",
  });
}

function unknownKey(key: string, place: string): never {
  const known = keysOf(entries);
  return fail({
    code: "option-unknown",
    message: `a configuration has no entry ${key}`,
    place: { kind: "option", text: place },
    found: key,
    expected: `one of ${known.join(", ")}`,
    help: suggestion(key, known, "leave it out"),
  });
}

function unreadable(file: string, found: string): never {
  return fail({
    code: "file-unreadable",
    message: "the configuration cannot be read",
    place: { kind: "option", text: `--config ${file}` },
    found,
    expected: 'a JSON file: { "benchmark": { ... } }',
    help: "correct the path, or the file",
  });
}
