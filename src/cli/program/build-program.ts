/**
 * Loads a program file, a dump or a model file and builds its program for the given devices and parameters. Diagnostics
 * name the option that gave a bad value.
 */
import { annotationWarnings, placedWithWarnings, unplacedWarnings } from "../../compile/annotation-warnings.ts";
import { lowerAll, requireMeshDevices } from "../../compile/lower-all.ts";
import { lowerStreams } from "../../compile/lower.ts";
import type { GivenOptions, LoweringName } from "../../compile/options.ts";
import { revived } from "../../compile/program/revive.ts";
import { type Diagnostic, DiagnosticError, fail, renderDiagnostic } from "../../diagnostics/diagnostic.ts";
import type { HostProgram } from "../../host/nodes.ts";
import { walk } from "../../host/traverse.ts";
import { validateHostProgram } from "../../host/validate/validate.ts";
import { withConstants, type Constants } from "../../ir/tensor-names.ts";
import { suggestion } from "../../support/wording.ts";
import type { ApartBuilding } from "./apart/build-apart.ts";
import { type BuildFlags, type BuiltProgram, type FindLayers, fusionSource } from "./built-program.ts";
import { isDumpFile, isModelFile } from "./dump-file.ts";
import { readFile } from "node:fs/promises";
import type { Tensor } from "../../ir/domain.ts";
import { siteText } from "../../support/call-site.ts";

/**
 * `building`: of a program file, or of a dump's reference. Host programs that have Stream axes left are lowered with
 * `lowering`. `findLayers`: of many equal layers, only few are placed. Throws what `buildHere`, `loadDump`, `loadModel`
 * and `lowerStreams` throw, `program-threw`, `option-unknown` and `mesh-too-large`.
 */
export async function buildProgram(
  file: string,
  flags: BuildFlags,
  lowering: GivenOptions<LoweringName>,
  building: ApartBuilding | null,
  findLayers: FindLayers = () => null,
): Promise<BuiltProgram> {
  const built = await builtFrom(file, flags, lowering, building, findLayers);
  const hosts = "data" in built.source ? [] : built.source;
  requireKnownScalars(file, hosts, flags.scalar);
  return built;
}

async function builtFrom(
  file: string,
  flags: BuildFlags,
  lowering: GivenOptions<LoweringName>,
  building: ApartBuilding | null,
  findLayers: FindLayers,
): Promise<BuiltProgram> {
  if (isModelFile(file)) {
    const { programOfModel } = await import("./program-of-model.ts");
    return programOfModel(file, flags, lowering, findLayers);
  }
  if (building !== null && !isDumpFile(file)) return fromProgram(file, building, flags, lowering, findLayers);
  const { programOfDump } = await import("./program-of-dump.ts");
  return programOfDump(file, flags, building);
}

/** Throws `program-invalid` for host programs that are not of the builder's form, and their findings. */
function requireHosts(file: string, hosts: readonly HostProgram[]): void {
  for (const host of new Set(hosts)) {
    let findings: readonly Diagnostic[] = [];
    try {
      findings = validateHostProgram(host);
    } catch (error) {
      // A program that the builder made was validated there: only one written by hand has another form.
      fail("program-invalid", "the program returns a HostProgram that was not made by a builder", {
        place: { kind: "file", path: file },
        found: error instanceof Error ? (error.message.split("\n")[0] ?? "") : String(error),
        expected: "a HostProgram as HostProgramBuilder or parse makes it",
        help: "build the host program with HostProgramBuilder",
      });
    }
    if (findings.length > 0) throw new DiagnosticError(findings);
  }
}

async function fromProgram(
  file: string,
  building: ApartBuilding,
  { devices, set, warn = true }: BuildFlags,
  lowering: GivenOptions<LoweringName>,
  findLayers: FindLayers,
): Promise<BuiltProgram> {
  const { source, reference, defaults } = revived(await building.result());
  const used = {
    lineOf: null,
    text: null,
    containers: null,
    model: null,
    layers: null,
    params: { ...defaults, ...Object.fromEntries(set) },
  };
  if ("kind" in source) {
    requireMeshDevices(source.tensors, devices);
    const fusion = fusionSource(withConstants(source, await constantsOf(source.tensors)));
    const unplaced = unplacedWarnings(source, devices);
    if (warn) printWarnings(unplaced, building);
    const layers = findLayers(fusion.data());
    const few = layers === null ? null : placedWithWarnings(layers.more, lowering);
    // Equal layers have the same warnings, and the same symbolic extents.
    if (few?.warnings.length === 0) {
      const { tensors } = few.placed;
      return {
        source: fusion,
        signature: { ...source, tensors },
        reference: fusion,
        ...used,
        layers,
        warnings: unplaced,
      };
    }
    const { placed, warnings } = placedWithWarnings(fusion, lowering);
    if (warn) printWarnings(warnings, building);
    return {
      source: fusion,
      signature: placed,
      reference: fusion,
      ...used,
      layers,
      warnings: [...unplaced, ...warnings],
    };
  }
  requireHosts(file, source);
  const lowered = source.map((host, rank) => lowerStreams(host, { ...lowering, rank }));
  const { signature } = lowerAll(lowered, { devices });
  requireMeshDevices(signature.tensors, devices);
  return { source: lowered, signature, reference: reference === null ? null : fusionSource(reference), ...used };
}

/** Prints the warnings of layers that are lowered otherwise than the few that were placed, if these have none. */
export function warnOfAllLayers(
  { source, layers }: BuiltProgram,
  lowering: GivenOptions<LoweringName>,
  building: ApartBuilding | null,
): void {
  if (building === null || layers === null || !("data" in source)) return;
  if (annotationWarnings(layers.more, lowering).length > 0) return;
  printWarnings(annotationWarnings(source, lowering), building);
}

export function printWarnings(warnings: readonly Diagnostic[], building: ApartBuilding): void {
  for (const warning of warnings) building.print(`${renderDiagnostic(warning)}\n`);
}

// What `--scalar` may name: the scalars that host programs use and do not define.

/** Throws `option-unknown`. */
function requireKnownScalars(file: string, hosts: readonly HostProgram[], given: ReadonlyMap<string, number>): void {
  if (given.size === 0) return;
  const open = [...new Set(hosts.flatMap(openScalars))];
  const unknown = [...given.keys()].find((name) => !open.includes(name));
  if (unknown === undefined) return;
  fail("option-unknown", `${file} has no open scalar ${unknown}`, {
    place: { kind: "option", text: `--scalar ${unknown}=${given.get(unknown)}` },
    found: unknown,
    expected: open.length === 0 ? "no --scalar, since no value is left open" : `one of ${open.join(", ")}`,
    help: suggestion(unknown, open, "give values to open scalars only; sizes are given with --sizes"),
  });
}

/** Recording gives these their values. */
const boundByRuns: readonly string[] = ["rank", "deviceIdx.x", "numberOfStreams"];

/** Names in statements and stream indices that are no loop's index and no extent. */
function openScalars({ body, streams, tensors }: HostProgram): readonly string[] {
  const statements = walk(body);
  const bound = new Set(boundByRuns);
  for (const each of statements) if (each.kind === "ForLoop") bound.add(each.index.name);
  for (const name of namesIn(tensors.map(({ domain }) => domain))) bound.add(name);
  return [...namesIn([body, streams])].filter((name) => !bound.has(name));
}

/** The names of all scalars in a value, whatever its type: nodes are plain data. */
function namesIn(value: unknown, names = new Set<string>()): ReadonlySet<string> {
  if (typeof value !== "object" || value === null) return names;
  if ("kind" in value && "name" in value && (value.kind === "symbol" || value.kind === "named")) {
    names.add(String(value.name));
    return names;
  }
  for (const part of Object.values(value)) namesIn(part, names);
  return names;
}

/* The constants that hold a program's tensors, from the lines of the user's files. */

/** Of a statement before the line of a call in it. */
const mostLines = 10;

/** Tensors of files that cannot be read have none. */
async function constantsOf(tensors: readonly Tensor[]): Promise<Constants> {
  const sources = tensors.flatMap(({ origin }) => origin?.source ?? []);
  const paths = [...new Set(sources.map(({ path }) => path))];
  const texts = await Promise.all(paths.map((path) => readFile(path, "utf8").catch(() => "")));
  const lines = new Map(paths.map((path, i) => [path, (texts[i] ?? "").split("\n")]));
  return new Map(
    sources.flatMap((source): readonly (readonly [string, string])[] => {
      const all = lines.get(source.path) ?? [];
      const statement = all.slice(Math.max(0, source.line - 1 - mostLines), source.line - 1);
      const name = constantBefore([...statement, (all[source.line - 1] ?? "").slice(0, source.column - 1)].join("\n"));
      return name === null ? [] : [[siteText(source), name]];
    }),
  );
}

// The constant that a program gives the result of a call: `hidden` for the call in `const hidden = linear(x, w)`, also
// in a list, `const [x, w] = [f.input([8]), f.input([8])]`, as a later one, `const x = f.input([8]), w = f.input([8])`,
// as the one field that is taken, `const { output } = sdpa(q, k, v)`, and as a choice, `const y = on ? relu(x) : x`.

const identifier = String.raw`[\p{ID_Start}$_][\p{ID_Continue}$]*`;
const type = String.raw`(?::[^=]*)?`;
const choice = String.raw`(?:(?:(?!=>)[^?:])*\?(?:(?:(?!=>)[^?:])*:)?\s*)?`;
const callee = String.raw`(?:[\w$]+\.)*[\w$]*`;
const held = new RegExp(
  String.raw`^\s*(?:(${identifier})|\{\s*(?:\w+\s*:\s*)?(${identifier})\s*\})\s*${type}=\s*${choice}${callee}$`,
  "u",
);
const called = new RegExp(String.raw`^\s*${callee}$`, "u");
const named = new RegExp(`^${identifier}$`, "u");

/**
 * `before`: the text up to the called name, or to the bracket after it. Null for calls inside of others, and for
 * variables that may change.
 */
export function constantBefore(before: string): string | null {
  const start = before.lastIndexOf("const ");
  if (start < 0) return null;
  const text = before.slice(start + "const ".length);
  const [, names, values] = /^\s*\[([^\]]*)\]\s*(?::[^=]*)?=\s*\[([^]*)$/u.exec(text) ?? [];
  const entries = topLevelEntries(values ?? text);
  const last = entries?.at(-1) ?? "";
  if (values === undefined) {
    const [, single, field] = held.exec(last) ?? [];
    return single ?? field ?? null;
  }
  const name = names?.split(",")[(entries?.length ?? 0) - 1]?.trim() ?? "";
  return called.test(last) && named.test(name) ? name : null;
}

/** What commas outside of brackets separate; null if a bracket closes that the text does not open, or stays open. */
function topLevelEntries(text: string): readonly string[] | null {
  const entries = [""];
  let depth = 0;
  for (const character of text) {
    if ("([{".includes(character)) depth++;
    else if (")]}".includes(character)) depth--;
    if (depth < 0 || (depth === 0 && character === ";")) return null;
    if (character === "," && depth === 0) entries.push("");
    else entries.push(`${entries.pop() ?? ""}${character}`);
  }
  return depth === 0 ? entries : null;
}
