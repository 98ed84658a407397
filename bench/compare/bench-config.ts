/**
 * The configuration file of `braid bench`: DDLB's JSON, an object `benchmark` with DDLB's names, extended by `sizes`,
 * `devices` and `plot`. A list stands for all its values.
 *
 *     { "benchmark": { "primitive": "tp_columnwise", "m": [8192, 16384], "n": 8192, "k": 8192, "dtype": "bfloat16",
 *                      "implementations": { "braid": [{ "form": "rotated", "protocol": ["get", "put"] }] } } }
 */
import { readRegularText } from "../../src/backends/regular-file.ts";
import { type GivenOptions, optionRow } from "../../src/compile/options.ts";
import type { KindInfo } from "../../src/compile/options/kind.ts";
import { fail } from "../../src/diagnostics/diagnostic.ts";
import { isOneOf } from "../../src/support/invariant.ts";
import { jsonText, parseJson } from "../../src/support/json-document.ts";
import { suggestion, systemReason } from "../../src/support/wording.ts";
import { type BenchOptions, benchRows, csvFile, plotFile, torchDtypes, warmupKind } from "./bench-options.ts";
import { type BenchPrimitive, benchPrimitives } from "./bench-problem.ts";
import { type Alternatives, expandImplementations, type Implementation } from "./implementation.ts";

export interface BenchConfig extends BenchOptions, GivenOptions<"devices"> {
  readonly primitive?: BenchPrimitive;
}

/** Options by their names in configuration files. */
const kinds: ReadonlyMap<string, readonly [name: string, kind: KindInfo]> = new Map([
  ...(["m", "n", "k", "sizes", "model", "cut", "pass", "dtype", "validate"] as const).map(
    (name): [string, readonly [string, KindInfo]] => [name, [name, benchRows[name].kind]],
  ),
  ["num_iterations", ["iterations", benchRows.iterations.kind]],
  ["num_warmups", ["warmup", warmupKind]],
  ["output_csv", ["csv", csvFile]],
  ["plot", ["plot", plotFile]],
  ["devices", ["devices", optionRow("devices").kind]],
]);

/** Throws `file-unreadable`, `option-unknown` and `option-value`. */
export async function readBenchConfig(file: string): Promise<BenchConfig> {
  return parseBenchConfig(
    await readRegularText(file).catch((error: unknown) => unreadable(file, systemReason(error))),
    file,
  );
}

/** Throws the same as `readBenchConfig`. */
export function parseBenchConfig(text: string, file: string): BenchConfig {
  const root = objectOf(parsed(text, file), `--config ${file}`);
  const benchmark = objectOf(root["benchmark"], `--config ${file}: benchmark`);
  return Object.fromEntries(
    Object.entries(benchmark).map(([key, value]) => entryOf(key, value, `--config ${file}: benchmark.${key}`)),
  );
}

function entryOf(key: string, value: unknown, place: string): readonly [string, unknown] {
  if (key === "primitive") return ["primitive", primitiveOf(value, place)];
  if (key === "implementations") return ["impl", implementationsOf(value, place)];
  const [name, kind] = kinds.get(key) ?? unknownKey(key, place);
  return [name, checked(kind, key === "dtype" ? ownDtypes(value) : value, place)];
}

/** Accepts a single value in place of a list of one. */
function checked(kind: KindInfo, value: unknown, place: string): unknown {
  const list = [value];
  if (kind.accepts(value)) return value;
  return kind.accepts(list) ? list : bad(value, kind.expected, place);
}

function ownDtypes(value: unknown): unknown {
  return Array.isArray(value) ? value.map(ownDtype) : ownDtype(value);
}

function ownDtype(name: unknown): unknown {
  return (typeof name === "string" && torchDtypes.get(name)) || name;
}

function implementationsOf(value: unknown, place: string): readonly Implementation[] {
  return Object.entries(objectOf(value, place)).flatMap(([name, variants]) =>
    listed(variants).flatMap((variant) => {
      const options: Alternatives = Object.entries(objectOf(variant, `${place}.${name}`)).map(([option, values]) => [
        option,
        listed(values).map((each) => scalar(each, `${place}.${name}.${option}`)),
      ]);
      return expandImplementations(name, options, `${place}.${name}`);
    }),
  );
}

function listed(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [value];
}

function parsed(text: string, file: string): unknown {
  try {
    return parseJson(text);
  } catch (error) {
    return unreadable(file, error instanceof Error ? error.message : String(error));
  }
}

function objectOf(value: unknown, place: string): Readonly<Record<string, unknown>> {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return { ...value };
  return bad(value, "an object", place);
}

function scalar(value: unknown, place: string): string {
  if (typeof value === "string" || typeof value === "number" || typeof value === "boolean") return String(value);
  return bad(value, "a text, a number, true or false, or a list of them", place);
}

function primitiveOf(value: unknown, place: string): BenchPrimitive {
  const text = typeof value === "string" ? value.replaceAll("_", "-") : "";
  return isOneOf(benchPrimitives, text) ? text : bad(value, `one of ${benchPrimitives.join(", ")}`, place);
}

function bad(value: unknown, expected: string, place: string): never {
  return fail({
    code: "option-value",
    message: "a configuration has a bad value",
    place: { kind: "option", text: place },
    found: value === undefined ? "nothing" : jsonText(value),
    expected,
    help: "correct the file",
  });
}

function unknownKey(key: string, place: string): never {
  const known = ["primitive", "implementations", ...kinds.keys()];
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
