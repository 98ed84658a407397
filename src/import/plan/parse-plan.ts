/** The document of a sharding plan: a mesh, and how modules, parameters, inputs, outputs and activations lie on it. */
import { fail } from "../../diagnostics/diagnostic.ts";
import type { ModelFault } from "../model.ts";
import { type Float8Recipe, float8Recipes } from "../../ir/fusion-data.ts";
import { parseJson } from "../../support/json-document.ts";
import { suggestion } from "../../support/wording.ts";
import { parsePlacement, type Placement, placementForms, placementText, resolved } from "./placement.ts";
import { isStyle, type Style, styles } from "./styles.ts";

export interface PlanLine {
  /** The key in the document, for messages: `inputs.x`. */
  readonly key: string;
  /** A path in which `*` stands for any one segment. It may leave out leading segments. */
  readonly pattern: string;
}

export interface StyleLine extends PlanLine {
  readonly style: Style;
}

/** One placement per dimension of the mesh. */
export interface PlacementLine extends PlanLine {
  readonly placements: readonly Placement[];
}

/** What the modules return is computed in chunks. */
export interface StreamLine extends PlanLine {
  readonly axis: number;
  readonly chunks: number;
}

export interface ShardingPlan {
  /** Of the document, for messages. */
  readonly path: string;
  /** Sizes by name, outermost first. */
  readonly mesh: Readonly<Record<string, number>>;
  readonly modules: readonly StyleLine[];
  readonly parameters: readonly PlacementLine[];
  readonly inputs: readonly PlacementLine[];
  readonly outputs: readonly PlacementLine[];
  readonly activations: readonly PlacementLine[];
  readonly stream: readonly StreamLine[];
  /** How linears are computed in floats of 8 bits; null for not at all. */
  readonly fp8: Float8Recipe | null;
  /** The dimensions of the groups of a model that was exported in parallel, by the names in the file. */
  readonly groups: Readonly<Record<string, readonly string[]>>;
}

/** Matches the paths that a pattern of a line means. */
export function patternOf(pattern: string): RegExp {
  const escaped = pattern.replaceAll(/[$()+.?[\\\]^{|}]/gu, String.raw`\$&`).replaceAll("*", "[^.]+");
  return new RegExp(`^(?:.*\\.)?${escaped}$`, "u");
}

/** At a key of the document. */
export function invalidPlan(path: string, key: string, fault: ModelFault): never {
  return fail({
    code: "sharding-plan-invalid",
    place: { kind: "file", path: key === "" ? path : `${path}: ${key}` },
    ...fault,
  });
}

/** The placements of a line with axes counted from 0. Throws `sharding-plan-invalid`. */
export function resolvedIn(
  path: string,
  { key }: PlanLine,
  placements: readonly Placement[],
  name: string,
  rank: number,
): readonly Placement[] {
  return (
    resolved(placements, rank) ??
    invalidPlan(path, key, {
      message: `${name} has no such axis`,
      found: placements.map(placementText).join(", "),
      expected: `axes from ${-rank} to ${rank - 1}`,
      help: "count axes from 0, or from -1 at the end",
    })
  );
}

/** Throws `sharding-plan-invalid`. */
export function parsePlan(text: string, path: string): ShardingPlan {
  const document = objectIn(path, "", documentOf(text, path));
  const { mesh: given, inputs, outputs, activations, stream, fp8 = null, groups, ...lines } = document;
  const mesh = meshIn(path, given);
  const dimensions = Object.keys(mesh);
  const placed = (name: string, value: unknown): readonly PlacementLine[] =>
    Object.entries(value === undefined ? {} : objectIn(path, name, value)).map(([pattern, each]) => {
      const key = `${name}.${pattern}`;
      return { key, pattern, placements: placementsIn(path, key, each, dimensions) };
    });
  const modules: StyleLine[] = [];
  const parameters: PlacementLine[] = [];
  for (const [pattern, value] of Object.entries(lines)) {
    if (typeof value === "string" && isStyle(value)) modules.push({ key: pattern, pattern, style: value });
    else parameters.push({ key: pattern, pattern, placements: placementsIn(path, pattern, value, dimensions) });
  }
  return {
    path,
    mesh,
    modules,
    parameters,
    inputs: placed("inputs", inputs),
    outputs: placed("outputs", outputs),
    activations: placed("activations", activations),
    fp8: fp8 === null ? null : recipeIn(path, fp8),
    groups: Object.fromEntries(
      Object.entries(groups === undefined ? {} : objectIn(path, "groups", groups)).map(([name, value]) => [
        name,
        dimensionsIn(path, `groups.${name}`, value, dimensions),
      ]),
    ),
    stream: Object.entries(stream === undefined ? {} : objectIn(path, "stream", stream)).map(([pattern, value]) =>
      streamIn(path, pattern, value),
    ),
  };
}

function recipeIn(path: string, value: unknown): Float8Recipe {
  const found = float8Recipes.find((recipe) => recipe === value);
  return (
    found ??
    invalidPlan(path, "fp8", {
      message: "the plan has an unknown recipe",
      found: JSON.stringify(value) ?? "nothing",
      expected: float8Recipes.join(", "),
      help: 'write "fp8": "rowwise", or leave it out',
    })
  );
}

function dimensionsIn(path: string, key: string, value: unknown, known: readonly string[]): readonly string[] {
  const names: readonly unknown[] = Array.isArray(value) ? value : [value];
  const found = known.filter((name) => names.includes(name));
  if (found.length === names.length) return found;
  return invalidPlan(path, key, {
    message: "a group of ranks lies along other dimensions than the mesh has",
    found: JSON.stringify(value) ?? "nothing",
    expected: `one or several of ${known.join(", ")}`,
    help: `write ${JSON.stringify(known[0])}, for example`,
  });
}

function documentOf(text: string, path: string): unknown {
  try {
    return parseJson(text);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return invalidPlan(path, "", {
      message: "the plan is no JSON",
      found: error.message,
      expected: 'JSON: { "mesh": { "tp": 4 }, "layers.*.mlp.up_proj": "colwise" }',
      help: "correct the file at the position that the message names",
    });
  }
}

function objectIn(path: string, key: string, value: unknown): Readonly<Record<string, unknown>> {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return { ...value };
  return invalidPlan(path, key, {
    message: "a part of the plan has another form",
    found: JSON.stringify(value) ?? "nothing",
    expected: "an object",
    help: 'write an object, such as { "x": ["Shard(0)"] }',
  });
}

function meshIn(path: string, value: unknown): Readonly<Record<string, number>> {
  const entries = Object.entries(value === undefined ? {} : objectIn(path, "mesh", value));
  const mesh = Object.fromEntries(
    entries.flatMap(([name, size]) =>
      typeof size === "number" && Number.isInteger(size) && size > 0 ? [[name, size]] : [],
    ),
  );
  if (entries.length > 0 && Object.keys(mesh).length === entries.length) return mesh;
  return invalidPlan(path, "mesh", {
    message: "the plan has no mesh",
    found: JSON.stringify(value) ?? "nothing",
    expected: "the size of each dimension by its name, outermost first",
    help: 'add "mesh": { "tp": 4 }',
  });
}

function placementsIn(path: string, key: string, value: unknown, dimensions: readonly string[]): readonly Placement[] {
  const texts = Array.isArray(value) ? value.map(String) : typeof value === "string" ? [value] : [];
  const placements = texts.flatMap((text) => parsePlacement(text) ?? []);
  if (placements.length === dimensions.length && texts.length === placements.length) return placements;
  const [first = ""] = texts;
  const isWord = /^[a-z_]+$/u.test(first);
  return invalidPlan(path, key, {
    message: isWord ? `the plan has an unknown word` : "the plan has other placements than its mesh has dimensions",
    found: JSON.stringify(value) ?? "nothing",
    expected: isWord
      ? `one of ${Object.keys(styles).join(", ")}, or placements`
      : `${placementForms} for each of ${dimensions.join(", ")}`,
    help: isWord
      ? suggestion(first, Object.keys(styles), "choose one of these words")
      : `write ${JSON.stringify(dimensions.map(() => "Replicate()"))}, for example`,
  });
}

function streamIn(path: string, pattern: string, value: unknown): StreamLine {
  const key = `stream.${pattern}`;
  const { axis, chunks, ...others } = objectIn(path, key, value);
  const isWhole = (each: unknown): each is number => typeof each === "number" && Number.isInteger(each);
  if (isWhole(axis) && isWhole(chunks) && chunks > 1 && Object.keys(others).length === 0)
    return { key, pattern, axis, chunks };
  return invalidPlan(path, key, {
    message: "a line of stream has another form",
    found: JSON.stringify(value) ?? "nothing",
    expected: "an axis and the number of its chunks",
    help: 'write { "axis": 1, "chunks": 4 }',
  });
}
